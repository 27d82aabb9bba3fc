// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <string>

#include "base/types.hpp"

namespace tailrace::files {

/// How far a file that is written reaches, and whether bytes of it were written over: what a checkpoint
/// records can be restored by cutting only where a file does nothing but grow. On the rank that holds the
/// stream, which knows the place of every write; any thread.
class Growth {
 public:
  /// `end`: of what the file holds when it is opened; `recorded`: of what a checkpoint has of it.
  Growth(std::string path, Bytes end, Bytes recorded)
      : path_(std::move(path)), end_(end), recorded_(recorded) {}

  void wrote(Bytes offset, Bytes bytes);
  /// Of C's stream, which does not know what its bytes are for.
  void stream_wrote(Bytes offset, Bytes bytes);
  /// The file ends at `size` from now on.
  void cut(Bytes size);
  /// What lies behind `from` counts for nothing, unless a checkpoint has it: it may be written again.
  void forget(Bytes from);
  /// A checkpoint records that the file has `size` bytes.
  void record(Bytes size);

  [[nodiscard]] Bytes end() const;
  /// Where bytes were written over for the first time.
  [[nodiscard]] std::optional<Bytes> overwritten_at() const;

  /// What the stream writes meanwhile completes a record that has not ended.
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

}  // namespace tailrace::files
