// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/grib2/time.hpp"

#include <limits>

#include "formats/grib2/sections.hpp"
#include "ground/base/text.hpp"

namespace tailrace::grib2 {

namespace {

constexpr TimeUnit hour{1, 3600, "h"};
constexpr TimeUnit minute{0, 60, "m"};
constexpr TimeUnit second{13, 1, "s"};

// Forecast times are signed 32-bit numbers, and ecCodes silently wraps what does not fit.
constexpr std::int64_t largest_time = std::numeric_limits<std::int32_t>::max();
// The year 65,535 means "missing".
constexpr std::int64_t largest_year = 65534;

DateTime after(const DateTime& base, std::int64_t lead) {
  return from_seconds(to_seconds(base, Calendar::proleptic_gregorian) + lead, Calendar::proleptic_gregorian);
}

}  // namespace

TimeUnit unit_of(std::int64_t start, std::int64_t end) {
  for (const TimeUnit& unit : {hour, minute}) {
    if (start % unit.seconds == 0 && end % unit.seconds == 0) return unit;
  }
  return second;
}

Result<Interval> in_seconds(const TimeAxis& axis, std::int64_t start, std::int64_t end) {
  for (const std::int64_t lead : {start, end}) {
    if (!axis.seconds(lead))
      return Status(Code::format,
                    cat(axis.at(lead), " is no whole second, the shortest time that GRIB holds"));
  }
  return Interval{*axis.seconds(start), *axis.seconds(end)};
}

Status check_interval(const Interval& interval, bool statistic, const DateTime& base) {
  if (interval.end < 0) return {Code::argument, cat("lead ", interval.end, " s is before the base time")};
  if (statistic && (interval.start < 0 || interval.start > interval.end))
    return {Code::argument, cat("the interval from ", interval.start, " s to ", interval.end,
                                " s must begin at or after the base time and end at or after its begin")};
  const std::int64_t start = statistic ? interval.start : interval.end;
  const TimeUnit unit = unit_of(start, interval.end);
  if (interval.end / unit.seconds > largest_time)
    return {Code::format, cat("lead ", interval.end, " s needs ", interval.end / unit.seconds, " units of ",
                              unit.seconds, " s, and GRIB2 holds at most ", largest_time,
                              "; choose leads that are whole hours or minutes")};
  constexpr std::int64_t longest = 366 * 86400 * (largest_year + 1);
  if (interval.end > longest || after(base, interval.end).year > largest_year)
    return {Code::format, cat("lead ", interval.end, " s ends after the year ", largest_year,
                              ", the last that GRIB2 holds")};
  return {};
}

void write_time(std::byte* head, const TimeOffsets& offsets, const Interval& interval, const DateTime& base) {
  const bool statistic = offsets.end_time >= 0;
  const std::int64_t start = statistic ? interval.start : interval.end;
  const TimeUnit unit = unit_of(start, interval.end);
  put_number(head + offsets.unit, static_cast<std::uint64_t>(unit.code), 1);
  put_number(head + offsets.forecast_time, static_cast<std::uint64_t>(start / unit.seconds), 4);
  if (!statistic) return;
  put_number(head + offsets.range_unit, static_cast<std::uint64_t>(unit.code), 1);
  put_number(head + offsets.range_length, static_cast<std::uint64_t>((interval.end - start) / unit.seconds),
             4);
  const DateTime end = after(base, interval.end);
  std::byte* at = head + offsets.end_time;
  put_number(at, static_cast<std::uint64_t>(end.year), 2);
  at += 2;
  for (const int part : {end.month, end.day, end.hour, end.minute, end.second})
    put_number(at++, static_cast<std::uint64_t>(part), 1);
}

}  // namespace tailrace::grib2
