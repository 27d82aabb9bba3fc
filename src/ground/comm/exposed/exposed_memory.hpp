// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "ground/base/bytes.hpp"
#include "ground/base/types.hpp"

namespace tailrace::comm {

/// Memory that each process of a group exposes: other processes copy from it, and it does nothing for that.
/// Only one thread may use an object.
class ExposedMemory {
 public:
  /// A part of another process's memory, and where to copy it.
  struct Range {
    Bytes offset = 0;
    std::span<std::byte> into;
  };

  virtual ~ExposedMemory() = default;
  /// Returns the memory that this process exposes.
  [[nodiscard]] virtual std::span<std::byte> own() const = 0;
  /// Local. What this process has written in its memory so far will show to each process that hears of it by
  /// a message sent after this call.
  virtual void show() = 0;
  /// Local. Copies from the memory of `process`, which leaves the ranges as they are until it hears that they
  /// are copied. `done` runs inside of get() or poll().
  virtual void get(int process, std::vector<Range> ranges, std::function<void()> done) = 0;
  /// Local. Runs the `done` of gets that are over. Returns true if there was one.
  virtual bool poll() { return false; }
};

}  // namespace tailrace::comm
