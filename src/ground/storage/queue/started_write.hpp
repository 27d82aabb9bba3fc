// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>

#include "ground/base/status.hpp"

namespace tailrace::storage {

/// How a write is made that may go on while the caller does something else.
enum class WriteWay : std::int64_t { calls /* one after another, by the caller */, posix_aio, io_uring };

/// A write of a file that may still be under way. Only one thread at a time may use the writes of a queue.
class StartedWrite {
 public:
  /// Waits until the write is over: until then the system uses its bytes.
  virtual ~StartedWrite() = default;
  [[nodiscard]] virtual WriteWay way() const { return WriteWay::calls; }
  /// Waits until the write is over, and returns what became of it, also when it is called again.
  virtual Status finish() = 0;
};
/// Returns a write that is over.
std::unique_ptr<StartedWrite> ended_write(Status status);

}  // namespace tailrace::storage
