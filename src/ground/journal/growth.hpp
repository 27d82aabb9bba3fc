// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <string>

#include "ground/base/types.hpp"

namespace tailrace::journal {

/// Knows how long a file is that is being written, and whether any of its bytes were overwritten. Cutting the
/// file can restore its recorded state only if the file has only grown. This object is on the rank that holds
/// the C stream, because that rank knows the place of every write. Any thread may use it.
class Growth {
 public:
  /// `end`: the size of the file when it is opened. `recorded`: the size that a checkpoint has recorded.
  Growth(std::string path, Bytes end, Bytes recorded)
      : path_(std::move(path)), end_(end), recorded_(recorded) {}

  void wrote(Bytes offset, Bytes bytes);
  /// Notes a write of C's stream, which does not know whether it completes a record (see Completing).
  void stream_wrote(Bytes offset, Bytes bytes);
  /// Notes that the file is cut, and ends at `size` from now on.
  void cut(Bytes size);
  /// Allows bytes behind `from` to be written again, unless a checkpoint has recorded them.
  void forget(Bytes from) {
    const std::lock_guard lock(mutex_);
    if (recorded_ <= from) end_ = std::min(end_, from);
  }
  /// Notes that a checkpoint has recorded the first `size` bytes of the file.
  void record(Bytes size) {
    const std::lock_guard lock(mutex_);
    recorded_ = std::max(recorded_, size);
  }

  [[nodiscard]] Bytes end() const {
    const std::lock_guard lock(mutex_);
    return end_;
  }
  /// Returns the place at which bytes were first overwritten, or nothing.
  [[nodiscard]] std::optional<Bytes> overwritten_at() const {
    const std::lock_guard lock(mutex_);
    return overwritten_at_;
  }

  /// While it exists, writes of the stream complete a record that has not ended: they do not count as
  /// overwriting.
  class Completing {
   public:
    explicit Completing(Growth& growth) : growth_(growth) { growth_.completing_ = true; }
    ~Completing() { growth_.completing_ = false; }
    Completing(const Completing&) = delete;
    Completing& operator=(const Completing&) = delete;

   private:
    Growth& growth_;
  };

 private:
  void replace(Bytes offset);

  const std::string path_;
  mutable std::mutex mutex_;
  Bytes end_;
  Bytes recorded_;
  std::optional<Bytes> overwritten_at_;
  bool warned_ = false;
  std::atomic<bool> completing_{false};
};

}  // namespace tailrace::journal
