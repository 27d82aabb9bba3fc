// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/storage/queue/write_queue.hpp"

#ifndef TAILRACE_HAVE_URING

namespace tailrace::storage {

Result<std::unique_ptr<WriteQueue>> uring_write_queue() {
  return Status(Code::unsupported, "this build has no liburing");
}

}  // namespace tailrace::storage

#else

#include <liburing.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>

#include "ground/base/log.hpp"
#include "ground/base/text.hpp"
#include "ground/storage/posix_system.hpp"

namespace tailrace::storage {

namespace {

class UringQueue final : public WriteQueue {
 public:
  static Result<std::unique_ptr<WriteQueue>> make() {
    auto queue = std::unique_ptr<UringQueue>(new UringQueue);
    const int result = io_uring_queue_init(most_writes, &queue->ring_, 0);
    if (result < 0) {
      const std::string what = cat("of ", most_writes, " entries");
      return Status(Code::unsupported,
                    cat("the kernel grants no ring of io_uring (",
                        io_error("io_uring_queue_init", what, -result).text(), ")"),
                    -result);
    }
    queue->is_granted_ = true;
    return std::unique_ptr<WriteQueue>(std::move(queue));
  }
  ~UringQueue() override {
    if (is_granted_) io_uring_queue_exit(&ring_);
  }
  UringQueue(const UringQueue&) = delete;
  UringQueue& operator=(const UringQueue&) = delete;

  [[nodiscard]] WriteWay way() const override { return is_broken_ ? WriteWay::calls : WriteWay::io_uring; }

  void start(QueuedWrite& write) override {
    while (under_way_ >= most_writes) take_completion();
    int result = 0;
    io_uring_sqe* const entry = is_broken_ ? nullptr : io_uring_get_sqe(&ring_);
    if (entry != nullptr) {
      io_uring_prep_writev(entry, write.descriptor, write.parts.data(),
                           static_cast<unsigned>(write.parts.size()), static_cast<__u64>(write.offset));
      io_uring_sqe_set_data(entry, &write);
      result = submit();
      if (result > 0) {
        ++under_way_;
        return;
      }
    }
    // The entry stays in the ring, so nothing may be submitted any more.
    is_broken_ = true;
    write.result = System().pwritev(write.descriptor, write.parts.data(),
                                    static_cast<int>(write.parts.size()), write.offset);
    write.is_over = true;
    if (entry != nullptr) tell_refusal(write, result);
  }

  void wait(const QueuedWrite& write) override {
    while (!write.is_over) take_completion();
  }

 private:
  UringQueue() = default;

  /// Waits until a write is over, and notes it. Until then the kernel uses the caller's memory: so the wait
  /// goes on whatever the call returns.
  void take_completion() {
    io_uring_cqe* completion = nullptr;
    int result = io_uring_wait_cqe(&ring_, &completion);
    for (; result < 0; result = io_uring_peek_cqe(&ring_, &completion))
      std::this_thread::sleep_for(std::chrono::microseconds(result == -EINTR ? 0 : 200));
    auto* const write = static_cast<QueuedWrite*>(io_uring_cqe_get_data(completion));
    write->result = completion->res;
    write->is_over = true;
    io_uring_cqe_seen(&ring_, completion);
    --under_way_;
  }

  /// A system may grant rings, and then refuse their use (seccomp of containers).
  static void tell_refusal(const QueuedWrite& write, int result) {
    static std::atomic<bool> has_told = false;
    if (has_told.exchange(true)) return;
    const std::string what = cat("of a write at offset ", write.offset);
    log(LogLevel::warn,
        cat("io_uring took no further write (", io_error("io_uring_submit", what, -result).text(),
            "): writes of this file are made one after another from now on"));
  }

  int submit() {
    return uninterrupted([&] {
      const int result = io_uring_submit(&ring_);
      if (result != -EAGAIN && result != -EBUSY) return result;
      // For a while the kernel is short of memory, or busy with completions.
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return -EINTR;
    });
  }

  io_uring ring_{};
  std::size_t under_way_ = 0;
  bool is_granted_ = false;
  bool is_broken_ = false;
};

}  // namespace

Result<std::unique_ptr<WriteQueue>> uring_write_queue() { return UringQueue::make(); }

}  // namespace tailrace::storage

#endif
