// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "ground/base/status.hpp"

namespace tailrace::comm {

/// Counters of 64 bits that the processes of a group share. Each counter lies at one process, which makes it;
/// all processes may add to it at any time. Only one thread may use an object.
class Counters {
 public:
  /// The most counters that lie at one process at once.
  static constexpr int most = 4096;
  /// Gets the value before the add.
  using Taken = std::function<void(std::int64_t before)>;

  virtual ~Counters() = default;
  /// Local. Makes a counter at this process, with the value 0, and returns its number. Returns
  /// Code::unsupported if this process has too many.
  Result<int> make();
  /// Local. Gives the counter back. No process adds to it any more.
  void remove(int counter) { is_made_[static_cast<std::size_t>(counter)] = false; }
  /// Local. Sets a counter of this process, while no process adds to it: a process that hears of the set by a
  /// message adds to the value set.
  virtual void set(int counter, std::int64_t value) = 0;
  /// Local. Adds to a counter of `process`. All adds to a counter have one order. `taken` runs inside of
  /// add(), poll() or the process's progress of messages. `process` may be this one.
  virtual void add(int process, int counter, std::int64_t amount, Taken taken) = 0;
  /// Local. Runs the `taken` of adds that are made. Returns true if there was one.
  virtual bool poll() { return false; }
  /// True if an add needs nothing of the process at which the counter lies.
  [[nodiscard]] virtual bool are_one_sided() const = 0;

 private:
  std::vector<bool> is_made_;
};

}  // namespace tailrace::comm
