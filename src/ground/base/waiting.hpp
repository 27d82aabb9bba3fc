// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "ground/base/status.hpp"

namespace tailrace {

/// The time between two looks at something that nobody announces. Each pause is twice as long as the one
/// before, from the shortest to the longest. comm::Idling differs: it yields the core first, because ranks
/// that call one after the other should meet before any of them sleeps.
class GrowingPause {
 public:
  using Time = std::chrono::nanoseconds;
  GrowingPause(Time shortest, Time longest) : shortest_(shortest), longest_(longest), next_(shortest) {}

  /// Notes that something moved on: the next pause is the shortest.
  void moved() { next_ = shortest_; }
  /// Returns the length of the pause before the next look.
  [[nodiscard]] Time next() { return std::exchange(next_, std::max(next_, std::min(2 * next_, longest_))); }

 private:
  Time shortest_;
  Time longest_;
  Time next_;
};

/// Which failure passes by itself, and how long it is worth waiting for that.
struct Patience {
  Code code;
  std::chrono::nanoseconds period;             // between two attempts
  std::chrono::nanoseconds limit;              // 0: there is one attempt
  std::chrono::nanoseconds longest_period{0};  // the period doubles up to this
};

/// Calls `attempt`, which returns a Status or a Result, until it no longer fails with the patience's code, or
/// until the limit has passed. Blocks meanwhile: call it only on a thread that may wait. Returns what the
/// last attempt returned.
template <typename Attempt>
auto try_patiently(const Patience& patience, Attempt attempt) {
  const auto fails_with = [](const auto& tried) {
    if constexpr (requires { tried.code(); })
      return tried.code();
    else
      return tried.status().code();
  };
  const auto begin = std::chrono::steady_clock::now();
  GrowingPause pause(patience.period, patience.longest_period);
  for (;;) {
    auto tried = attempt();
    if (fails_with(tried) != patience.code) return tried;
    const std::chrono::nanoseconds left = patience.limit - (std::chrono::steady_clock::now() - begin);
    if (left <= std::chrono::nanoseconds::zero()) return tried;
    std::this_thread::sleep_for(std::min(pause.next(), left));
  }
}

}  // namespace tailrace
