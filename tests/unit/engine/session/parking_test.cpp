// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/session/parking.hpp"

#include <gtest/gtest.h>

namespace tailrace::session {
namespace {

using std::chrono::microseconds;

TEST(Parking, with_cores_for_all_ranks_is_the_same_however_long_nothing_moves) {
  Parking alone({false, false}), with_others({false, true});
  for (int looks = 0; looks < 100; ++looks) {
    EXPECT_EQ(alone.next(), microseconds(500));
    EXPECT_EQ(with_others.next(), microseconds(100));
  }
  EXPECT_FALSE(alone.is_to_hurry(10 * Parking::patience));
}

TEST(Parking, on_a_shared_core_grows_to_its_limit_and_starts_over_when_something_moves) {
  Parking parking({true, true});
  parking.moved(0);
  EXPECT_EQ(parking.next(), microseconds(100));
  EXPECT_EQ(parking.next(), microseconds(200));
  for (int looks = 0; looks < 100; ++looks) EXPECT_LE(parking.next(), Parking::longest);
  EXPECT_EQ(parking.next(), Parking::longest);
  parking.moved(1);
  EXPECT_EQ(parking.next(), microseconds(100));
}

TEST(Parking, on_a_shared_core_hurries_once_each_time_that_nothing_has_moved_for_long) {
  constexpr std::int64_t patience = Parking::patience;
  Parking parking({true, false});
  parking.moved(1000);
  EXPECT_FALSE(parking.is_to_hurry(999 + patience));
  EXPECT_TRUE(parking.is_to_hurry(1000 + patience));
  EXPECT_FALSE(parking.is_to_hurry(1001 + patience));
  parking.moved(2000 + patience);
  EXPECT_FALSE(parking.is_to_hurry(1000 + 2 * patience));
  EXPECT_TRUE(parking.is_to_hurry(2000 + 2 * patience));
  // Other things may move all the time, but not what one rank waits for.
  std::int64_t hurries = 0;
  for (std::int64_t now = 3 * patience; now < 23 * patience; now += patience / 10) {
    parking.moved(now);
    hurries += parking.is_to_hurry(now) ? 1 : 0;
  }
  EXPECT_EQ(hurries, 2);
}

}  // namespace
}  // namespace tailrace::session
