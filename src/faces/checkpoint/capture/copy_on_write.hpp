// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "faces/checkpoint/capture/userfault.hpp"
#include "ground/base/status.hpp"
#include "ground/base/types.hpp"

namespace tailrace::capture {

/// Memory of the program, and the place to which it is copied.
struct CopiedRange {
  const std::byte* begin = nullptr;  // both multiples of CopyOnWrite::unit
  Bytes bytes = 0;
  std::byte* copy = nullptr;
};

/// Copies memory behind the program's back, as it was at one moment. A thread copies unit by unit. A program
/// thread that writes to a unit not copied yet waits until the copier has taken it next and copied it.
///
/// The memory must stay mapped until wait() has returned. Otherwise wait() returns an error, and the copy
/// does not count.
class CopyOnWrite {
 public:
  /// Smaller units cost a fault each: 100 times more faults if everything is rewritten. A unit of this size
  /// leaves a huge page whole.
  static constexpr Bytes unit = Bytes{2} << 20;

  /// Returns Code::unsupported, saying what is missing.
  static Result<std::unique_ptr<CopyOnWrite>> create();
  ~CopyOnWrite();
  CopyOnWrite(const CopyOnWrite&) = delete;
  CopyOnWrite& operator=(const CopyOnWrite&) = delete;

  /// Returns Code::unsupported if memory of this kind cannot be protected, or a device might write to it:
  /// nothing is protected then. Call it only after the last wait() has returned.
  Status begin(std::vector<CopiedRange> ranges);
  /// Blocks until everything is copied. Any thread.
  Status wait();

 private:
  enum class State { idle, protecting, copying, giving_up, copied, lost };
  explicit CopyOnWrite(Userfault faults) : faults_(std::move(faults)) {}

  Status protect();
  void join();
  void run();
  bool serve();
  bool note(const Userfault::Event& event);
  bool copy(std::size_t number);

  Userfault faults_;
  std::vector<CopiedRange> ranges_;
  std::vector<std::size_t> first_units_;  // of each range
  std::vector<char> is_copied_;           // of each unit
  std::size_t left_ = 0;
  std::size_t cursor_ = 0;  // the unit that is copied next if nobody waits for another
  std::atomic<State> state_{State::idle};
  std::thread copier_;
};

}  // namespace tailrace::capture
