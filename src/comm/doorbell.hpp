// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace tailrace::comm {

/// Wakes a sleeper in another process (or thread): an event count in shared memory on a futex. The sleeper
/// takes a ticket, looks once more whether there is work, and only then parks on the ticket. If the bell
/// rings between ticket and park, park returns at once, so no wake-up is lost.
class Doorbell {
 public:
  /// Returns a ticket for now: park() returns at once if the bell was rung since.
  [[nodiscard]] std::uint32_t ticket() noexcept {
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    return rings_.load(std::memory_order_seq_cst);
  }
  /// Gives a ticket back without sleeping.
  void cancel() noexcept { sleepers_.fetch_sub(1, std::memory_order_relaxed); }
  /// Sleeps until the bell is rung after `ticket` or `limit` has passed. Gives the ticket back.
  void park(std::uint32_t ticket, std::chrono::nanoseconds limit) noexcept;
  /// Local. Costs a system call only if somebody sleeps.
  void ring() noexcept;
  [[nodiscard]] bool rung_since(std::uint32_t ticket) const noexcept {
    return rings_.load(std::memory_order_seq_cst) != ticket;
  }

 private:
  std::atomic<std::uint32_t> rings_{0};
  std::atomic<std::uint32_t> sleepers_{0};
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

/// The order in which a rank goes to sleep. Each step is one call, so that the simulated world can let other
/// ranks run between any two of them. A real rank takes the steps back to back.
///   look -> (nothing to do) -> take a ticket -> look again -> (still nothing) -> park
class GoingToSleep {
 public:
  enum class Next { look, take_ticket, look_again, park };
  [[nodiscard]] Next next() const { return next_; }
  [[nodiscard]] std::uint32_t ticket() const { return ticket_; }
  /// Takes the result of a look (either kind). With work there is no reason to sleep.
  void looked(bool moved, Doorbell& bell) {
    if (moved && next_ == Next::look_again) bell.cancel();
    if (moved)
      next_ = Next::look;
    else
      next_ = next_ == Next::look ? Next::take_ticket : Next::park;
  }
  void take_ticket(Doorbell& bell) {
    ticket_ = bell.ticket();
    next_ = Next::look_again;
  }
  void woke() { next_ = Next::look; }

 private:
  Next next_ = Next::look;
  std::uint32_t ticket_ = 0;
};

}  // namespace tailrace::comm
