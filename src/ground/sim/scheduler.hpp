// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <vector>

#include "ground/sim/costs.hpp"

namespace tailrace::sim {

/// Runs events in simulated time, in one thread. The seed decides everything that happens, and its order.
class Scheduler {
 public:
  explicit Scheduler(std::uint64_t seed);

  [[nodiscard]] Nanoseconds now() const { return now_; }
  /// Makes turns and messages take the stated times from now on, unless these are random.
  void keep_to(const Costs& costs) {
    if (!costs.is_random) costs_ = costs;
  }
  /// Returns the costs that turns and messages keep to, or null if they take random times.
  [[nodiscard]] const Costs* costs() const { return costs_ ? &*costs_ : nullptr; }
  /// Queues `event`, to run after `delay`. Events of the same instant run in random order.
  void after(Nanoseconds delay, std::function<void()> event);
  /// Runs the earliest event. Returns false if there is none.
  bool run_one();

  /// Returns a random whole number in low .. high.
  std::int64_t random(std::int64_t low, std::int64_t high);
  /// Returns true in one of `times` cases on average.
  bool once_in(std::int64_t times) { return random(1, times) == 1; }
  /// Return a random time for a step or task of a rank, and for a message. Most are short, some are long: a
  /// process may lose its core, or a message be delayed, at any moment. The seed also decides how much the
  /// delays vary. With costs(), they are the stated time of a turn, and of a message that meets no other.
  Nanoseconds step_delay();
  Nanoseconds message_delay();

 private:
  struct Event {
    Nanoseconds when = 0;
    std::uint64_t tie = 0;
    /// Place in functions_. The functions are kept there because a heap moves its elements, and functions are
    /// large.
    std::size_t place = 0;
  };

  std::mt19937_64 random_;
  Nanoseconds now_ = 0;
  Nanoseconds longest_message_ = 0;
  std::int64_t stall_once_in_ = 0;
  std::optional<Costs> costs_;
  std::vector<Event> events_;  // a heap, the earliest on top
  std::vector<std::function<void()>> functions_;
  std::vector<std::size_t> free_places_;
};

}  // namespace tailrace::sim
