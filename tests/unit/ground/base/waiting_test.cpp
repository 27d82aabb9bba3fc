// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/base/waiting.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace tailrace {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

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

/// Counts the attempts, of which those after the first `failures` return `value`.
Result<std::unique_ptr<int>> attempt(int& tries, int failures, Code code) {
  if (++tries <= failures) return Status(code, "not yet");
  return std::make_unique<int>(tries);
}

TEST(try_patiently, tries_until_it_succeeds) {
  int tries = 0;
  const auto got =
      try_patiently({Code::space, milliseconds(1), hours(1)}, [&] { return attempt(tries, 3, Code::space); });
  ASSERT_TRUE(got.is_ok());
  EXPECT_EQ(**got, 4);
}

TEST(try_patiently, waits_longer_and_longer_if_asked_to) {
  int tries = 0;
  const auto begin = std::chrono::steady_clock::now();
  const auto got = try_patiently({Code::space, milliseconds(1), hours(1), milliseconds(16)},
                                 [&] { return attempt(tries, 5, Code::space); });
  ASSERT_TRUE(got.is_ok());
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(1 + 2 + 4 + 8 + 16));
}

TEST(try_patiently, returns_another_failure_at_once) {
  int tries = 0;
  const auto got =
      try_patiently({Code::space, hours(1), hours(1)}, [&] { return attempt(tries, 9, Code::io); });
  EXPECT_EQ(got.status().code(), Code::io);
  EXPECT_EQ(tries, 1);
}

TEST(try_patiently, tries_once_if_no_time_is_left) {
  for (const nanoseconds limit : {nanoseconds(0), nanoseconds(-5)}) {
    int tries = 0;
    const Status status = try_patiently({Code::space, hours(1), limit},
                                        [&] { return attempt(tries, 9, Code::space).status(); });
    EXPECT_EQ(status.code(), Code::space);
    EXPECT_EQ(tries, 1);
  }
}

TEST(try_patiently, tries_for_the_last_time_at_its_limit_however_long_the_period_is) {
  int tries = 0;
  const Status status = try_patiently({Code::space, hours(1), milliseconds(5)},
                                      [&] { return attempt(tries, 9, Code::space).status(); });
  EXPECT_EQ(status.text(), "not yet");
  EXPECT_EQ(tries, 2);
}

}  // namespace
}  // namespace tailrace
