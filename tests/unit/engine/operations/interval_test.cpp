// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/operations/interval.hpp"

#include <gtest/gtest.h>

namespace tailrace::operations {
namespace {

constexpr std::int64_t day = 86400;

TEST(interval, is_a_duration_or_months) {
  EXPECT_EQ(*parse_interval("1h"), (IntervalLength{3600, 0}));
  EXPECT_EQ(*parse_interval("15m"), (IntervalLength{900, 0}));
  EXPECT_EQ(*parse_interval("5d"), (IntervalLength{5 * day, 0}));
  EXPECT_EQ(*parse_interval("1mo"), (IntervalLength{0, 1}));
  EXPECT_EQ(*parse_interval("3mo"), (IntervalLength{0, 3}));
  EXPECT_EQ(*parse_interval("2y"), (IntervalLength{0, 24}));
  for (const char* wrong : {"", "0", "0mo", "mo", "-1mo", "1month", "y", "1.5mo", "1h1mo", "13000mo"})
    EXPECT_EQ(parse_interval(wrong).status().code(), Code::settings) << wrong;
}

TEST(interval, each_lead_above_zero_is_in_one_interval_that_includes_its_end) {
  const Intervals hours({3600, 0}, {2026, 3, 1}, Calendar::proleptic_gregorian);
  EXPECT_EQ(hours.end_of(0), 0);
  EXPECT_EQ(hours.begin_of(0), 0);
  EXPECT_FALSE(hours.is_end(0));
  EXPECT_EQ(hours.end_of(1), 3600);
  EXPECT_EQ(hours.end_of(3600), 3600);
  EXPECT_EQ(hours.begin_of(3600), 0);
  EXPECT_TRUE(hours.is_end(3600));
  EXPECT_EQ(hours.end_of(3601), 7200);
  EXPECT_EQ(hours.begin_of(3601), 3600);
  EXPECT_FALSE(hours.is_end(3601));
}

void expect_months(Calendar calendar, const std::vector<std::int64_t>& days_of_months, std::int64_t length) {
  const Intervals months({0, length}, {2023, 11, 15, 6}, calendar);
  std::int64_t begin = 0;
  for (const std::int64_t days : days_of_months) {
    const std::int64_t end = begin + days * day;
    for (const std::int64_t lead : {begin + 1, begin + day, end - 1, end}) {
      EXPECT_EQ(months.end_of(lead), end) << lead;
      EXPECT_EQ(months.begin_of(lead), begin) << lead;
    }
    EXPECT_TRUE(months.is_end(end));
    EXPECT_FALSE(months.is_end(end - 1));
    begin = end;
  }
}

TEST(interval, months_are_those_of_the_calendar) {
  expect_months(Calendar::proleptic_gregorian, {30, 31, 31, 29, 31, 30}, 1);
  expect_months(Calendar::no_leap, {30, 31, 31, 28, 31, 30}, 1);
  expect_months(Calendar::day_360, {30, 30, 30, 30}, 1);
  expect_months(Calendar::proleptic_gregorian, {92, 90}, 3);
  expect_months(Calendar::proleptic_gregorian, {366, 365}, 12);
}

TEST(interval, the_leads_of_a_stream_may_have_another_unit) {
  const TimeAxis ms = TimeAxis::of_leads(*find_time_unit("ms"));
  EXPECT_EQ(*parse_interval("250ms", ms), (IntervalLength{250, 0}));
  EXPECT_EQ(*parse_interval("2s", ms), (IntervalLength{2000, 0}));
  EXPECT_EQ(text_of({250, 0}, ms), "250 ms");
  EXPECT_EQ(parse_interval("250ms").status().code(), Code::settings);
  EXPECT_EQ(parse_interval("1h", TimeAxis::of_model()).status().code(), Code::settings);
  const Intervals months({0, 1}, {2026, 2, 1}, Calendar::proleptic_gregorian, ms);
  EXPECT_EQ(months.end_of(1), 28 * day * 1000);
  EXPECT_EQ(months.end_of(28 * day * 1000 + 1), 59 * day * 1000);
  EXPECT_EQ(months.begin_of(28 * day * 1000 + 1), 28 * day * 1000);
  const TimeAxis ns = TimeAxis::of_leads(*find_time_unit("ns"));
  EXPECT_EQ(Intervals({0, 300 * 12}, {2026, 2, 1}, Calendar::proleptic_gregorian, ns).check().code(),
            Code::settings);
}

TEST(interval, months_begin_on_a_day_that_each_month_has) {
  const Calendar calendar = Calendar::proleptic_gregorian;
  EXPECT_TRUE(Intervals({0, 1}, {2026, 3, 28}, calendar).check().is_ok());
  EXPECT_EQ(Intervals({0, 1}, {2026, 3, 29}, calendar).check().code(), Code::settings);
  EXPECT_TRUE(Intervals({day, 0}, {2026, 3, 29}, calendar).check().is_ok());
}

}  // namespace
}  // namespace tailrace::operations
