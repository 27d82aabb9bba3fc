// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "ground/base/status.hpp"

namespace tailrace {

/// The values are the numbers of the calendars in files. In `all_leap` each year has 366 days.
enum class Calendar : std::int32_t { proleptic_gregorian, day_360, no_leap, julian, all_leap };
/// True if there is a calendar with this number.
constexpr bool is_calendar(std::int32_t number) {
  return number >= 0 && number <= static_cast<std::int32_t>(Calendar::all_leap);
}

/// A date and time of day, UTC, in some calendar.
struct DateTime {
  std::int64_t year = 1970;
  int month = 1, day = 1, hour = 0, minute = 0, second = 0;
  friend auto operator<=>(const DateTime&, const DateTime&) = default;
};

/// Convert between a date and the seconds since 1970-01-01T00:00:00 of the same calendar. Exact for |year| <
/// 10^9.
std::int64_t to_seconds(const DateTime& time, Calendar calendar);
DateTime from_seconds(std::int64_t seconds, Calendar calendar);
bool is_valid(const DateTime& time, Calendar calendar);

/// Reads a time in the forms of ISO 8601: "2026-03-01T00:00Z", "2026-03-01 06", "2026-03-01T00:00:30Z",
/// "20260301T06". The zone must be Z or absent.
Result<DateTime> parse_time(std::string_view text, Calendar calendar);
std::string format_time(const DateTime& time);  // "2026-03-01T00:00:00Z"

/// Returns the seconds of "15m", "6h", "90s", "2d", "1h30m" or "00:15" (hours and minutes). A negative or
/// empty duration is an error.
Result<std::int64_t> parse_duration(std::string_view text);
/// Parses the names of the CF conventions, such as "standard", "360_day", "noleap", "julian" and
/// "all_leap".
Result<Calendar> parse_calendar(std::string_view text);
std::string_view name_of(Calendar calendar);

}  // namespace tailrace
