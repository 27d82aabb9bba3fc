// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/storage/target.hpp"

#ifndef TAILRACE_HAVE_URING

namespace tailrace::storage {

Result<std::shared_ptr<Target>> uring_target() {
  return Status(
      Code::unsupported,
      "storage target \"uring\": this build has no liburing; use \"posix\", or install liburing-dev and "
      "configure again with -DTAILRACE_URING=ON");
}

}  // namespace tailrace::storage

#else

#include <liburing.h>

#include <cerrno>
#include <chrono>
#include <mutex>
#include <thread>

#include "ground/base/text.hpp"
#include "ground/storage/posix.hpp"

namespace tailrace::storage {

namespace {

/// Makes the data calls of one file through a ring of its own. PosixFile has the loops over short and
/// interrupted writes: a completion returns what the call would have returned.
class Ring final : public System {
 public:
  static Result<std::shared_ptr<Ring>> make() {
    auto ring = std::shared_ptr<Ring>(new Ring);
    const int result = io_uring_queue_init(entries, &ring->ring_, 0);
    if (result < 0) {
      return Status(
          Code::unsupported,
          cat("storage target \"uring\": the kernel grants no ring (",
              io_error("io_uring_queue_init", "of 4 entries", -result).text(),
              "); use \"posix\", or allow io_uring (sysctl kernel.io_uring_disabled, container profile)"),
          -result);
    }
    ring->granted_ = true;
    return ring;
  }

  ~Ring() override {
    if (granted_) io_uring_queue_exit(&ring_);
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  /// Returns Code::unsupported if the kernel lacks one of the operations used here.
  Status probe() {
    const std::unique_ptr<io_uring_probe, void (*)(io_uring_probe*)> known(io_uring_get_probe_ring(&ring_),
                                                                           io_uring_free_probe);
    for (const int operation : {IORING_OP_WRITEV, IORING_OP_READ, IORING_OP_FSYNC}) {
      if (known && io_uring_opcode_supported(known.get(), operation)) continue;
      return {Code::unsupported, cat("storage target \"uring\": this kernel's io_uring lacks operation ",
                                     operation, "; use \"posix\", or Linux 5.6 or newer")};
    }
    return {};
  }

  ssize_t pwritev(int descriptor, const iovec* parts, int count, off_t offset) override {
    return run([&](io_uring_sqe* entry) {
      io_uring_prep_writev(entry, descriptor, parts, static_cast<unsigned>(count),
                           static_cast<__u64>(offset));
    });
  }

  ssize_t pread(int descriptor, void* data, std::size_t size, off_t offset) override {
    return run([&](io_uring_sqe* entry) {
      io_uring_prep_read(entry, descriptor, data, static_cast<unsigned>(size), static_cast<__u64>(offset));
    });
  }

  int fsync(int descriptor) override {
    return static_cast<int>(run([&](io_uring_sqe* entry) { io_uring_prep_fsync(entry, descriptor, 0); }));
  }

  [[nodiscard]] int descriptors() const override { return 1; }

 private:
  static constexpr unsigned entries = 4;

  Ring() = default;

  /// Submits one operation and waits until it is complete, because until then the kernel uses the caller's
  /// memory.
  template <typename Prepare>
  ssize_t run(Prepare&& prepare) {
    const std::lock_guard one(mutex_);
    if (broken_ != 0) return broken_;
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    if (entry == nullptr) return broken_ = -EIO;
    prepare(entry);
    int result = submit();
    if (result < 0) return broken_ = result;
    io_uring_cqe* completion = nullptr;
    // The wait goes on however often it is interrupted: until it returns, the kernel uses the caller's
    // memory.
    do result = io_uring_wait_cqe(&ring_, &completion);
    while (result == -EINTR || result == -EAGAIN);
    if (result < 0) return broken_ = result;
    const ssize_t done = completion->res;
    io_uring_cqe_seen(&ring_, completion);
    // A completion with EAGAIN has moved nothing. PosixFile treats -EINTR as an interrupted call, and repeats
    // it.
    return done == -EAGAIN ? -EINTR : done;
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

  std::mutex mutex_;
  io_uring ring_{};
  bool granted_ = false;
  // Set after an error: an entry may be left in the ring, and its completion would be taken for that of a
  // later call.
  ssize_t broken_ = 0;
};

}  // namespace

Result<std::shared_ptr<Target>> uring_target() {
  auto ring = Ring::make();
  if (!ring.is_ok()) return ring.status();
  TR_TRY((*ring)->probe());
  return std::shared_ptr<Target>(
      std::make_shared<PosixTarget>(std::make_shared<System>(), []() -> Result<std::shared_ptr<System>> {
        auto own = Ring::make();
        if (!own.is_ok()) return own.status();
        return std::shared_ptr<System>(*std::move(own));
      }));
}

}  // namespace tailrace::storage

#endif
