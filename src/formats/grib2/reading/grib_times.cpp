// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// The times are computed here from the octets, because ecCodes counts a month as 30 days, does not know
// years, and computes the end of an interval from begin and length, which writers state in different ways.
// ecCodes is asked only for times whose meaning nothing but ecCodes defines.
#include "formats/grib2/reading/grib_times.hpp"

#include <string>

#include "formats/grib2/handle.hpp"
#include "ground/base/text.hpp"

namespace tailrace::sources {

namespace {

using grib2::Handle;

constexpr Calendar gregorian = Calendar::proleptic_gregorian;

Status time_error(const std::string& what) { return {Code::corrupt, what}; }

/// Returns the months of a unit of time, or 0. The codes are the same in both editions.
std::int64_t months_of_unit(long unit) {
  switch (unit) {
    case 3:
      return 1;
    case 4:
      return 12;
    case 5:
      return 120;
    case 6:
      return 360;
    case 7:
      return 1200;
    default:
      return 0;
  }
}

/// A number of units of time.
struct Span {
  long edition = 2;
  long unit = 1;
  std::int64_t count = 0;
};

bool is_known(const Span& span) {
  return seconds_of_unit(span.edition, span.unit) != 0 || months_of_unit(span.unit) != 0;
}

/// Returns `time` plus `span`. Months and years lead to the same day of another month, or to its last day.
Result<std::int64_t> time_behind(std::int64_t time, const Span& span) {
  if (const std::int64_t seconds = seconds_of_unit(span.edition, span.unit); seconds != 0)
    return time + seconds * span.count;
  constexpr std::int64_t months_of_year = 12, most_years = 1'000'000;
  DateTime at = from_seconds(time, gregorian);
  const std::int64_t months =
      at.year * months_of_year + at.month - 1 + span.count * months_of_unit(span.unit);
  if (months / months_of_year > most_years || months < 0)
    return time_error(cat("its time lies ", span.count, " units of code ", span.unit, " behind ",
                          format_time(at), ", and such years are not read"));
  at.year = months / months_of_year;
  at.month = static_cast<int>(months % months_of_year) + 1;
  while (!is_valid(at, gregorian)) --at.day;
  return to_seconds(at, gregorian);
}

/// Returns a time or a length of GRIB2, or nothing if all bits are 1: missing. By the standard a negative
/// number is a sign and a magnitude, but some writers use the two's complement. Magnitudes of 2^30 and more
/// do not occur, so they mean the two's complement.
std::optional<std::int64_t> signed_time(std::optional<long> octets) {
  constexpr std::int64_t sign = std::int64_t{1} << 31;
  if (!octets) return std::nullopt;
  const std::int64_t raw = *octets < 0 ? sign - *octets : *octets;
  if (raw < sign) return raw;
  const std::int64_t magnitude = raw - sign;
  if (magnitude == sign - 1) return std::nullopt;
  return magnitude >= sign / 2 ? magnitude - sign : -magnitude;
}

/// Returns the end of the interval that the message states, or nothing if the message has no interval.
std::optional<DateTime> stated_end(const Handle& handle) {
  if (!handle.has("yearOfEndOfOverallTimeInterval")) return std::nullopt;
  const auto part = [&](const std::string& name) {
    return handle.present_integer(name + "OfEndOfOverallTimeInterval").value_or(-1);
  };
  return DateTime{part("year"),
                  static_cast<int>(part("month")),
                  static_cast<int>(part("day")),
                  static_cast<int>(part("hour")),
                  static_cast<int>(part("minute")),
                  static_cast<int>(part("second"))};
}

/// Sets the time that ecCodes computes, in cases that are not computed here.
Status set_as_eccodes_says(Handle& handle, Record& record) {
  // ecCodes answers in hours, rounded, unless it is told the unit.
  if (handle.set("stepUnits", std::string("s")) == 0) {
    if (const auto end = handle.integer("endStep")) {
      record.valid = record.reference + *end;
      return {};
    }
  }
  const auto day = handle.integer("validityDate"), time = handle.integer("validityTime");
  if (!day || !time)
    return time_error("ecCodes does not tell its step; codes_info prints which ecCodes this is");
  record.valid = to_seconds({*day / 10000, static_cast<int>(*day / 100 % 100), static_cast<int>(*day % 100),
                             static_cast<int>(*time / 100), static_cast<int>(*time % 100), 0},
                            gregorian);
  return {};
}

Status set_valid(std::int64_t begin, const Span& span, Record& record) {
  const Result<std::int64_t> valid = time_behind(begin, span);
  TR_TRY(valid.status());
  record.valid = *valid;
  return {};
}

Status set_valid_1(Handle& handle, Record& record) {
  const auto unit = handle.present_integer("indicatorOfUnitOfTimeRange"), p1 = handle.integer("P1"),
             p2 = handle.integer("P2"), indicator = handle.integer("timeRangeIndicator");
  if (!unit || !p1 || !p2 || !indicator || !is_known({1, *unit, 0}))
    return set_as_eccodes_says(handle, record);
  switch (*indicator) {
    case 0:
    case 1:
      return set_valid(record.reference, {1, *unit, *p1}, record);
    case 10:  // P1 and P2 together are one number of two octets
      return set_valid(record.reference, {1, *unit, *p1 * 256 + *p2}, record);
    case 2:
    case 3:
    case 4:
    case 5:
    case 7:
      return set_valid(record.reference, {1, *unit, *p2}, record);
    case 6:
      return set_valid(record.reference, {1, *unit, -*p2}, record);
    default:  // means over several runs or days; P1 is the first one's step
      return seconds_of_unit(1, *unit) != 0 ? set_as_eccodes_says(handle, record)
                                            : set_valid(record.reference, {1, *unit, *p1}, record);
  }
}

Status set_valid_2(Handle& handle, Record& record) {
  const std::optional<DateTime> end = stated_end(handle);
  if (end && is_valid(*end, gregorian)) {
    record.valid = to_seconds(*end, gregorian);
    return {};
  }
  const long ranges = end ? handle.present_integer("numberOfTimeRange").value_or(0) : 1;
  if (ranges != 1 && ranges != 2)
    return time_error(cat("the end of its interval, ", format_time(*end), ", does not exist"));
  const auto unit = handle.present_integer("indicatorOfUnitOfTimeRange");
  if (!unit || !is_known({2, *unit, 0}) || !handle.has("forecastTime") || ranges == 2)
    return set_as_eccodes_says(handle, record);
  // A missing forecast time counts as 0: the record is valid at the base time.
  const std::int64_t step = signed_time(handle.integer("forecastTime")).value_or(0);
  TR_TRY(set_valid(record.reference, {2, *unit, step}, record));
  if (!end) return {};
  const Span length{2, handle.present_integer("indicatorOfUnitForTimeRange").value_or(255),
                    signed_time(handle.integer("lengthOfTimeRange")).value_or(0)};
  if (!is_known(length)) return set_as_eccodes_says(handle, record);
  return set_valid(record.valid, length, record);
}

}  // namespace

std::optional<std::int64_t> interval_begin_of(const Handle& handle, int edition, std::int64_t reference) {
  const auto unit = handle.present_integer(edition == 1 ? "unitOfTimeRange" : "indicatorOfUnitOfTimeRange");
  const std::optional<std::int64_t> count =
      edition == 1 ? handle.integer("P1") : signed_time(handle.integer("forecastTime"));
  if (!unit || !count || !is_known({edition, *unit, 0})) return std::nullopt;
  const Result<std::int64_t> begin = time_behind(reference, {edition, *unit, *count});
  return begin.is_ok() ? std::optional(*begin) : std::nullopt;
}

std::int64_t seconds_of_unit(long edition, long unit) {
  switch (unit) {
    case 0:
      return 60;
    case 1:
      return 3600;
    case 2:
      return 86400;
    case 10:
      return 3 * 3600;
    case 11:
      return 6 * 3600;
    case 12:
      return 12 * 3600;
    case 13:
      return edition == 1 ? 15 * 60 : 1;
    case 14:
      return edition == 1 ? 30 * 60 : 0;
    case 254:
      return edition == 1 ? 1 : 0;
    default:
      return 0;
  }
}

Status set_times(Handle& handle, Record& record) {
  const auto date = handle.integer("dataDate"), hour = handle.integer("hour"),
             minute = handle.integer("minute");
  if (!date || !hour || !minute)
    return time_error("ecCodes does not tell its base time; codes_info prints which ecCodes this is");
  const long second = handle.has("second") ? handle.integer("second").value_or(0) : 0;
  const DateTime base{
      *date / 10000,           static_cast<int>(*date / 100 % 100), static_cast<int>(*date % 100),
      static_cast<int>(*hour), static_cast<int>(*minute),           static_cast<int>(second)};
  if (!is_valid(base, gregorian))
    return time_error(cat("its base time, ", format_time(base), ", does not exist"));
  record.reference = to_seconds(base, gregorian);
  record.valid = record.reference;
  return handle.integer("edition").value_or(2) == 1 ? set_valid_1(handle, record)
                                                    : set_valid_2(handle, record);
}

}  // namespace tailrace::sources
