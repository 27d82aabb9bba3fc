// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/grib2/edition1/time.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "formats/grib2/edition1/sections.hpp"
#include "formats/grib2/sections.hpp"
#include "ground/base/text.hpp"

namespace tailrace::grib2::edition1 {

namespace {

struct Unit {
  int code;  // of code table 4
  std::int64_t seconds;
};
/// A record has the first unit that divides its times and in which its octets hold them. The unit depends on
/// the record alone, so that its bytes do not depend on other records.
constexpr std::array<Unit, 9> units{{{1, 3600},
                                     {0, 60},
                                     {254, 1},
                                     {14, 1800},
                                     {13, 900},
                                     {10, 3 * 3600},
                                     {11, 6 * 3600},
                                     {12, 12 * 3600},
                                     {2, 24 * 3600}}};

// Time range indicators of code table 5.
constexpr int at_p1 = 0, between = 2, average = 3, accumulation = 4, at_long_p1 = 10;
constexpr std::int64_t most_octet = 255, most_long = 65535;

/// GRIB1 has no word for a minimum or a maximum: the parameter says it, and the indicator that it belongs to
/// an interval.
int indicator_of(codec::Process process) {
  if (process == codec::Process::accum) return accumulation;
  return process == codec::Process::average ? average : between;
}

struct Octets {
  int unit, indicator;
  std::int64_t p1, p2;
};

std::optional<Octets> octets_of(const Interval& interval, codec::Process process) {
  const bool instant = process == codec::Process::instant;
  const std::int64_t start = instant ? interval.end : interval.start;
  for (const Unit& unit : units) {
    if (start % unit.seconds != 0 || interval.end % unit.seconds != 0) continue;
    const std::int64_t first = start / unit.seconds, last = interval.end / unit.seconds;
    if (instant && last > most_octet && last <= most_long)
      return Octets{unit.code, at_long_p1, last / 256, last % 256};
    if (first > most_octet || last > most_octet) continue;
    return instant ? Octets{unit.code, at_p1, last, 0}
                   : Octets{unit.code, indicator_of(process), first, last};
  }
  return std::nullopt;
}

}  // namespace

Status check_interval(const Interval& interval, codec::Process process) {
  if (interval.end < 0) return {Code::argument, cat("lead ", interval.end, " s is before the base time")};
  const bool instant = process == codec::Process::instant;
  if (!instant && (interval.start < 0 || interval.start > interval.end))
    return {Code::argument, cat("the interval from ", interval.start, " s to ", interval.end,
                                " s must begin at or after the base time and end at or after its begin")};
  if (octets_of(interval, process)) return {};
  if (instant)
    return {Code::format, cat("lead ", interval.end, " s does not fit GRIB1, which holds at most ", most_long,
                              " seconds, minutes, quarters of an hour, hours or days: choose leads that are "
                              "whole units of these, or format=grib2")};
  return {Code::format,
          cat("the interval from ", interval.start, " s to ", interval.end,
              " s does not fit GRIB1, which holds begin and end in one octet each: at most ", most_octet,
              " seconds, minutes, quarters of an hour, hours or days from the base time. Choose leads that "
              "are whole units of these, or format=grib2")};
}

void write_time(std::byte* head, const Interval& interval, codec::Process process) {
  const std::optional<Octets> octets = octets_of(interval, process);
  if (!octets) return;
  put_number(head + unit_at, static_cast<std::uint64_t>(octets->unit), 1);
  put_number(head + p1_at, static_cast<std::uint64_t>(octets->p1), 1);
  put_number(head + p2_at, static_cast<std::uint64_t>(octets->p2), 1);
  put_number(head + range_at, static_cast<std::uint64_t>(octets->indicator), 1);
}

Interval read_time(std::span<const std::byte> head) {
  const auto at = [&](std::size_t place) { return std::to_integer<std::int64_t>(head[place]); };
  const auto unit = std::ranges::find(units, static_cast<int>(at(unit_at)), &Unit::code);
  if (unit == units.end()) return {0, -1};
  const std::int64_t p1 = at(p1_at) * unit->seconds, p2 = at(p2_at) * unit->seconds;
  switch (at(range_at)) {
    case at_p1:
      return {p1, p1};
    case at_long_p1: {
      const std::int64_t end = (at(p1_at) * 256 + at(p2_at)) * unit->seconds;
      return {end, end};
    }
    case between:
    case average:
    case accumulation:
      return {p1, p2};
    default:
      return {0, -1};
  }
}

}  // namespace tailrace::grib2::edition1
