// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ground/base/calendar.hpp"
#include "ground/base/status.hpp"
#include "ground/base/time_axis.hpp"
#include "ground/base/types.hpp"

namespace tailrace::grib2 {

/// A unit of code table 4.4.
struct TimeUnit {
  int code = 1;
  std::int64_t seconds = 3600;
  std::string_view letter = "h";
};

/// Returns the largest of hour, minute and second that divides both ends of an interval. The unit depends on
/// these alone, so that the bytes of a record do not depend on other records.
TimeUnit unit_of(std::int64_t start, std::int64_t end);

/// The lead of a record and, for statistics, the lead at which its interval began.
struct Interval {
  std::int64_t start = 0;
  std::int64_t end = 0;
};

/// Returns the interval of a record in seconds. Code::format if its leads are no whole seconds: code
/// table 4.4 has no shorter unit.
Result<Interval> in_seconds(const TimeAxis& axis, std::int64_t start, std::int64_t end);

/// Returns Code::argument if the interval begins before the base time or after its own end, and Code::format
/// if GRIB2's octets cannot hold it.
Status check_interval(const Interval& interval, bool statistic, const DateTime& base);

/// The offsets in a head of the octets that depend on the lead; -1 if the template does not have them.
struct TimeOffsets {
  Bytes unit = -1;
  Bytes forecast_time = -1;
  Bytes end_time = -1;  // year (2), month, day, hour, minute, second of the end of the interval
  Bytes range_unit = -1;
  Bytes range_length = -1;
  friend bool operator==(const TimeOffsets&, const TimeOffsets&) = default;
};

/// Writes the octets of `interval` into a head.
void write_time(std::byte* head, const TimeOffsets& offsets, const Interval& interval, const DateTime& base);

}  // namespace tailrace::grib2
