// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/files/own_reads.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>

#include "ground/base/log.hpp"
#include "ground/base/text.hpp"

namespace tailrace::files {

namespace {

/// A rank reads at most so many bytes in one call of the system.
constexpr Bytes most_in_one_read = Bytes{16} << 20;

/// Fills `memory` from `position` of the file, and tells `tally` where bytes were missing. `at` is the place
/// of the first byte in the array.
void fill(storage::File& file, std::span<std::byte> memory, Bytes position, Bytes at,
          exchange::Tally& tally) {
  while (!memory.empty() && at < tally.end()) {
    const std::span<std::byte> part =
        memory.first(std::min(memory.size(), static_cast<std::size_t>(most_in_one_read)));
    const Result<Bytes> read = file.read(part, position + at);
    const Bytes got = read.is_ok() ? *read : 0;
    if (got < std::ssize(part)) return tally.stop_at(at + got, read.status());
    memory = memory.subspan(part.size());
    at += got;
  }
}

/// Tells a waiting rank that a job on another thread is over.
class Finish {
 public:
  void tell() {
    const std::lock_guard lock(mutex_);
    is_told_ = true;
    told_.notify_all();  // under the lock: the waiter may then destroy this object at once
  }
  /// Sleeps for a little while, or until the job is over. Returns true if it is.
  bool sleep() {
    std::unique_lock lock(mutex_);
    return told_.wait_for(lock, std::chrono::milliseconds(1), [&] { return is_told_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable told_;
  bool is_told_ = false;
};

}  // namespace

OwnReads::OwnReads(const Opened& file, const FileStream& stream)
    : opened_(file), stream_(stream), key_(file.owner.service->threads().new_own_key()) {}

storage::FileNumber OwnReads::offer(std::span<const std::shared_ptr<const ArrayPlan>> plans) {
  Bytes bytes = 0;
  Index rows = 0;
  for (const std::shared_ptr<const ArrayPlan>& plan : plans) {
    if (plan->everywhere) return {};  // the file would be read once for each rank
    bytes += plan->mine.bytes_in(0, plan->bytes());
    rows += plan->mine.pieces();
  }
  if (bytes < rows * opened_.owner.service->shortest_own_row()) return {};
  if (!std::exchange(has_tried_, true)) open();
  return number_;
}

/// Opens the file. A failure is only logged: the aggregators can read the arrays as well.
void OwnReads::open() {
  const Status status = guarded([&]() -> Status {
    file_ = stream_.c_stream().file;
    if (file_ == nullptr) {
      Result<std::unique_ptr<storage::File>> file =
          opened_.owner.service->target().open(opened_.path, storage::OpenMode::read_regular);
      TR_TRY(file.status());
      file_ = std::move(*file);
    }
    number_ = file_->number();
    return {};
  });
  if (!status.is_ok())
    log(LogLevel::info, cat("files: aggregators read the arrays of ", opened_.path, ": ", status.text()));
}

void OwnReads::compare(const storage::FileNumber& wanted) {
  if (wanted == storage::FileNumber() || number_ == wanted) return;
  file_ = nullptr;
  number_ = {};
}

void OwnReads::read(std::byte* base, const ArrayPlan& plan, Bytes position, exchange::Tally& tally) {
  const auto read = [&] {
    const Status status = guarded([&]() -> Status {
      plan.mine.for_each_piece([&](Bytes at, Bytes memory, Bytes length) {
        fill(*file_, {base + memory, static_cast<std::size_t>(length)}, position, at, tally);
      });
      return {};
    });
    if (!status.is_ok()) tally.stop_at(0, status);
  };
  executor::Threads& threads = opened_.owner.service->threads();
  if (threads.waiting_threads() == 0) return read();
  // While a thread reads, the calling rank works for other ranks, and the watchdog knows that it waits.
  Finish finish;
  threads.submit(key_, [&] {
    read();
    finish.tell();
  });
  opened_.owner.group->wait([&] { return finish.sleep(); }, "storage to read an array");
}

}  // namespace tailrace::files
