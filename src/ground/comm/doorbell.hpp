// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace tailrace::comm {

/// Wakes a sleeper in another process (or thread). It is an event count in shared memory on a futex
/// (futex(2)). The sleeper takes a ticket, looks once more whether there is work, and only then parks with
/// the ticket. If the bell rings between ticket and park, park() returns at once: no wake-up is lost.
class Doorbell {
 public:
  /// Returns a ticket. park() with it returns at once if the bell rings after this call.
  [[nodiscard]] std::uint32_t ticket() noexcept {
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    return rings_.load(std::memory_order_seq_cst);
  }
  /// Gives a ticket back without sleeping.
  void cancel() noexcept { sleepers_.fetch_sub(1, std::memory_order_relaxed); }
  /// Sleeps until the bell is rung after `ticket` was taken, or until `limit` has passed. Gives the ticket
  /// back.
  void park(std::uint32_t ticket, std::chrono::nanoseconds limit) noexcept;
  /// Local. Wakes all sleepers. Costs a system call only if there are any.
  void ring() noexcept;
  [[nodiscard]] bool rung_since(std::uint32_t ticket) const noexcept {
    return rings_.load(std::memory_order_seq_cst) != ticket;
  }

 private:
  std::atomic<std::uint32_t> rings_{0};
  std::atomic<std::uint32_t> sleepers_{0};
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

}  // namespace tailrace::comm
