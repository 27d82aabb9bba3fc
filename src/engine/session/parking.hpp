// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>

#include "ground/base/waiting.hpp"

namespace tailrace::session {

/// Decides how long an idle server parks. Rings wake the server, messages do not. If ranks share cores, the
/// server looks less and less often, because a compute rank may need the core. After a while it also looks at
/// pieces that ranks have captured and not announced: a rank may wait for another rank without calling the
/// library.
class Parking {
 public:
  struct Conditions {
    bool crowded = false;  // fewer cores than ranks
    bool others = false;   // ranks that cannot ring send it messages
  };
  explicit Parking(const Conditions& conditions) : conditions_(conditions), pause_(pause_of(conditions)) {}

  /// Notes that ranks which cannot ring send messages from now on.
  void hear_messages() {
    if (std::exchange(conditions_.others, true)) return;
    pause_ = pause_of(conditions_);
  }
  /// Notes that something moved on at `now`.
  void moved(std::int64_t now) {
    since_ = now;
    pause_.moved();
  }
  /// Returns the longest time to park before the next look.
  [[nodiscard]] std::chrono::nanoseconds next() { return pause_.next(); }
  /// True if the server is to look, at `now`, at pieces that were not announced.
  [[nodiscard]] bool is_to_hurry(std::int64_t now) {
    // The server also looks now and then while other things move, since they may not help the rank that
    // waits.
    if (!conditions_.crowded || (now - since_ < patience && now - hurried_ < 10 * patience)) return false;
    since_ = hurried_ = now;
    return true;
  }

  static constexpr std::chrono::nanoseconds longest = std::chrono::milliseconds(2);
  static constexpr std::int64_t patience = 100'000'000;  // nanoseconds

 private:
  static GrowingPause pause_of(const Conditions& conditions) {
    const std::chrono::nanoseconds shortest = std::chrono::microseconds(conditions.others ? 100 : 500);
    return {shortest, conditions.crowded ? longest : shortest};
  }

  Conditions conditions_;
  GrowingPause pause_;
  std::int64_t since_ = 0;
  std::int64_t hurried_ = 0;
};

}  // namespace tailrace::session
