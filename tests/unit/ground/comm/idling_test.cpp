// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/comm/idling.hpp"

#include <gtest/gtest.h>

namespace tailrace::comm {
namespace {

constexpr std::int64_t microsecond = 1000;

/// Returns how often a rank sleeps that waits for `waited` with looks of half a microsecond.
int sleeps_within(std::int64_t waited, bool has_own_core) {
  Idling idling(has_own_core);
  int sleeps = 0;
  for (std::int64_t now = 0; now < waited; now += microsecond / 2) {
    const std::int64_t sleep = idling.next(now);
    now += sleep;
    sleeps += sleep > 0 ? 1 : 0;
  }
  return sleeps;
}

TEST(Idling, ranks_with_cores_of_their_own_that_come_a_little_apart_meet_without_a_sleep) {
  EXPECT_EQ(sleeps_within(150 * microsecond, true), 0);
}

TEST(Idling, who_waits_for_long_sleeps_on_a_core_of_its_own_too) {
  EXPECT_GT(sleeps_within(1000 * microsecond, true), 10);
}

TEST(Idling, who_may_wait_for_a_rank_of_its_own_core_sleeps_after_fifty_looks) {
  Idling idling(false);
  for (int look = 1; look < 50; ++look) EXPECT_EQ(idling.next(0), 0);
  EXPECT_EQ(idling.next(0), 50 * microsecond);
}

/// Each yield may last as long as another process computes.
TEST(Idling, fifty_looks_come_before_a_sleep_however_long_they_take) {
  Idling idling(true);
  for (int look = 1; look < 50; ++look) EXPECT_EQ(idling.next(look * 4000 * microsecond), 0);
  EXPECT_EQ(idling.next(200'000 * microsecond), 50 * microsecond);
}

TEST(Idling, sleeps_become_longer_until_something_moves) {
  Idling idling(false);
  int short_sleeps = 0;
  while (idling.next(0) != 200 * microsecond) ++short_sleeps;
  EXPECT_GT(short_sleeps, 100);
  idling.moved();
  EXPECT_EQ(idling.next(0), 0);
}

}  // namespace
}  // namespace tailrace::comm
