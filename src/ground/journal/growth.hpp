// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <string>

#include "ground/base/types.hpp"

namespace tailrace::journal {

/// Knows how far a file that is written reaches, and whether bytes of it were written over: cutting can
/// restore what a checkpoint recorded only if the file does nothing but grow. It is on the rank that holds
/// the stream, which knows the place of every write. Any thread may use it.
class Growth {
 public:
  /// `end` is the file's size when it is opened, `recorded` the size that a checkpoint has of it.
  Growth(std::string path, Bytes end, Bytes recorded)
      : path_(std::move(path)), end_(end), recorded_(recorded) {}

  void wrote(Bytes offset, Bytes bytes);
  /// Notes a write of C's stream, which does not know what its bytes are for.
  void stream_wrote(Bytes offset, Bytes bytes);
  /// Notes that the file ends at `size` from now on.
  void cut(Bytes size);
  /// Says that bytes behind `from` may be written again, unless a checkpoint has them.
  void forget(Bytes from) {
    const std::lock_guard lock(mutex_);
    if (recorded_ <= from) end_ = std::min(end_, from);
  }
  /// Notes that a checkpoint records that the file has `size` bytes.
  void record(Bytes size) {
    const std::lock_guard lock(mutex_);
    recorded_ = std::max(recorded_, size);
  }

  [[nodiscard]] Bytes end() const {
    const std::lock_guard lock(mutex_);
    return end_;
  }
  /// Returns where bytes were written over for the first time.
  [[nodiscard]] std::optional<Bytes> overwritten_at() const {
    const std::lock_guard lock(mutex_);
    return overwritten_at_;
  }

  /// While it exists, writes of the stream complete a record that has not ended.
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
