// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/base/time_axis.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <span>
#include <vector>

namespace tailrace {
namespace {

TimeAxis leads_in(std::string_view unit) { return TimeAxis::of_leads(*find_time_unit(unit)); }
std::int64_t code(double time) { return *TimeAxis::code_of(time); }

TEST(TimeAxis, leads_are_seconds_by_default) {
  const TimeAxis axis;
  EXPECT_TRUE(axis.is_default());
  EXPECT_EQ(axis, leads_in("s"));
  EXPECT_EQ(axis.units({2026, 3, 1}), "seconds since 2026-03-01 00:00:00");
  EXPECT_EQ(axis.at(21600), "lead 21600 s");
  EXPECT_EQ(axis.number(21600), 21600);
}

TEST(TimeAxis, codes_are_ordered_as_the_times_and_give_them_back) {
  const double most = std::numeric_limits<double>::max(), least = std::numeric_limits<double>::denorm_min();
  const std::vector<double> times{-most, -1.5, -1, -least, 0, least, 0.1, 0.1 + 0.2, 1, 1e300, most};
  for (std::size_t i = 0; i < times.size(); ++i) {
    EXPECT_EQ(TimeAxis::time_of(code(times[i])), times[i]);
    if (i > 0) EXPECT_LT(code(times[i - 1]), code(times[i])) << times[i];
  }
  EXPECT_EQ(code(0.0), 0);
  EXPECT_EQ(code(-0.0), 0);
  EXPECT_NE(code(0.1 + 0.2), code(0.3));
  for (const double wrong : {std::nan(""), HUGE_VAL, -HUGE_VAL})
    EXPECT_EQ(TimeAxis::code_of(wrong).status().code(), Code::argument);
}

TEST(TimeAxis, times_of_a_model_need_no_date) {
  TimeAxis axis = TimeAxis::of_model();
  EXPECT_FALSE(axis.has_base());
  EXPECT_EQ(axis.units({}), "s");
  EXPECT_EQ(axis.at(code(0.667)), "time 0.667 s");
  EXPECT_EQ(axis.number(code(0.667)), 0.667);
  EXPECT_TRUE(axis.check(code(-5)).is_ok());
  ASSERT_TRUE(axis.set_units("1").is_ok());
  EXPECT_EQ(axis.at(code(12)), "time 12");
  ASSERT_TRUE(axis.set_units("Alfven times").is_ok());
  EXPECT_EQ(axis.set_base().code(), Code::argument);
  ASSERT_TRUE(axis.set_units("days").is_ok());
}

TEST(TimeAxis, times_of_a_model_may_count_from_a_date) {
  TimeAxis axis = TimeAxis::of_model();
  ASSERT_TRUE(axis.set_units("h").is_ok());
  ASSERT_TRUE(axis.set_base().is_ok());
  EXPECT_EQ(axis.units({2026, 3, 1}), "hours since 2026-03-01 00:00:00");
  EXPECT_EQ(axis.floor_seconds(code(1.5)), 5400);
  EXPECT_EQ(axis.floor_seconds(code(-0.0001)), -1);
  EXPECT_EQ(TimeAxis::time_of(*axis.lead_at(5400)), 1.5);
  EXPECT_EQ(axis.set_units("Alfven times").code(), Code::argument);
}

TEST(TimeAxis, whole_seconds_are_found_in_days_and_hours) {
  for (const std::string_view unit : {"d", "h", "min"}) {
    TimeAxis axis = TimeAxis::of_model();
    ASSERT_TRUE(axis.set_units(unit).is_ok());
    ASSERT_TRUE(axis.set_base().is_ok());
    const double seconds = static_cast<double>(find_time_unit(unit)->nanoseconds) / 1e9;
    for (std::int64_t k = 0; k < 2000; ++k) {
      EXPECT_EQ(axis.floor_seconds(code(static_cast<double>(k * 600) / seconds)), k * 600) << unit;
      EXPECT_EQ(axis.floor_seconds(*axis.lead_at(k * 3600)), k * 3600) << unit;
      EXPECT_EQ(axis.floor_seconds(code((static_cast<double>(k * 600) + 0.5) / seconds)), k * 600) << unit;
    }
  }
}

TEST(TimeAxis, one_unit_has_one_spelling_where_times_count_from_a_date) {
  TimeAxis one = TimeAxis::of_model(), other = TimeAxis::of_model();
  ASSERT_TRUE(one.set_units("d").is_ok());
  ASSERT_TRUE(other.set_units("days").is_ok());
  EXPECT_NE(one, other);  // the file says what the program has said
  ASSERT_TRUE(one.set_base().is_ok());
  ASSERT_TRUE(other.set_base().is_ok());
  EXPECT_EQ(one, other);
}

TEST(TimeAxis, the_variable_may_count_another_unit_than_leads) {
  TimeAxis axis = leads_in("ms");
  EXPECT_EQ(axis.units({2026, 3, 1}), "milliseconds since 2026-03-01 00:00:00");
  EXPECT_EQ(axis.number(667), 667);
  ASSERT_TRUE(axis.set_units("seconds").is_ok());
  EXPECT_EQ(axis.units({2026, 3, 1}), "seconds since 2026-03-01 00:00:00");
  EXPECT_EQ(axis.number(667), 0.667);
  EXPECT_EQ(axis.number(2000), 2);
  ASSERT_TRUE(axis.set_units("d").is_ok());
  EXPECT_EQ(axis.number(43'200'000), 0.5);
  EXPECT_EQ(axis.set_units("months").code(), Code::argument);
}

TEST(TimeAxis, conversions_are_exact_or_refused) {
  const TimeAxis fine = leads_in("ms"), coarse = leads_in("h");
  EXPECT_EQ(fine.seconds(2000), 2);
  EXPECT_EQ(fine.seconds(2001), std::nullopt);
  EXPECT_EQ(fine.floor_seconds(2999), 2);
  EXPECT_EQ(fine.floor_seconds(-1), -1);
  EXPECT_EQ(fine.lead_at(3), 3000);
  EXPECT_EQ(coarse.seconds(6), 21600);
  EXPECT_EQ(coarse.lead_at(21600), 6);
  EXPECT_EQ(coarse.lead_at(900), std::nullopt);
  EXPECT_EQ(leads_in("ns").lead_at(std::int64_t{1} << 40), std::nullopt);  // beyond 64 bits
}

TEST(TimeAxis, lengths_are_whole_numbers_of_the_unit) {
  const TimeAxis fine = leads_in("ms");
  EXPECT_EQ(*fine.parse_length("250ms"), 250);
  EXPECT_EQ(*fine.parse_length("1m30s"), 90'000);
  EXPECT_EQ(*fine.parse_length("00:15"), 900'000);
  EXPECT_EQ(fine.parse_length("250us").status().code(), Code::argument);
  EXPECT_EQ(*TimeAxis().parse_length("2000ms"), 2);
  EXPECT_EQ(TimeAxis().parse_length("250ms").status().code(), Code::argument);
  EXPECT_EQ(*leads_in("h").parse_length("1d"), 24);
  EXPECT_NE(leads_in("ns").parse_length("300000d").status().text().find("too long"), std::string::npos);
  for (const std::string_view wrong : {"", "-3ms", "ms", "3 ms", "90", "99999999999999999999ns"})
    EXPECT_EQ(fine.parse_length(wrong).status().code(), Code::argument) << wrong;
}

TEST(TimeAxis, leads_that_no_variable_of_time_holds_are_refused) {
  EXPECT_EQ(TimeAxis().check(-1).code(), Code::argument);
  EXPECT_EQ(TimeAxis().check(-1).text(), "lead -1 s is before the base time");
  const std::int64_t most = std::int64_t{1} << 53;
  EXPECT_TRUE(leads_in("ns").check(most).is_ok());
  EXPECT_EQ(leads_in("ns").check(most + 1).code(), Code::argument);
  EXPECT_NE(leads_in("d").check(1'000'000'000'000'000).text().find("10^9 years"), std::string::npos);
  TimeAxis shown = leads_in("d");
  ASSERT_TRUE(shown.set_units("ns").is_ok());
  EXPECT_NE(shown.check(200).text().find("beyond 2^53 nanoseconds"), std::string::npos);
  EXPECT_TRUE(shown.check(100).is_ok());
}

TEST(TimeAxis, parts_are_packed_and_checked) {
  TimeAxis model = TimeAxis::of_model();
  model.set_name("Times");
  for (const TimeAxis& axis : {TimeAxis(), leads_in("us"), model}) {
    Packer out;
    axis.pack(out);
    const ByteVector bytes = out.take();
    Unpacker in(bytes);
    const Result<TimeAxis> back = TimeAxis::unpack(in);
    ASSERT_TRUE(back.is_ok());
    EXPECT_EQ(*back, axis);
    Unpacker cut(std::span<const std::byte>(bytes).first(bytes.size() - 1));
    EXPECT_EQ(TimeAxis::unpack(cut).status().code(), Code::corrupt);
  }
  TimeAxis::Parts parts = TimeAxis().parts();
  parts.nanoseconds = 7;
  EXPECT_EQ(TimeAxis::of_parts(parts).status().code(), Code::corrupt);
  parts = TimeAxis().parts();
  parts.has_base = false;  // leads count from a base time
  EXPECT_EQ(TimeAxis::of_parts(parts).status().code(), Code::corrupt);
  parts = TimeAxis::of_model().parts();
  parts.units = "days";  // whose nanoseconds are others
  EXPECT_EQ(TimeAxis::of_parts(parts).status().code(), Code::corrupt);
}

}  // namespace
}  // namespace tailrace
