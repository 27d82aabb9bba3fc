// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <algorithm>
#include <chrono>
#include <utility>

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

}  // namespace tailrace
