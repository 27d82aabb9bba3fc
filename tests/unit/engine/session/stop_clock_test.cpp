// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/session/stop_clock.hpp"

#include <gtest/gtest.h>

namespace tailrace::session {
namespace {

using Kind = TimeLimit::Kind;
constexpr double start = 1'800'000'000;  // Unix time of tr_init

bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(end_of, a_duration_counts_from_the_beginning) {
  const auto end = end_of({Kind::duration, 3600}, start, "");
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->seconds, 3600);
  EXPECT_EQ(end->origin, "TAILRACE_TIME_LIMIT");
}

TEST(end_of, a_time_is_as_far_away_as_it_is_from_the_beginning) {
  EXPECT_EQ(end_of({Kind::time, 1'800'000'090}, start, "")->seconds, 90);
  EXPECT_EQ(end_of({Kind::time, 1'799'999'990}, start, "")->seconds, -10);
}

TEST(end_of, slurms_end_counts_where_no_limit_is_set) {
  const auto end = end_of({}, start, "1800000600");
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->seconds, 600);
  EXPECT_EQ(end->origin, "SLURM_JOB_END_TIME");
  EXPECT_EQ(end_of({Kind::duration, 50}, start, "1800000600")->seconds, 50);
  EXPECT_FALSE(end_of({Kind::none, 0}, start, "1800000600").has_value());
}

TEST(end_of, what_slurm_does_not_say_is_no_limit) {
  for (const char* const text : {"", "0", "-5", "soon", "1800000600s", "99999999999999999999"}) {
    EXPECT_FALSE(end_of({}, start, text).has_value()) << text;
  }
}

TEST(stop_clock, without_an_end_never_stops) {
  StopClock clock({}, {});
  clock.saved(1e6);
  EXPECT_EQ(clock.why(1e9), "");
}

TEST(stop_clock, stops_a_given_margin_before_the_end_and_ever_after) {
  const StopClock clock(StopClock::End{100, "TAILRACE_TIME_LIMIT"}, 10);
  EXPECT_EQ(clock.why(89.9), "");
  EXPECT_TRUE(
      mentions(clock.why(90), "the time by TAILRACE_TIME_LIMIT ends in 10 s, and the margin is 10 s"));
  EXPECT_TRUE(mentions(clock.why(101.5), "ended 1.5 s ago"));
}

TEST(stop_clock, a_margin_of_nothing_stops_at_the_end) {
  StopClock clock(StopClock::End{100, ""}, 0);
  clock.saved(50);
  EXPECT_EQ(clock.why(99.9), "");
  EXPECT_NE(clock.why(100), "");
}

TEST(stop_clock, measures_the_longest_step_and_twice_the_longest_save) {
  StopClock clock(StopClock::End{100, ""}, {});
  EXPECT_EQ(clock.margin(), 5);
  clock.step_ended(30);  // the time before the first step is no step
  EXPECT_EQ(clock.margin(), 5);
  clock.step_ended(42);
  clock.step_ended(45);
  EXPECT_EQ(clock.margin(), 12 + 5);
  clock.saved(4);
  clock.saved(20);
  clock.saved(3);
  EXPECT_EQ(clock.margin(), 12 + 2 * 20 + 5);
  EXPECT_EQ(clock.longest_save(), 20);
  EXPECT_EQ(clock.why(42.9), "");
  EXPECT_TRUE(mentions(clock.why(43), "the margin is 57 s (longest step 12 s, longest save 20 s)"));
}

}  // namespace
}  // namespace tailrace::session
