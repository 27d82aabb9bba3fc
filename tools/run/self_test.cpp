// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "self_test.hpp"

#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/sendfile.h>

#include <atomic>
#include <cstring>

#include "placeholder.hpp"

namespace tailrace::run {

namespace {

/// Returns the outcome of a way. `error` is a negative errno if the way has failed.
Escape judge(const char* way, long error) {
  if (error >= 0) return {way, "succeeds on something that is not the file", false};
  return {way, std::string("fails: ") + std::strerror(static_cast<int>(-error)), true};
}
long error_of(long result) { return result < 0 ? -errno : result; }

/// Tries to read through io_uring. Makes the ring by system calls, so that this command needs no liburing.
Escape try_ring(int placeholder) {
  io_uring_params plan = {};
  const auto ring = static_cast<int>(syscall(SYS_io_uring_setup, 1, &plan));
  if (ring < 0) return {"io_uring", "the kernel grants none", true};
  const std::size_t queue_bytes = plan.sq_off.array + plan.sq_entries * sizeof(unsigned);
  const std::size_t answer_bytes = plan.cq_off.cqes + plan.cq_entries * sizeof(io_uring_cqe);
  constexpr int access = PROT_READ | PROT_WRITE;
  auto* const queue =
      static_cast<char*>(mmap(nullptr, queue_bytes, access, MAP_SHARED, ring, IORING_OFF_SQ_RING));
  auto* const answers =
      static_cast<char*>(mmap(nullptr, answer_bytes, access, MAP_SHARED, ring, IORING_OFF_CQ_RING));
  auto* const entry = static_cast<io_uring_sqe*>(
      mmap(nullptr, sizeof(io_uring_sqe), access, MAP_SHARED, ring, IORING_OFF_SQES));
  Escape result = {"io_uring", "could not be tried", true};
  if (queue != MAP_FAILED && answers != MAP_FAILED && entry != MAP_FAILED) {
    char byte = 0;
    std::memset(entry, 0, sizeof(*entry));
    entry->opcode = IORING_OP_READ;
    entry->fd = placeholder;
    entry->addr = reinterpret_cast<std::uintptr_t>(&byte);
    entry->len = 1;
    reinterpret_cast<unsigned*>(queue + plan.sq_off.array)[0] = 0;
    reinterpret_cast<std::atomic<unsigned>*>(queue + plan.sq_off.tail)->store(1, std::memory_order_release);
    if (syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, nullptr, 0) == 1) {
      const auto* const answer = reinterpret_cast<const io_uring_cqe*>(answers + plan.cq_off.cqes);
      result = judge("io_uring", answer->res);
    }
  }
  if (queue != MAP_FAILED) munmap(queue, queue_bytes);
  if (answers != MAP_FAILED) munmap(answers, answer_bytes);
  if (entry != MAP_FAILED) munmap(entry, sizeof(*entry));
  close(ring);
  return result;
}

}  // namespace

std::vector<Escape> try_escapes() {
  std::uint64_t inode = 0;
  const int placeholder = make_placeholder(inode);
  if (placeholder < 0 || inode == 0)
    return {{"placeholders", std::string("cannot be made: ") + std::strerror(errno), false}};
  std::vector<Escape> found;
  char byte = 0;
  found.push_back(judge("the system call read", error_of(syscall(SYS_read, placeholder, &byte, 1))));
  found.push_back(judge("the system call write", error_of(syscall(SYS_write, placeholder, &byte, 1))));
  void* const mapped = mmap(nullptr, 1, PROT_READ, MAP_SHARED, placeholder, 0);
  found.push_back(judge("mmap", error_of(mapped == MAP_FAILED ? -1 : 0)));
  const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
  found.push_back(
      judge("the system call sendfile", error_of(syscall(SYS_sendfile, null, placeholder, nullptr, 1))));
  if (null >= 0) close(null);
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/self/fd/%d", placeholder);
  const int again = open(path, O_RDWR | O_CLOEXEC);
  found.push_back(judge("opening /proc/self/fd/N by a system call", error_of(again)));
  if (again >= 0) close(again);
  found.push_back(try_ring(placeholder));
  close(placeholder);
  return found;
}

const char* other_escapes() {
  return "  aio_read, aio_write, poll, splice and mkstemp are libc's own or the kernel's: on a placeholder "
         "they fail, too\n"
         "  a program that is linked statically or is setuid takes no preloaded library: refused as the "
         "program to run;\n"
         "    started by it, it sees the file as storage has it\n"
         "  a descriptor that is closed by a system call of the program's own is not noticed until open "
         "returns its number\n"
         "  programs outside of this run see what was stored: at fsync, and when the last descriptor is "
         "closed\n";
}

}  // namespace tailrace::run
