// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "ground/base/status.hpp"
#include "ground/storage/target.hpp"

namespace tailrace::storage {

/// One call of pwritev(2) that the system makes while the caller goes on. The object and all that it refers
/// to must stay where they are until the write is over.
struct QueuedWrite {
  int descriptor = -1;
  std::span<const iovec> parts{};
  off_t offset = 0;
  ssize_t result = 0;  // once it is over: what the call has returned, or the negative errno
  bool is_over = true;
};

/// Writes of one file that are under way at the same time. Only one thread at a time may use a queue.
class WriteQueue {
 public:
  /// The most writes that are under way, and the most bytes of one of them: the system holds at most 16 MiB
  /// of a file.
  static constexpr std::size_t most_writes = 8;
  static constexpr Bytes most_at_once = Bytes{2} << 20;

  virtual ~WriteQueue() = default;
  /// Returns how the next write is made: by `calls` once the system has refused a write.
  [[nodiscard]] virtual WriteWay way() const = 0;
  /// Begins a write. If `most_writes` are under way, waits until one of them is over. If the system takes no
  /// further write, makes the call itself.
  virtual void start(QueuedWrite& write) = 0;
  /// Waits until the write is over. Repeats nothing.
  virtual void wait(const QueuedWrite& write) = 0;
  /// Gives back what the queue has of the system, until the next write. Nothing may be under way.
  virtual void rest() {}
};

/// Returns a queue that writes through a ring of io_uring. Returns Code::unsupported with the reason if the
/// kernel grants none, or the build has no liburing.
Result<std::unique_ptr<WriteQueue>> uring_write_queue();
/// Returns a queue that writes by POSIX AIO, aio_write(3).
std::unique_ptr<WriteQueue> posix_aio_write_queue();
/// Returns a queue that takes the first way that is possible once it gets its first write, or its first one
/// since rest(), and logs which one the process takes.
std::unique_ptr<WriteQueue> write_queue();

/// Begins a write of the parts, one after another from `offset` on, through the queue. The descriptor stays
/// open, and the bytes stay as they are, until the write is over. finish() repeats short and interrupted
/// writes, and fails as File::write_gathered() does.
std::unique_ptr<StartedWrite> start_queued_write(int descriptor, std::string path, Parts parts, Bytes offset,
                                                 WriteQueue& queue);

}  // namespace tailrace::storage
