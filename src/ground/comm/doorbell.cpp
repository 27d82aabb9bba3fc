// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/comm/doorbell.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace tailrace::comm {

namespace {

long futex(std::atomic<std::uint32_t>* word, int operation, std::uint32_t value, const timespec* limit) {
  return ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(word), operation, value, limit, nullptr, 0);
}

}  // namespace

void Doorbell::park(std::uint32_t ticket, std::chrono::nanoseconds limit) noexcept {
  timespec time{};
  time.tv_sec = static_cast<time_t>(limit.count() / 1'000'000'000);
  time.tv_nsec = static_cast<long>(limit.count() % 1'000'000'000);
  // Not FUTEX_PRIVATE, because several processes share the word.
  futex(&rings_, FUTEX_WAIT, ticket, &time);
  cancel();
}

void Doorbell::ring() noexcept {
  rings_.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) != 0) futex(&rings_, FUTEX_WAKE, INT_MAX, nullptr);
}

}  // namespace tailrace::comm
