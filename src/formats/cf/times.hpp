// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "ground/base/calendar.hpp"
#include "ground/base/status.hpp"

namespace tailrace::cf {

/// The meaning of the numbers on a time axis, such as "hours since 1900-01-01 00:00:00", in a calendar.
struct TimeUnits {
  double unit_seconds = 1;
  std::int64_t base = 0;  // seconds since 1970 in the calendar
  Calendar calendar = Calendar::proleptic_gregorian;
};

/// Returns true if the text looks like units of a time axis: it has "since". The unit may be one that is not
/// read.
[[nodiscard]] bool are_time_units(std::string_view units);
/// Parses the attributes `units` and `calendar` of a time axis; an empty calendar is "standard". Units are
/// nanoseconds to weeks in the spellings of UDUNITS, and in the calendar "360_day" months. A base before 15
/// October 1582 in the calendar "standard" is a day of the Julian calendar. Returns Code::format for units of
/// no fixed length (months, years) and other calendars.
Result<TimeUnits> parse_time_units(std::string_view units, std::string_view calendar);
/// Returns the seconds since 1970 for which a number on the axis stands, rounded to whole seconds.
/// Code::corrupt if the number is NaN, or more than 10^9 years away.
Result<std::int64_t> seconds_at(const TimeUnits& units, double number);
/// Returns the nanoseconds that the time for which a number stands lies behind `seconds`, which seconds_at()
/// has returned for it. A number is the nearest whole number of seconds, milliseconds, microseconds or
/// nanoseconds from which it differs only as rounding may have it. Returns nothing if there is none.
std::optional<std::int64_t> rest_of(const TimeUnits& units, double number, std::int64_t seconds);

}  // namespace tailrace::cf
