// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>

namespace tailrace::comm {

/// Tells a waiting rank what to do between two looks: first yield its core, later sleep. If ranks share a
/// core, the awaited rank may need it. But a rank that sleeps comes 0.1 ms late, and the others then wait for
/// it. So ranks that call one after the other should meet before any of them sleeps.
class Idling {
 public:
  explicit Idling(bool has_own_core) : yielding_(has_own_core ? longest_yielding : 0) {}

  /// Notes that something moved on: the awaited event may be near, and the rank yields again instead of
  /// sleeping.
  void moved() { looks_ = sleeps_ = 0; }
  /// Called after a look at `now` that found nothing. Returns the nanoseconds to sleep before the next look,
  /// or 0 to yield.
  std::int64_t next(std::int64_t now) {
    if (looks_ == 0) since_ = now;
    if (looks_ < yields || now - since_ < yielding_) {
      ++looks_;
      return 0;
    }
    return ++sleeps_ <= short_sleeps ? 50'000 : 200'000;
  }

  static constexpr int yields = 49;
  static constexpr int short_sleeps = 200;
  static constexpr std::int64_t longest_yielding = 200'000;  // nanoseconds

 private:
  std::int64_t yielding_;
  std::int64_t since_ = 0;
  int looks_ = 0;
  int sleeps_ = 0;
};

}  // namespace tailrace::comm
