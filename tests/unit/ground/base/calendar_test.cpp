// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/base/calendar.hpp"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <random>

namespace tailrace {
namespace {

constexpr std::array kCalendars{Calendar::proleptic_gregorian, Calendar::day_360, Calendar::no_leap,
                                Calendar::julian, Calendar::all_leap};

// Returns the day after, by the rules of a calendar on the wall: an implementation of its own, to check
// against.
DateTime next_day(DateTime time, Calendar calendar) {
  constexpr std::array days{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = time.year % 400 == 0 || (time.year % 4 == 0 && time.year % 100 != 0);
  int length = days[static_cast<std::size_t>(time.month - 1)];
  const bool has_leap_day = (calendar == Calendar::proleptic_gregorian && leap) ||
                            (calendar == Calendar::julian && time.year % 4 == 0) ||
                            calendar == Calendar::all_leap;
  if (has_leap_day && time.month == 2) length = 29;
  if (calendar == Calendar::day_360) length = 30;
  if (++time.day <= length) return time;
  time.day = 1;
  if (++time.month <= 12) return time;
  time.month = 1;
  ++time.year;
  return time;
}

struct Known {
  DateTime time;
  std::int64_t seconds;
};

TEST(calendar, gregorian_times_have_the_unix_seconds_of_date) {
  // The seconds come from `date -u -d TIME +%s`.
  const std::array known{Known{{1970, 1, 1, 0, 0, 0}, 0},
                         Known{{1969, 12, 31, 23, 59, 59}, -1},
                         Known{{2000, 2, 29, 12, 0, 0}, 951825600},
                         Known{{2001, 9, 9, 1, 46, 40}, 1000000000},
                         Known{{2026, 3, 1, 0, 0, 0}, 1772323200},
                         Known{{2038, 1, 19, 3, 14, 8}, 2147483648},
                         Known{{1900, 3, 1, 0, 0, 0}, -2203891200},
                         Known{{1600, 2, 29, 0, 0, 0}, -11670998400},
                         Known{{1, 1, 1, 0, 0, 0}, -62135596800},
                         Known{{0, 1, 1, 0, 0, 0}, -62167219200},
                         Known{{9999, 12, 31, 23, 59, 59}, 253402300799}};
  for (const Known& one : known) {
    EXPECT_EQ(to_seconds(one.time, Calendar::proleptic_gregorian), one.seconds) << format_time(one.time);
    EXPECT_EQ(from_seconds(one.seconds, Calendar::proleptic_gregorian), one.time) << one.seconds;
  }
}

TEST(calendar, other_calendars_count_from_1970_with_their_own_year) {
  EXPECT_EQ(to_seconds({1971, 1, 1, 0, 0, 0}, Calendar::day_360), 360 * 86400);
  EXPECT_EQ(to_seconds({1970, 2, 30, 0, 0, 0}, Calendar::day_360), 59 * 86400);
  EXPECT_EQ(to_seconds({1969, 12, 30, 0, 0, 0}, Calendar::day_360), -86400);
  EXPECT_EQ(to_seconds({1972, 3, 1, 0, 0, 0}, Calendar::no_leap), (2 * 365 + 59) * 86400);
  EXPECT_EQ(to_seconds({2070, 1, 1, 0, 0, 0}, Calendar::no_leap), std::int64_t{36500} * 86400);
  EXPECT_EQ(to_seconds({1970, 1, 1, 0, 0, 0}, Calendar::julian), 0);
  EXPECT_EQ(to_seconds({1900, 3, 1, 0, 0, 0}, Calendar::julian), std::int64_t{-25508} * 86400);
  EXPECT_EQ(to_seconds({2070, 1, 1, 0, 0, 0}, Calendar::all_leap), std::int64_t{36600} * 86400);
}

TEST(calendar, every_day_of_1200_years_follows_the_day_before) {
  for (const Calendar calendar : kCalendars) {
    DateTime time{1500, 1, 1, 6, 30, 15};
    for (std::int64_t seconds = to_seconds(time, calendar); time.year < 2700; seconds += 86400) {
      ASSERT_TRUE(is_valid(time, calendar)) << format_time(time);
      ASSERT_EQ(to_seconds(time, calendar), seconds) << format_time(time) << " " << name_of(calendar);
      ASSERT_EQ(from_seconds(seconds, calendar), time) << seconds << " " << name_of(calendar);
      time = next_day(time, calendar);
    }
  }
}

TEST(calendar, seconds_survive_the_round_trip_over_a_billion_years_both_ways) {
  std::mt19937_64 random(1);
  std::uniform_int_distribution<std::int64_t> seconds(-30'000'000'000'000'000, 30'000'000'000'000'000);
  for (const Calendar calendar : kCalendars) {
    for (int i = 0; i < 100000; ++i) {
      const std::int64_t given = seconds(random);
      const DateTime time = from_seconds(given, calendar);
      ASSERT_TRUE(is_valid(time, calendar)) << given;
      ASSERT_EQ(to_seconds(time, calendar), given) << format_time(time);
    }
  }
}

TEST(calendar, later_seconds_are_later_times) {
  std::mt19937_64 random(2);
  std::uniform_int_distribution<std::int64_t> seconds(-200'000'000'000, 200'000'000'000);
  for (const Calendar calendar : kCalendars) {
    for (int i = 0; i < 20000; ++i) {
      const std::int64_t a = seconds(random);
      const std::int64_t b = seconds(random);
      ASSERT_EQ(a < b, from_seconds(a, calendar) < from_seconds(b, calendar)) << a << " " << b;
    }
  }
}

TEST(calendar, the_extreme_second_counts_do_not_overflow) {
  for (const Calendar calendar : kCalendars) {
    EXPECT_LT(from_seconds(std::numeric_limits<std::int64_t>::min(), calendar).year, -200'000'000'000);
    EXPECT_GT(from_seconds(std::numeric_limits<std::int64_t>::max(), calendar).year, 200'000'000'000);
  }
}

TEST(calendar, only_days_that_exist_are_valid) {
  const auto valid = [](int year, int month, int day, Calendar calendar) {
    return is_valid({year, month, day, 0, 0, 0}, calendar);
  };
  EXPECT_TRUE(valid(2024, 2, 29, Calendar::proleptic_gregorian));
  EXPECT_FALSE(valid(2023, 2, 29, Calendar::proleptic_gregorian));
  EXPECT_FALSE(valid(1900, 2, 29, Calendar::proleptic_gregorian));
  EXPECT_TRUE(valid(2000, 2, 29, Calendar::proleptic_gregorian));
  EXPECT_FALSE(valid(2024, 2, 30, Calendar::proleptic_gregorian));
  EXPECT_FALSE(valid(2024, 2, 29, Calendar::no_leap));
  EXPECT_TRUE(valid(1900, 2, 29, Calendar::julian));
  EXPECT_FALSE(valid(1901, 2, 29, Calendar::julian));
  EXPECT_TRUE(valid(2023, 2, 29, Calendar::all_leap));
  EXPECT_TRUE(valid(2023, 2, 30, Calendar::day_360));
  EXPECT_FALSE(valid(2023, 1, 31, Calendar::day_360));
  EXPECT_FALSE(valid(2023, 0, 1, Calendar::no_leap));
  EXPECT_FALSE(valid(2023, 13, 1, Calendar::no_leap));
  EXPECT_FALSE(valid(2023, 4, 31, Calendar::no_leap));
  EXPECT_FALSE(valid(2023, 4, 0, Calendar::no_leap));
  EXPECT_FALSE(valid(1'000'000'000, 1, 1, Calendar::no_leap));
  EXPECT_FALSE(valid(-1'000'000'000, 1, 1, Calendar::no_leap));
}

TEST(calendar, only_clock_times_that_exist_are_valid) {
  const auto valid = [](int h, int m, int s) { return is_valid({2026, 1, 1, h, m, s}, Calendar::day_360); };
  EXPECT_TRUE(valid(23, 59, 59));
  EXPECT_FALSE(valid(24, 0, 0));
  EXPECT_FALSE(valid(0, 60, 0));
  EXPECT_FALSE(valid(0, 0, 60));
  EXPECT_FALSE(valid(-1, 0, 0));
  EXPECT_FALSE(valid(0, -1, 0));
  EXPECT_FALSE(valid(0, 0, -1));
}

TEST(calendar, parses_every_documented_form_of_a_time) {
  const auto parsed = [](std::string_view text) {
    const Result<DateTime> time = parse_time(text, Calendar::proleptic_gregorian);
    return time.is_ok() ? format_time(*time) : time.status().text();
  };
  EXPECT_EQ(parsed("2026-03-01T00:00Z"), "2026-03-01T00:00:00Z");
  EXPECT_EQ(parsed("2026-03-01T00:00:30Z"), "2026-03-01T00:00:30Z");
  EXPECT_EQ(parsed("2026-03-01 06"), "2026-03-01T06:00:00Z");
  EXPECT_EQ(parsed("2026-03-01 06:15"), "2026-03-01T06:15:00Z");
  EXPECT_EQ(parsed("2026-03-01"), "2026-03-01T00:00:00Z");
  EXPECT_EQ(parsed("2026-03-01Z"), "2026-03-01T00:00:00Z");
  EXPECT_EQ(parsed("20260301"), "2026-03-01T00:00:00Z");
  EXPECT_EQ(parsed("20260301T06"), "2026-03-01T06:00:00Z");
  EXPECT_EQ(parsed("20260301T0615"), "2026-03-01T06:15:00Z");
  EXPECT_EQ(parsed("20260301T061530Z"), "2026-03-01T06:15:30Z");
  EXPECT_EQ(parsed("2026030106"), "2026-03-01T06:00:00Z");
  EXPECT_EQ(parsed("202603010615"), "2026-03-01T06:15:00Z");
  EXPECT_EQ(parsed("-0044-03-15T12:00Z"), "-0044-03-15T12:00:00Z");
  EXPECT_EQ(parsed("+12026-03-01"), "+12026-03-01T00:00:00Z");
}

TEST(calendar, refuses_what_is_no_time_and_shows_how_to_write_one) {
  for (const std::string_view text : {"",
                                      "x",
                                      "2026",
                                      "2026-03",
                                      "2026-3-1",
                                      "2026-03-01T",
                                      "2026-03-01T6",
                                      "2026-03-01T06:",
                                      "2026-03-01T06:0",
                                      "2026-03-01T06:00:",
                                      "2026-03-01T06:00:00.5",
                                      "2026-03-01T06:00ZZ",
                                      "2026-03-01 Z",
                                      "20260301T",
                                      "202603",
                                      "2026030",
                                      "202603010",
                                      "20260301061",
                                      "2026-03-01T00:00:00:00",
                                      " 2026-03-01",
                                      "2026-03-01 ",
                                      "26-03-01"}) {
    const Result<DateTime> time = parse_time(text, Calendar::proleptic_gregorian);
    ASSERT_FALSE(time.is_ok()) << text;
    EXPECT_EQ(time.status().code(), Code::argument);
    EXPECT_NE(time.status().text().find("2026-03-01T00:00Z"), std::string::npos) << time.status().text();
  }
}

TEST(calendar, a_time_that_the_calendar_lacks_is_refused_with_its_name) {
  const Result<DateTime> time = parse_time("2024-02-29", Calendar::no_leap);
  ASSERT_FALSE(time.is_ok());
  EXPECT_EQ(time.status().text(), "\"2024-02-29\" does not exist in the calendar noleap");
  EXPECT_TRUE(parse_time("2023-02-30", Calendar::day_360).is_ok());
  EXPECT_FALSE(parse_time("2023-02-30", Calendar::proleptic_gregorian).is_ok());
  EXPECT_FALSE(parse_time("2023-02-01T24:00", Calendar::proleptic_gregorian).is_ok());
}

TEST(calendar, a_foreign_zone_is_refused_by_name) {
  for (const std::string_view text : {"2026-03-01T00:00+01:00", "2026-03-01T00:00-05", "20260301T00+0100"}) {
    const Result<DateTime> time = parse_time(text, Calendar::proleptic_gregorian);
    ASSERT_FALSE(time.is_ok()) << text;
    EXPECT_NE(time.status().text().find("zone"), std::string::npos) << time.status().text();
  }
}

TEST(calendar, what_is_printed_parses_to_the_same_time) {
  std::mt19937_64 random(3);
  std::uniform_int_distribution<std::int64_t> seconds(-1'000'000'000'000'000, 1'000'000'000'000'000);
  for (const Calendar calendar : kCalendars) {
    for (int i = 0; i < 20000; ++i) {
      const DateTime time = from_seconds(seconds(random), calendar);
      const Result<DateTime> again = parse_time(format_time(time), calendar);
      ASSERT_TRUE(again.is_ok()) << again.status().text();
      ASSERT_EQ(*again, time);
    }
  }
}

TEST(calendar, parses_durations) {
  const auto seconds = [](std::string_view text) {
    const Result<std::int64_t> duration = parse_duration(text);
    return duration.is_ok() ? *duration : -1;
  };
  EXPECT_EQ(seconds("15m"), 900);
  EXPECT_EQ(seconds("6h"), 21600);
  EXPECT_EQ(seconds("90s"), 90);
  EXPECT_EQ(seconds("2d"), 172800);
  EXPECT_EQ(seconds("1h30m"), 5400);
  EXPECT_EQ(seconds("1d2h3m4s"), 93784);
  EXPECT_EQ(seconds("20min"), 1200);
  EXPECT_EQ(seconds("1h20min5s"), 4805);
  EXPECT_EQ(seconds("00:15"), 900);
  EXPECT_EQ(seconds("100:00"), 360000);
  EXPECT_EQ(seconds("01:02:03"), 3723);
  EXPECT_EQ(seconds("0"), 0);
  EXPECT_EQ(seconds("0s"), 0);
  EXPECT_EQ(seconds("9223372036854775807s"), std::numeric_limits<std::int64_t>::max());
}

TEST(calendar, refuses_what_is_no_duration_and_shows_how_to_write_one) {
  for (const std::string_view text : {"",
                                      "-5m",
                                      "5",
                                      "m",
                                      "5x",
                                      "1.5h",
                                      "5m5m",
                                      "5m6h",
                                      "5m ",
                                      " 5m",
                                      "+5m",
                                      "00:60",
                                      "00:15:60",
                                      "1:2:3:4",
                                      ":15",
                                      "00:",
                                      "9223372036854775808s",
                                      "9223372036854775807h",
                                      "999999999999999999999d",
                                      "9223372036854775807s1s",
                                      "5H",
                                      "99999999999999999999:00",
                                      "9223372036854775807:00",
                                      "5ms"}) {
    const Result<std::int64_t> duration = parse_duration(text);
    ASSERT_FALSE(duration.is_ok()) << text;
    EXPECT_EQ(duration.status().code(), Code::argument);
    EXPECT_NE(duration.status().text().find("1h30m"), std::string::npos) << duration.status().text();
  }
}

TEST(calendar, names_are_read_and_a_misspelt_one_gets_its_nearest) {
  EXPECT_EQ(*parse_calendar("gregorian"), Calendar::proleptic_gregorian);
  EXPECT_EQ(*parse_calendar("standard"), Calendar::proleptic_gregorian);
  EXPECT_EQ(*parse_calendar("365_day"), Calendar::no_leap);
  EXPECT_EQ(*parse_calendar("366_day"), Calendar::all_leap);
  for (const Calendar calendar : kCalendars) EXPECT_EQ(*parse_calendar(name_of(calendar)), calendar);
  const Result<Calendar> wrong = parse_calendar("360_days");
  ASSERT_FALSE(wrong.is_ok());
  EXPECT_EQ(wrong.status().code(), Code::settings);
  EXPECT_NE(wrong.status().text().find("did you mean \"360_day\"?"), std::string::npos)
      << wrong.status().text();
}

}  // namespace
}  // namespace tailrace
