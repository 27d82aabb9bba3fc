// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Times as writers of GRIB state them. The octets are set one by one: ecCodes writes few of these.
#include <gtest/gtest.h>

#include <optional>

#include "../../sources/messages.hpp"
#include "formats/grib2/reading/grib_traits.hpp"
#include "formats/grib2/sections.hpp"
#include "ground/base/text.hpp"

namespace tailrace::sources {
namespace {

using test::message;
using test::small_points;
using test::wave;
using test::with;

Result<std::string> valid_time(const ByteVector& bytes) {
  const auto source = open(test::file_of("a.grib", {bytes}), "a.grib", "");
  TR_TRY(source.status());
  return format_time(from_seconds((*source)->inventory().records.at(0).valid, Calendar::proleptic_gregorian));
}

void expect_valid(const std::string& what, const ByteVector& bytes, const std::string& time) {
  const Result<std::string> got = valid_time(bytes);
  EXPECT_TRUE(got.is_ok()) << what << ": " << got.status().text();
  if (got.is_ok()) EXPECT_EQ(*got, time) << what;
}

const codec::Keys base{{"dataDate", "20240228"}, {"dataTime", "0600"}};

/// A message of GRIB2 at one moment, with this unit and forecast time.
ByteVector moment(int unit, std::uint32_t step) {
  ByteVector bytes = message(2, with({base[0], base[1], {"shortName", "2t"}}), wave(small_points));
  std::byte* const product = &bytes[grib2::section_begin(bytes, 4)];
  grib2::put_number(product + 17, static_cast<std::uint64_t>(unit), 1);
  grib2::put_number(product + 18, step, 4);
  return bytes;
}

/// A message of GRIB2 over an interval. No `end` stands for octets that are 0.
ByteVector interval(int unit, std::uint32_t begin, int length_unit, std::uint32_t length,
                    const std::optional<DateTime>& end) {
  ByteVector bytes =
      message(2, with({base[0], base[1], {"productDefinitionTemplateNumber", "8"}, {"shortName", "tp"}}),
              wave(small_points));
  std::byte* const product = &bytes[grib2::section_begin(bytes, 4)];
  grib2::put_number(product + 17, static_cast<std::uint64_t>(unit), 1);
  grib2::put_number(product + 18, begin, 4);
  const DateTime stated = end.value_or(DateTime{0, 0, 0, 0, 0, 0});
  grib2::put_number(product + 34, static_cast<std::uint64_t>(stated.year), 2);
  const int parts[]{stated.month, stated.day, stated.hour, stated.minute, stated.second};
  for (std::size_t i = 0; i < std::size(parts); ++i) product[36 + i] = static_cast<std::byte>(parts[i]);
  grib2::put_number(product + 48, static_cast<std::uint64_t>(length_unit), 1);
  grib2::put_number(product + 49, length, 4);
  return bytes;
}

/// A message of GRIB1 with these octets 18 to 21.
ByteVector first_edition(int unit, int p1, int p2, int indicator) {
  ByteVector bytes = message(1, with({base[0], base[1], {"shortName", "2t"}}), wave(small_points));
  const int octets[]{unit, p1, p2, indicator};
  for (std::size_t i = 0; i < std::size(octets); ++i) bytes[8 + 17 + i] = static_cast<std::byte>(octets[i]);
  return bytes;
}

TEST(grib_traits, of_grib1_are_not_read_beyond_a_section_whose_length_is_wrong) {
  for (const int length : {0, 11, 27, 0xffffff}) {
    ByteVector bytes = first_edition(1, 6, 0, 0);
    grib2::put_number(bytes.data() + 8, static_cast<std::uint64_t>(length), 3);
    const Result<Traits> traits = grib_traits(bytes, {}, {});
    EXPECT_TRUE(traits.is_ok() || traits.status().code() == Code::corrupt) << traits.status().text();
  }
}

TEST(grib_traits, an_interval_begins_where_the_message_says_also_before_the_base_time) {
  const std::int64_t hour = 3600;
  Record record;
  record.reference = to_seconds({2024, 2, 28, 6, 0, 0}, Calendar::proleptic_gregorian);
  const auto hours_from_reference = [&](int unit, std::uint32_t begin) -> std::optional<std::int64_t> {
    const Result<Traits> traits = grib_traits(interval(unit, begin, 1, 24, {}), record, {});
    if (!traits.is_ok() || !traits->begin) return std::nullopt;
    return (*traits->begin - record.reference) / hour;
  };
  EXPECT_EQ(hours_from_reference(1, 6), 6);
  EXPECT_EQ(hours_from_reference(1, 0x80000018), -24);  // a sign and a magnitude
  EXPECT_EQ(hours_from_reference(1, 0xffffffe8), -24);  // the two's complement
  EXPECT_EQ(hours_from_reference(3, 1), 29 * 24);
  EXPECT_EQ(hours_from_reference(1, 0xffffffff), std::nullopt) << "a missing time";
  EXPECT_EQ(hours_from_reference(14, 1), std::nullopt) << "a unit of GRIB1 alone";
}

TEST(grib_times, of_moments_may_be_negative_and_in_months_and_years) {
  expect_valid("-3 h", moment(1, 0x80000003), "2024-02-28T03:00:00Z");
  expect_valid("-3 h as two's complement", moment(1, 0xfffffffd), "2024-02-28T03:00:00Z");
  expect_valid("2 days", moment(2, 2), "2024-03-01T06:00:00Z");
  expect_valid("90 s", moment(13, 90), "2024-02-28T06:01:30Z");
  expect_valid("90 min", moment(0, 90), "2024-02-28T07:30:00Z");
  expect_valid("3 of 6 h", moment(11, 3), "2024-02-29T00:00:00Z");
  expect_valid("2 months", moment(3, 2), "2024-04-28T06:00:00Z");
  expect_valid("-2 months", moment(3, 0x80000002), "2023-12-28T06:00:00Z");
  expect_valid("3 years", moment(4, 3), "2027-02-28T06:00:00Z");
  expect_valid("a decade", moment(5, 1), "2034-02-28T06:00:00Z");
  expect_valid("a century", moment(7, 1), "2124-02-28T06:00:00Z");
  expect_valid("missing", moment(1, 0xffffffff), "2024-02-28T06:00:00Z");
  EXPECT_EQ(valid_time(moment(7, 0x7fffffff)).status().code(), Code::corrupt);
}

TEST(grib_times, the_end_of_an_interval_is_the_one_that_the_message_states) {
  const auto on = [](int month, int day, int hour, int minute = 0) {
    return DateTime{2024, month, day, hour, minute, 0};
  };
  expect_valid("0-24 h", interval(1, 0, 1, 24, on(2, 29, 6)), "2024-02-29T06:00:00Z");
  expect_valid("-1-22 h", interval(1, 0x80000001, 1, 23, on(2, 29, 4)), "2024-02-29T04:00:00Z");
  expect_valid("the day before", interval(1, 0x80000018, 1, 24, on(2, 28, 6)), "2024-02-28T06:00:00Z");
  expect_valid("a length of -24 h", interval(1, 24, 1, 0xffffffe8, on(2, 28, 6)), "2024-02-28T06:00:00Z");
  expect_valid("30 min and 12 h", interval(0, 30, 1, 12, on(2, 28, 18, 30)), "2024-02-28T18:30:00Z");
  expect_valid("another end", interval(0, 0, 1, 12, on(2, 28, 12)), "2024-02-28T12:00:00Z");
  expect_valid("a month", interval(3, 0, 3, 1, on(3, 28, 6)), "2024-03-28T06:00:00Z");
}

TEST(grib_times, an_interval_without_a_stated_end_ends_its_length_behind_its_begin) {
  expect_valid("1-7 h", interval(1, 1, 1, 6, {}), "2024-02-28T13:00:00Z");
  expect_valid("30 min and 12 h", interval(0, 30, 1, 12, {}), "2024-02-28T18:30:00Z");
  expect_valid("-24-0 h", interval(1, 0x80000018, 1, 24, {}), "2024-02-28T06:00:00Z");
  expect_valid("24 h, and -24 h", interval(1, 24, 1, 0x80000018, {}), "2024-02-28T06:00:00Z");
  expect_valid("2 months", interval(3, 1, 3, 1, {}), "2024-04-28T06:00:00Z");
  expect_valid("2 days, 1 year", interval(2, 2, 4, 1, {}), "2025-03-01T06:00:00Z");
}

TEST(grib_times, of_the_first_edition_follow_from_its_indicator_in_every_unit) {
  expect_valid("2 years", first_edition(4, 2, 0, 0), "2026-02-28T06:00:00Z");
  expect_valid("a normal", first_edition(6, 1, 0, 0), "2054-02-28T06:00:00Z");
  expect_valid("1-2 months", first_edition(3, 1, 2, 3), "2024-04-28T06:00:00Z");
  expect_valid("3 of 15 min", first_edition(13, 3, 0, 0), "2024-02-28T06:45:00Z");
  expect_valid("3 of 30 min", first_edition(14, 3, 0, 0), "2024-02-28T07:30:00Z");
  expect_valid("90 s", first_edition(254, 90, 0, 0), "2024-02-28T06:01:30Z");
  expect_valid("an analysis", first_edition(1, 0, 0, 1), "2024-02-28T06:00:00Z");
  expect_valid("300 h in two octets", first_edition(1, 1, 44, 10), "2024-03-11T18:00:00Z");
  for (const int indicator : {2, 3, 4, 5, 7})
    expect_valid(cat("6-12 h, indicator ", indicator), first_edition(1, 6, 12, indicator),
                 "2024-02-28T18:00:00Z");
  expect_valid("12 to 6 h before", first_edition(1, 12, 6, 6), "2024-02-28T00:00:00Z");
  expect_valid("a monthly mean of runs", first_edition(3, 1, 1, 113), "2024-03-28T06:00:00Z");
}

// The last day of a month counts where the day does not exist.
TEST(grib_times, months_end_on_a_day_that_exists) {
  ByteVector bytes = message(2, with({{"dataDate", "20240131"}, {"dataTime", "0600"}, {"shortName", "2t"}}),
                             wave(small_points));
  std::byte* const product = &bytes[grib2::section_begin(bytes, 4)];
  product[17] = std::byte{3};
  grib2::put_number(product + 18, 1, 4);
  expect_valid("January 31 and a month", bytes, "2024-02-29T06:00:00Z");
}

}  // namespace
}  // namespace tailrace::sources
