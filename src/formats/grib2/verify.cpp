// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Proves that a header says what its definition asks for. ecCodes drops and overrides keys silently,
// depending on their order. So every key is read back from the octets that records will have.
#include <algorithm>
#include <cmath>

#include "formats/grib2/header.hpp"
#include "ground/base/text.hpp"

namespace tailrace::grib2 {

namespace {

bool same_number(const std::string& key, double wanted, double got, double angle = 1.000001e-6) {
  // Longitudes are stored from 0 to 360.
  if (key.find("itude") != std::string::npos || key.ends_with("InDegrees")) {
    const double off = std::fabs(wanted - got);
    const bool turns = key.starts_with("longitude") || key.starts_with("LoV");
    return off <= angle || (turns && std::fabs(off - 360) <= angle);
  }
  return std::fabs(wanted - got) <= 1e-7 * std::max(std::fabs(wanted), std::fabs(got));
}

bool same_list(const std::vector<double>& wanted, const std::vector<double>& got) {
  return wanted.size() == got.size() && std::equal(wanted.begin(), wanted.end(), got.begin(),
                                                   [](double a, double b) { return same_number("", a, b); });
}

// Returns true for keys such as setLocalDefinition. Setting one makes ecCodes act; it has no value to read
// back.
bool is_action(const std::string& key) {
  for (const std::string_view verb : {"set", "delete"}) {
    if (key.starts_with(verb) && key.size() > verb.size() &&
        std::isupper(static_cast<unsigned char>(key[verb.size()])) != 0)
      return true;
  }
  return false;
}

ByteVector message_for(const Field& field, std::size_t level, const Interval& interval) {
  Parts parts = field.parts;
  for (const Patch& patch : field.levels[level]) parts.head[patch.offset] = patch.value;
  write_time(parts.head.data(), field.time, interval, field.base);
  return constant_message(parts, static_cast<std::uint64_t>(field.points));
}

std::string hint_for(const Handle& handle, const std::string& key) {
  const std::string name = handle.text("shortName").value_or("?"),
                    type = handle.text("typeOfLevel").value_or("?");
  const std::string level = handle.text("level").value_or("?");
  if (key == "shortName")
    return cat("ecCodes knows this parameter on ", type, ":", level, " as '", name,
               "': define it by that name, or on other levels");
  if (key == "typeOfLevel" || key == "level" || key == "topLevel" || key == "bottomLevel")
    return cat("the name '", name, "' belongs to levels=", type == "heightAboveGround" ? "height" : type, ":",
               level, ": ask for those, or for another name");
  if (key == "typeOfStatisticalProcessing" || key == "stepType")
    return cat("the name '", name, "' has a statistic of its own (", handle.text("stepType").value_or("?"),
               "): ask for that one");
  return "leave the key out, or find the key that overrides it";
}

Status check_surface(const Handle& handle, const Request& request, const std::string& which, double value) {
  const Result<Surface> wanted = surface_on(handle, request, which, value);
  if (!wanted.is_ok()) return wanted.status();
  const std::string scaled = cat("scaledValueOf", which, "FixedSurface");
  const bool missing = handle.is_missing(scaled);
  const bool right = wanted->missing
                         ? missing
                         : !missing && handle.integer(scaled) == wanted->scaled &&
                               handle.integer(cat("scaleFactorOf", which, "FixedSurface")) == wanted->scale;
  if (right) return {};
  return differs(handle, {which == "First" ? "level" : "bottomLevel", cat(value)}, hint_for(handle, "level"));
}

/// Gives a handle the parameter of `message`. In almost every template the octets behind its number are the
/// category and the number of the parameter. In other templates the handle's octets then differ from
/// `message`, and the caller notices.
bool name_as(Handle& handle, std::span<const std::byte> message) {
  constexpr std::size_t discipline = 6, category = 9, number = 10;
  const auto set = [&](const char* key, std::size_t at) {
    const auto now = handle.message();
    if (at >= now.size() || at >= message.size()) return false;
    return now[at] == message[at] || handle.set(key, std::to_integer<long>(message[at])) == 0;
  };
  const std::size_t section = section_begin(message, 4);
  return set("discipline", discipline) && set("parameterCategory", section + category) &&
         set("parameterNumber", section + number);
}

/// Changes the level and the parameter of a handle to those of `message`, because opening a message costs
/// three times as much as reading it back. Returns false if the handle does not have the octets of `message`
/// afterwards: keys of the user's may have changed more.
bool move_to(Handle& handle, const Request& request, std::size_t level, const ByteVector& message) {
  if (!name_as(handle, message)) return false;
  const auto set = [&](const std::string& which, double value) {
    const Result<Surface> surface = surface_on(handle, request, which, value);
    return surface.is_ok() && set_surface(handle, which, *surface) == 0;
  };
  const LevelSurfaces surfaces = surfaces_of(request, level);
  if (!set("First", surfaces.first)) return false;
  if (surfaces.second && !set("Second", *surfaces.second)) return false;
  const auto now = handle.message();
  return std::equal(now.begin(), now.end(), message.begin(), message.end());
}

Status check_level(const Handle& handle, const Field& field, const Request& request, std::size_t level) {
  codec::Keys wanted;
  const std::string type = handle.text("typeOfLevel").value_or("unknown");
  if (!same_level_type(request.level_type, type)) wanted.emplace_back("typeOfLevel", request.level_type);
  if (!request.named_by_keys) wanted.emplace_back("shortName", field.definition.name);
  TR_TRY(read_back(handle, wanted));
  if (levels_by_keys(request)) return {};
  const LevelSurfaces surfaces = surfaces_of(request, level);
  TR_TRY(check_surface(handle, request, "First", surfaces.first));
  return surfaces.second ? check_surface(handle, request, "Second", *surfaces.second) : Status();
}

Status check_time(Handle& handle, const Field& field, const Interval& interval) {
  const std::int64_t start = field.statistic ? interval.start : interval.end;
  const TimeUnit unit = unit_of(start, interval.end);
  codec::Keys wanted{{"indicatorOfUnitOfTimeRange", cat(unit.code)},
                     {"startStep", cat(start / unit.seconds)},
                     {"endStep", cat(interval.end / unit.seconds)}};
  // ecCodes answers in rounded hours unless the unit is set.
  if (handle.set("stepUnits", std::string(unit.letter)) != 0)
    return {Code::format, cat("ecCodes does not know steps in ", unit.letter)};
  wanted.emplace_back(
      "stepRange", start == interval.end ? wanted[1].second : cat(wanted[1].second, "-", wanted[2].second));
  const DateTime valid = from_seconds(to_seconds(field.base, Calendar::proleptic_gregorian) + interval.end,
                                      Calendar::proleptic_gregorian);
  // ecCodes computes these two keys in fractions of days, and may lose a minute if a time has seconds.
  if (field.base.second == 0 && valid.second == 0) {
    wanted.emplace_back("validityDate", cat(valid.year * 10000 + valid.month * 100 + valid.day));
    wanted.emplace_back("validityTime", cat(valid.hour * 100 + valid.minute));
  }
  if (field.statistic) {
    wanted.emplace_back("yearOfEndOfOverallTimeInterval", cat(valid.year));
    wanted.emplace_back("dayOfEndOfOverallTimeInterval", cat(valid.day));
    wanted.emplace_back("secondOfEndOfOverallTimeInterval", cat(valid.second));
  }
  return read_back(handle, wanted);
}

}  // namespace

Status read_back(const Handle& handle, const codec::Keys& wanted) {
  for (const Wanted& each : wanted) {
    if (!matches(handle, each)) return differs(handle, each, hint_for(handle, each.first));
  }
  return {};
}

bool levels_by_keys(const Request& request) {
  for (const auto& [key, value] : request.field_keys) {
    if (key.find("FixedSurface") != std::string::npos || key == "level" || key.ends_with("Level"))
      return true;
  }
  return false;
}

bool matches(const Handle& handle, const Wanted& wanted) {
  const auto& [key, value] = wanted;
  if (is_action(key)) return true;
  if (value == "missing") return handle.is_missing(key);
  // A list is compared before the text, because ecCodes prints an error if a list is asked for as one text.
  const std::vector<double> list = as_list(value);
  if (!list.empty() && same_list(list, handle.numbers(key))) return true;
  if (handle.text(key) == value) return true;
  if (const auto integer = as_integer(value); integer && handle.integer(key) == integer) return true;
  if (const auto number = as_number(value)) {
    const auto got = handle.number(key);
    if (!got) return false;
    // GRIB1 rounds angles to thousandths of a degree, GRIB2 to millionths.
    const bool is_coarse = handle.integer("edition") == 1;
    return is_coarse ? same_number(key, *number, *got, 0.5000001e-3) : same_number(key, *number, *got);
  }
  return false;
}

Status differs(const Handle& handle, const Wanted& wanted, std::string_view hint) {
  const std::string got =
      handle.is_missing(wanted.first) ? "missing" : handle.text(wanted.first).value_or("no such key");
  return {Code::format, cat("key '", wanted.first, "' was asked to be ", wanted.second, " but reads back as ",
                            got, "; ", hint)};
}

bool same_level_type(const std::string& wanted, const std::string& got) {
  // A file has pressures in Pa. ecCodes names the type isobaricInhPa if the pressure is a whole number of
  // hPa.
  const auto is_pressure = [](const std::string& type) {
    return type == "isobaricInPa" || type == "isobaricInhPa";
  };
  // ecCodes has a name of its own for 0 m below the sea. verify() compares the values of the levels, too.
  const bool is_sea = wanted == "depthBelowSea" && got == "oceanSurface";
  return wanted == got || is_sea || (is_pressure(wanted) && is_pressure(got));
}

Status verify(const Field& field, const Request& request, const codec::Keys& wanted, bool time_is_known,
              std::optional<Handle>& handle) {
  constexpr std::int64_t quarter = 900, hour = 3600;
  // Some names belong to one length of interval (mx2t6). So names are checked with the length of the
  // definition. If it gives none, they are checked with 7 hours, a length that no name belongs to.
  const codec::Statistic& statistic = field.definition.statistic;
  const std::int64_t length = statistic.since == codec::Statistic::Since::duration
                                  ? field.axis.seconds(statistic.duration).value_or(0)
                                  : 7 * hour;
  for (std::size_t level = 0; level < field.levels.size(); ++level) {
    const ByteVector message = message_for(field, level, {0, length});
    if (!handle || !move_to(*handle, request, level, message)) {
      Result<Handle> fresh = Handle::from_message(message);
      if (!fresh.is_ok()) return fresh.status();
      handle = std::move(*fresh);
    }
    TR_TRY(check_level(*handle, field, request, level));
    if (level == 0) TR_TRY(read_back(*handle, wanted));
  }
  if (time_is_known) return check_time(*handle, field, {0, length});
  // These leads cover every unit, an empty interval, and an interval that begins after the base time.
  for (const Interval& interval : {Interval{0, 0},
                                   {0, quarter},
                                   {0, 6 * hour},
                                   {5 * hour, 6 * hour},
                                   {quarter, 30 * hour + 90},
                                   {0, 400 * 24 * hour}}) {
    Result<Handle> at = Handle::from_message(message_for(field, 0, interval));
    if (!at.is_ok()) return at.status();
    TR_TRY(check_time(*at, field, interval));
  }
  return {};
}

}  // namespace tailrace::grib2
