// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>

namespace tailrace::comm {

/// A waiting rank gives its core away between two looks, first by yielding, then by sleeping. A rank that
/// sleeps comes 0.1 ms late, and then the others wait for it: ranks that call one after the other should meet
/// before anybody sleeps. If ranks share a core, the awaited rank may need it.
class Idling {
 public:
  explicit Idling(bool has_own_core) : yielding_(has_own_core ? longest_yielding : 0) {}

  /// Notes that something moved on: the awaited event may be near.
  void moved() { looks_ = sleeps_ = 0; }
  /// Call it after a look in vain at `now`. Returns the nanoseconds to sleep before the next look, or 0 to
  /// yield.
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
