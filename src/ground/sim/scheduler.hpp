// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <vector>

namespace tailrace::sim {

/// Simulated time.
using Nanoseconds = std::int64_t;

/// Events in simulated time, in one thread. The seed decides everything that happens, and its order.
class Scheduler {
 public:
  explicit Scheduler(std::uint64_t seed);

  [[nodiscard]] Nanoseconds now() const { return now_; }
  /// Runs `event` after `delay`. Events of the same instant run in random order.
  void after(Nanoseconds delay, std::function<void()> event);
  /// Runs the earliest event. Returns false if nothing can happen any more.
  bool run_one();

  /// Returns a whole number in low .. high.
  std::int64_t random(std::int64_t low, std::int64_t high);
  /// Returns true in one of `times` cases.
  bool once_in(std::int64_t times) { return random(1, times) == 1; }
  /// Returns how long a step of a rank, a message or a task takes: mostly short, now and then long, since a
  /// process may lose its core or a message its way at any moment. The seed also decides how wild the delays
  /// get.
  Nanoseconds step_delay();
  Nanoseconds message_delay();

 private:
  struct Event {
    Nanoseconds when = 0;
    std::uint64_t tie = 0;
    std::size_t place = 0;  // in functions_: a heap moves its elements, and functions are large
  };

  std::mt19937_64 random_;
  Nanoseconds now_ = 0;
  Nanoseconds longest_message_ = 0;
  std::int64_t stall_once_in_ = 0;
  std::vector<Event> events_;  // a heap, the earliest on top
  std::vector<std::function<void()>> functions_;
  std::vector<std::size_t> free_places_;
};

}  // namespace tailrace::sim
