// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <aio.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <memory>

#include "ground/base/bytes.hpp"
#include "ground/base/log.hpp"
#include "ground/base/text.hpp"
#include "ground/storage/posix_system.hpp"
#include "ground/storage/queue/write_queue.hpp"

namespace tailrace::storage {

namespace {

/// glibc makes these writes on threads of its own, those of one descriptor one after another.
class PosixAioQueue final : public WriteQueue {
 public:
  PosixAioQueue() = default;
  [[nodiscard]] WriteWay way() const override { return WriteWay::posix_aio; }
  void start(QueuedWrite& write) override;
  void wait(const QueuedWrite& write) override {
    while (!write.is_over) wait_for_any();
  }

 private:
  struct Slot {
    QueuedWrite* write = nullptr;  // nullptr: the slot is free
    ByteVector joined{};           // the parts, one behind another
    // Not a member: glibc ends it in an array of no length.
    std::unique_ptr<aiocb> control = std::make_unique<aiocb>();
  };
  void look();
  void wait_for_any();
  Slot& free_slot();

  std::array<Slot, most_writes> slots_;
};

/// Notes which writes are over.
void PosixAioQueue::look() {
  for (Slot& slot : slots_) {
    if (slot.write == nullptr) continue;
    const int error = ::aio_error(slot.control.get());
    if (error == EINPROGRESS) continue;
    const ssize_t result = ::aio_return(slot.control.get());
    slot.write->result = error == 0 ? result : -error;
    slot.write->is_over = true;
    slot.write = nullptr;
    slot.joined = ByteVector();
  }
}

void PosixAioQueue::wait_for_any() {
  std::array<const aiocb*, most_writes> list{};
  for (std::size_t i = 0; i < slots_.size(); ++i)
    list[i] = slots_[i].write != nullptr ? slots_[i].control.get() : nullptr;
  // A signal ends the call early: the callers wait in loops.
  ::aio_suspend(list.data(), static_cast<int>(list.size()), nullptr);
  look();
}

PosixAioQueue::Slot& PosixAioQueue::free_slot() {
  const auto is_free = [](const Slot& slot) { return slot.write == nullptr; };
  look();
  auto slot = std::ranges::find_if(slots_, is_free);
  for (; slot == slots_.end(); slot = std::ranges::find_if(slots_, is_free)) wait_for_any();
  return *slot;
}

/// A write of AIO has one part: several are copied.
void PosixAioQueue::start(QueuedWrite& write) {
  Slot& slot = free_slot();
  const iovec* part = write.parts.data();
  iovec joined{};
  const Status copied = guarded([&]() -> Status {
    if (write.parts.size() <= 1) return {};
    std::size_t size = 0;
    for (const iovec& each : write.parts) size += each.iov_len;
    slot.joined.reserve(size);
    for (const iovec& each : write.parts) {
      const auto* const bytes = static_cast<const std::byte*>(each.iov_base);
      slot.joined.insert(slot.joined.end(), bytes, bytes + each.iov_len);
    }
    joined = {slot.joined.data(), size};
    part = &joined;
    return {};
  });
  if (copied.is_ok() && !write.parts.empty()) {
    *slot.control = {};
    slot.control->aio_fildes = write.descriptor;
    slot.control->aio_buf = part->iov_base;
    slot.control->aio_nbytes = part->iov_len;
    slot.control->aio_offset = write.offset;
    slot.control->aio_sigevent.sigev_notify = SIGEV_NONE;
    if (::aio_write(slot.control.get()) == 0) {
      slot.write = &write;
      return;
    }
  }
  // The system has no memory or thread for it.
  slot.joined = ByteVector();
  write.result = System().pwritev(write.descriptor, write.parts.data(), static_cast<int>(write.parts.size()),
                                  write.offset);
  write.is_over = true;
}

/// Takes its way when it gets its first write: files of which nothing is queued need none.
class FirstPossibleQueue final : public WriteQueue {
 public:
  [[nodiscard]] WriteWay way() const override { return made_ ? made_->way() : WriteWay::calls; }
  void start(QueuedWrite& write) override {
    if (!made_) make();
    made_->start(write);
  }
  void wait(const QueuedWrite& write) override {
    if (made_) made_->wait(write);
  }
  void rest() override { made_.reset(); }

 private:
  void make();

  std::unique_ptr<WriteQueue> made_;
};

void FirstPossibleQueue::make() {
  static std::atomic<bool> has_told_ring = false, has_told_aio = false;
  Result<std::unique_ptr<WriteQueue>> ring = uring_write_queue();
  if (ring.is_ok()) {
    made_ = *std::move(ring);
    if (!has_told_ring.exchange(true))
      log(LogLevel::info, "several writes of a file are under way by io_uring");
    return;
  }
  made_ = posix_aio_write_queue();
  if (!has_told_aio.exchange(true))
    log(LogLevel::info, cat("several writes of a file are under way by POSIX AIO: ", ring.status().text()));
}

}  // namespace

std::unique_ptr<WriteQueue> posix_aio_write_queue() { return std::make_unique<PosixAioQueue>(); }

std::unique_ptr<WriteQueue> write_queue() { return std::make_unique<FirstPossibleQueue>(); }

}  // namespace tailrace::storage
