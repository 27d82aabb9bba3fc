// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/base/time_axis.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>

#include "ground/base/text.hpp"

namespace tailrace {

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::array<TimeUnit, 7> kTimeUnits{{{"ns", "nanoseconds", 1},
                                              {"us", "microseconds", 1'000},
                                              {"ms", "milliseconds", 1'000'000},
                                              {"s", "seconds", kSecond},
                                              {"min", "minutes", 60 * kSecond},
                                              {"h", "hours", 3'600 * kSecond},
                                              {"d", "days", 86'400 * kSecond}}};
constexpr std::int64_t kMostSeconds = 31'557'600'000'000'000;  // 10^9 years, as in indexes
// Each whole number up to this one is a float64.
constexpr std::int64_t kMostExact = std::int64_t{1} << 53;

__extension__ using Wide = __int128;

const TimeUnit& unit_with(std::int64_t nanoseconds) {
  return *std::ranges::find(kTimeUnits, nanoseconds, &TimeUnit::nanoseconds);
}

bool is_unit(std::int64_t nanoseconds) {
  return std::ranges::count(kTimeUnits, nanoseconds, &TimeUnit::nanoseconds) > 0;
}

std::optional<std::int64_t> narrow(Wide value) {
  const auto narrowed = static_cast<std::int64_t>(value);
  return narrowed == value ? std::optional(narrowed) : std::nullopt;
}

}  // namespace

const TimeUnit* find_time_unit(std::string_view name) {
  const auto* const found = std::ranges::find_if(kTimeUnits, [&](const TimeUnit& each) {
    return name == each.symbol || name == each.plural ||
           name == each.plural.substr(0, each.plural.size() - 1);
  });
  return found == kTimeUnits.end() ? nullptr : found;
}

std::string time_unit_list() {
  std::string list;
  for (const TimeUnit& each : kTimeUnits) list += cat(list.empty() ? "" : ", ", each.symbol);
  return list;
}

TimeAxis TimeAxis::of_leads(const TimeUnit& unit) {
  TimeAxis axis;
  axis.is_.nanoseconds = axis.is_.shown = unit.nanoseconds;
  return axis;
}

TimeAxis TimeAxis::of_model() {
  TimeAxis axis;
  axis.is_.kind = Kind::model;
  axis.is_.has_base = false;
  axis.is_.units = "s";
  return axis;
}

Status TimeAxis::set_units(std::string_view units) {
  const TimeUnit* const unit = find_time_unit(units);
  if (unit == nullptr && (!is_model() || is_.has_base || units.empty()))
    return {Code::argument, cat("\"", units, "\" is no unit of time; expected one of ", time_unit_list())};
  // One spelling of a unit, so that streams that write the same are the same.
  if (is_model()) is_.units = is_.has_base ? unit->plural : units;
  if (unit == nullptr) {
    is_.shown = is_.nanoseconds = kSecond;
    return {};
  }
  is_.shown = unit->nanoseconds;
  if (is_model()) is_.nanoseconds = unit->nanoseconds;
  return {};
}

Status TimeAxis::set_base() {
  is_.has_base = true;
  return is_model() ? set_units(std::string(is_.units)) : Status();
}

std::string TimeAxis::unit() const {
  return std::string(is_model() ? is_.units : unit_with(is_.nanoseconds).symbol);
}

std::string TimeAxis::units(const DateTime& base) const {
  if (!is_.has_base) return is_.units;
  const TimeUnit* const unit = is_model() ? find_time_unit(is_.units) : &unit_with(is_.shown);
  std::string since = format_time(base);  // 2026-03-01T00:00:00Z
  std::ranges::replace(since, 'T', ' ');
  since.pop_back();
  return cat(unit == nullptr ? std::string_view(is_.units) : unit->plural, " since ", since);
}

double TimeAxis::number(std::int64_t lead) const {
  if (is_model()) return time_of(lead);
  // Both are reduced first, so that 1 ms is 1 / 1000 s and not 1,000,000 / 1,000,000,000.
  const std::int64_t common = std::gcd(is_.nanoseconds, is_.shown);
  const Wide product = Wide{lead} * (is_.nanoseconds / common);
  const std::int64_t divisor = is_.shown / common;
  if (product % divisor == 0) return static_cast<double>(product / divisor);
  return static_cast<double>(product) / static_cast<double>(divisor);
}

Status TimeAxis::check(std::int64_t lead) const {
  if (is_model()) return {};
  if (lead < 0) return {Code::argument, cat(at(lead), " is before the base time")};
  if (Wide{lead} * is_.nanoseconds > Wide{kMostSeconds} * kSecond)
    return {Code::argument, cat(at(lead), " is more than 10^9 years after the base time")};
  const Wide product = Wide{lead} * (is_.nanoseconds / std::gcd(is_.nanoseconds, is_.shown));
  if (product <= kMostExact) return {};
  return {Code::argument,
          cat(at(lead), " is beyond 2^53 ", unit_with(std::min(is_.nanoseconds, is_.shown)).plural,
              ", up to which the variable of time holds each whole number: give coarser units")};
}

// A positive double has the greater bits the greater it is (IEEE 754, section 3.4).
Result<std::int64_t> TimeAxis::code_of(double time) {
  if (!std::isfinite(time)) return Status(Code::argument, cat("a step cannot be at time ", time));
  const auto bits = std::bit_cast<std::int64_t>(std::abs(time));
  return time < 0 ? -bits : bits;
}

double TimeAxis::time_of(std::int64_t lead) {
  const auto bits = static_cast<std::uint64_t>(lead);
  return lead < 0 ? -std::bit_cast<double>(-bits) : std::bit_cast<double>(bits);
}

std::optional<std::int64_t> TimeAxis::count(std::int64_t lead, std::int64_t nanoseconds) const {
  const Wide product = Wide{lead} * is_.nanoseconds;
  return product % nanoseconds == 0 ? narrow(product / nanoseconds) : std::nullopt;
}

std::optional<std::int64_t> TimeAxis::lead_of(std::int64_t count, std::int64_t nanoseconds) const {
  const Wide product = Wide{count} * nanoseconds;
  return product % is_.nanoseconds == 0 ? narrow(product / is_.nanoseconds) : std::nullopt;
}

std::optional<std::int64_t> TimeAxis::seconds(std::int64_t lead) const { return count(lead, kSecond); }

std::int64_t TimeAxis::floor_seconds(std::int64_t lead) const {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  if (is_model()) {
    constexpr double limit = 9e18;
    const double seconds =
        std::clamp(time_of(lead) * (static_cast<double>(is_.nanoseconds) / kSecond), -limit, limit);
    // Ten minutes are no double of days: what lies as near to a whole second as rounding goes is one.
    const double nearest = std::round(seconds);
    const bool is_whole =
        std::abs(seconds - nearest) <= 4 * std::numeric_limits<double>::epsilon() * std::abs(seconds);
    return static_cast<std::int64_t>(is_whole ? nearest : std::floor(seconds));
  }
  const Wide product = Wide{lead} * is_.nanoseconds;
  const Wide whole = product / kSecond - (product % kSecond < 0 ? 1 : 0);
  return static_cast<std::int64_t>(std::clamp<Wide>(whole, -most, most));
}

std::optional<std::int64_t> TimeAxis::lead_at(std::int64_t seconds) const {
  if (!is_model()) return lead_of(seconds, kSecond);
  return *code_of(static_cast<double>(seconds) / (static_cast<double>(is_.nanoseconds) / kSecond));
}

Result<std::int64_t> TimeAxis::parse_length(std::string_view text) const {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const TimeUnit* const unit = find_time_unit(text.substr(static_cast<std::size_t>(end - text.data())));
  std::optional<std::int64_t> lead;
  if (error == std::errc{} && number >= 0 && unit != nullptr && unit->nanoseconds < kSecond) {
    lead = lead_of(number, unit->nanoseconds);
  } else {
    const Result<std::int64_t> seconds = parse_duration(text);
    TR_TRY(seconds.status());
    lead = lead_of(*seconds, kSecond);
  }
  if (lead) return *lead;
  constexpr std::int64_t year = 366 * std::int64_t{86400};
  const Result<std::int64_t> seconds = parse_duration(text);
  if (seconds.is_ok() && *seconds > 292 * year && is_.nanoseconds < kSecond)
    return Status(Code::argument,
                  cat("\"", text, "\" is too long to be counted in ", unit_with(is_.nanoseconds).plural));
  return Status(Code::argument,
                cat("\"", text, "\" is no whole number of ", unit_with(is_.nanoseconds).plural,
                    ", in which this stream counts its leads"));
}

std::string TimeAxis::text(std::int64_t lead) const {
  if (!is_model()) return cat(lead, " ", unit());
  return is_.units == "1" ? cat(time_of(lead)) : cat(time_of(lead), " ", is_.units);
}

std::string TimeAxis::at(std::int64_t lead) const { return cat(is_model() ? "time " : "lead ", text(lead)); }

Result<TimeAxis> TimeAxis::of_parts(Parts parts) {
  TimeAxis axis;
  axis.is_ = std::move(parts);
  const bool is_kind = axis.is_.kind == Kind::leads || axis.is_.kind == Kind::model;
  const TimeUnit* const unit = find_time_unit(axis.is_.units);
  const bool fits = unit == nullptr ? !axis.is_.has_base && axis.is_.nanoseconds == kSecond
                                    : axis.is_.nanoseconds == unit->nanoseconds;
  const bool is_told = axis.is_model()
                           ? !axis.is_.units.empty() && fits && axis.is_.shown == axis.is_.nanoseconds
                           : axis.is_.units.empty() && axis.is_.has_base;
  if (is_kind && is_told && is_unit(axis.is_.nanoseconds) && is_unit(axis.is_.shown) &&
      !axis.is_.name.empty())
    return axis;
  return Status(Code::corrupt, "the description of an axis of times contradicts itself");
}

void TimeAxis::pack(Packer& out) const {
  out.put(is_.kind).put(static_cast<std::uint8_t>(is_.has_base ? 1 : 0)).put(is_.nanoseconds).put(is_.shown);
  out.put_text(is_.name).put_text(is_.units);
}

Result<TimeAxis> TimeAxis::unpack(Unpacker& in) {
  Parts parts;
  parts.kind = in.get<Kind>();
  parts.has_base = in.get<std::uint8_t>() != 0;
  parts.nanoseconds = in.get<std::int64_t>();
  parts.shown = in.get<std::int64_t>();
  parts.name = in.get_text();
  parts.units = in.get_text();
  if (!in.ok()) return Status(Code::corrupt, "the description of an axis of times is not whole");
  return of_parts(std::move(parts));
}

}  // namespace tailrace
