// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/base/waiting.hpp"

#include <gtest/gtest.h>

namespace tailrace {
namespace {

using std::chrono::milliseconds;

TEST(GrowingPause, doubles_to_its_longest_and_is_short_again_after_something_moved) {
  GrowingPause pause(milliseconds(10), milliseconds(35));
  EXPECT_EQ(pause.next(), milliseconds(10));
  EXPECT_EQ(pause.next(), milliseconds(20));
  EXPECT_EQ(pause.next(), milliseconds(35));
  EXPECT_EQ(pause.next(), milliseconds(35));
  pause.moved();
  EXPECT_EQ(pause.next(), milliseconds(10));
}

TEST(GrowingPause, whose_shortest_is_more_than_its_longest_stays_as_it_is) {
  GrowingPause pause(milliseconds(10), milliseconds(2));
  for (int looks = 0; looks < 3; ++looks) EXPECT_EQ(pause.next(), milliseconds(10));
}

}  // namespace
}  // namespace tailrace
