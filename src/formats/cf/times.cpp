// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/cf/times.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>

#include "ground/base/options.hpp"
#include "ground/base/text.hpp"

namespace tailrace::cf {

namespace {

struct Unit {
  std::string_view name;
  double seconds;
};
// Spellings of units: those of UDUNITS, with their plurals, and some that other programs write.
constexpr std::array<Unit, 36> time_unit_names{{{"s", 1},
                                                {"sec", 1},
                                                {"secs", 1},
                                                {"second", 1},
                                                {"seconds", 1},
                                                {"min", 60},
                                                {"mins", 60},
                                                {"minute", 60},
                                                {"minutes", 60},
                                                {"h", 3600},
                                                {"hr", 3600},
                                                {"hrs", 3600},
                                                {"hour", 3600},
                                                {"hours", 3600},
                                                {"d", 86400},
                                                {"day", 86400},
                                                {"days", 86400},
                                                {"week", 604800},
                                                {"weeks", 604800},
                                                {"ms", 1e-3},
                                                {"msec", 1e-3},
                                                {"msecs", 1e-3},
                                                {"millisecond", 1e-3},
                                                {"milliseconds", 1e-3},
                                                {"us", 1e-6},
                                                {"usec", 1e-6},
                                                {"usecs", 1e-6},
                                                {"microsec", 1e-6},
                                                {"microsecs", 1e-6},
                                                {"microsecond", 1e-6},
                                                {"microseconds", 1e-6},
                                                {"ns", 1e-9},
                                                {"nsec", 1e-9},
                                                {"nsecs", 1e-9},
                                                {"nanosecond", 1e-9},
                                                {"nanoseconds", 1e-9}}};

/// Takes a base time apart. It accepts more than parse_time does, since files have "1900-1-1 0:0:0.0", zones
/// and words.
class BaseScanner {
 public:
  explicit BaseScanner(std::string_view text) : rest_(text) {}
  bool take(char wanted) {
    if (rest_.empty() || rest_.front() != wanted) return false;
    rest_.remove_prefix(1);
    return true;
  }
  /// Takes one to `most` digits.
  template <typename T>
  bool take_number(T& value, std::size_t most) {
    std::size_t digits = 0;
    while (digits < rest_.size() && digits < most && rest_[digits] >= '0' && rest_[digits] <= '9') ++digits;
    if (digits == 0) return false;
    std::from_chars(rest_.data(), rest_.data() + digits, value);
    rest_.remove_prefix(digits);
    return true;
  }
  void skip_blanks() {
    while (take(' ') || take('\t')) {
    }
  }
  void skip_digits() {
    while (!rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9') rest_.remove_prefix(1);
  }
  [[nodiscard]] std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

bool scan_base_date(BaseScanner& in, DateTime& time) {
  const bool negative = in.take('-');
  if (!negative) in.take('+');
  if (!in.take_number(time.year, 9)) return false;
  if (negative) time.year = -time.year;
  return in.take('-') && in.take_number(time.month, 2) && in.take('-') && in.take_number(time.day, 2);
}

/// Scans the time of the day, if there is one. Drops fractions of seconds.
bool scan_base_clock(BaseScanner& in, DateTime& time) {
  if (!in.take('T') && !in.take('t') && !in.take('_')) in.skip_blanks();
  if (in.rest().empty() || in.rest().front() < '0' || in.rest().front() > '9') return true;
  if (!in.take_number(time.hour, 2)) return false;
  if (!in.take(':')) return true;
  if (!in.take_number(time.minute, 2)) return false;
  if (!in.take(':')) return true;
  if (!in.take_number(time.second, 2)) return false;
  if (in.take('.')) in.skip_digits();
  return true;
}

/// Scans a time zone: "Z", "UTC", "GMT", "+01:00", "-6" or "+0530". Sets `ahead` to the seconds by which its
/// clock is ahead of UTC.
bool scan_zone(BaseScanner& in, std::int64_t& ahead) {
  in.skip_blanks();
  const std::string word = lower_case(trim(in.rest()));
  if (word.empty() || word == "z" || word == "utc" || word == "gmt") return true;
  const bool west = in.take('-');
  if (!west && !in.take('+')) return false;
  std::int64_t hours = 0, minutes = 0;
  if (!in.take_number(hours, 2)) return false;
  in.take(':');
  in.take_number(minutes, 2);
  in.skip_blanks();
  if (hours > 14 || minutes > 59 || !in.rest().empty()) return false;
  ahead = (hours * 3600 + minutes * 60) * (west ? -1 : 1);
  return true;
}

constexpr DateTime first_gregorian{1582, 10, 15, 0, 0, 0};

/// Returns the days from 1970-01-01 (Gregorian) to a date of the Julian calendar (E. G. Richards, Calendars,
/// in: Explanatory Supplement to the Astronomical Almanac, 2013). The year -1 is followed by the year 1.
std::int64_t julian_days(const DateTime& time) {
  const std::int64_t year = time.year < 0 ? time.year + 1 : time.year;
  const std::int64_t early = time.month <= 2 ? 1 : 0;
  const std::int64_t y = year + 4800 - early, m = time.month + 12 * early - 3;
  const std::int64_t leaps = y / 4 - (y % 4 < 0 ? 1 : 0);
  return time.day + (153 * m + 2) / 5 + 365 * y + leaps - 32083 - 2440588;
}

Status not_units(std::string_view units, std::string_view why) {
  return {
      Code::format,
      cat("the units \"", units, "\" of the time axis ", why,
          "; expected seconds, minutes, hours or days since a date, as \"hours since 1900-01-01 00:00\"")};
}

Result<double> unit_of(std::string_view units, const std::string& word, Calendar calendar) {
  const auto found = std::ranges::find(time_unit_names, lower_case(word), &Unit::name);
  if (found != time_unit_names.end()) return found->seconds;
  const std::string name = lower_case(word);
  if (calendar == Calendar::day_360 && (name == "month" || name == "months")) return 30 * 86400;
  if (name.starts_with("month") || name.starts_with("year") || name.starts_with("common_year"))
    return not_units(units, cat("count ", word, ", which have no fixed length: write the times in days"));
  return not_units(units, cat("begin with \"", word, "\", which is no unit of time known here"));
}

/// Returns the calendar with this name. Files have two names that settings of streams do not take: "360", and
/// "none" for times without dates, where only the differences of times count.
Result<Calendar> calendar_of(const std::string& name) {
  if (name == "360") return Calendar::day_360;
  if (name == "none") return Calendar::proleptic_gregorian;
  return parse_calendar(name);
}

}  // namespace

bool are_time_units(std::string_view units) {
  const std::string text = lower_case(units);
  return text.find(" since ") != std::string::npos;
}

Result<TimeUnits> parse_time_units(std::string_view units, std::string_view calendar) {
  const std::size_t since = lower_case(units).find(" since ");
  if (since == std::string::npos) return not_units(units, "have no \"since\"");
  TimeUnits read;
  const std::string name = calendar.empty() ? "standard" : lower_case(trim(calendar));
  const Result<Calendar> known = calendar_of(name);
  if (!known.is_ok())
    return Status(Code::format,
                  cat("the calendar \"", calendar,
                      "\" of the time axis is not read; expected standard, proleptic_gregorian, "
                      "360_day, noleap (365_day), julian or all_leap (366_day)"));
  const Result<double> unit = unit_of(units, std::string(trim(units.substr(0, since))), *known);
  TR_TRY(unit.status());
  read.unit_seconds = *unit;
  read.calendar = *known;
  DateTime base;
  std::int64_t ahead = 0;
  BaseScanner in(trim(units.substr(since + 7)));
  if (!scan_base_date(in, base) || !scan_base_clock(in, base) || !scan_zone(in, ahead))
    return not_units(units, "name no date");
  const bool is_julian = (name == "standard" || name == "gregorian") && base < first_gregorian;
  const DateTime in_some_year{
      is_julian ? 2000 : base.year, base.month, base.day, base.hour, base.minute, base.second};
  if (!is_valid(in_some_year, read.calendar))
    return not_units(units, cat("name a date that does not exist in the calendar ", name));
  if (is_julian) {
    if (base.year < -1'000'000) return not_units(units, "name a date too long ago");
    read.base = julian_days(base) * 86400 + base.hour * 3600 + base.minute * 60 + base.second;
  } else {
    read.base = to_seconds(base, read.calendar);
  }
  read.base -= ahead;
  return read;
}

Result<std::int64_t> seconds_at(const TimeUnits& units, double number) {
  // Axes in days have fractions such as halves and thirds. The whole units are exact, so only the fraction is
  // rounded.
  const double whole = std::floor(number), rest = number - whole;
  const double seconds = whole * units.unit_seconds + std::round(rest * units.unit_seconds);
  constexpr double most = 3e16;  // 10^9 years
  // Checks the sum, too, because the base itself may be 10^9 years away.
  if (!(std::abs(seconds) <= most && std::abs(static_cast<double>(units.base) + seconds) <= most))
    return Status(Code::corrupt, cat("the time axis has the value ", number,
                                     "; expected a time less than 10^9 years from now"));
  return units.base + std::llround(seconds);
}

std::optional<std::int64_t> rest_of(const TimeUnits& units, double number, std::int64_t seconds) {
  __extension__ using Wide = __int128;
  constexpr std::int64_t second = 1'000'000'000;
  const std::int64_t unit = std::llround(units.unit_seconds * second);
  const double whole = std::floor(number), rest = (number - whole) * static_cast<double>(unit);
  // The last places of the number are all that rounding may have changed.
  const double slack =
      4 * std::numeric_limits<double>::epsilon() * std::abs(number) * static_cast<double>(unit);
  for (std::int64_t step = second; step > 0; step /= 1000) {
    const std::int64_t count = std::llround(rest / static_cast<double>(step));
    if (std::abs(rest - static_cast<double>(count * step)) > slack) continue;
    const Wide since = static_cast<Wide>(whole) * unit + Wide{count} * step;
    return static_cast<std::int64_t>(since - Wide{seconds - units.base} * second);
  }
  return std::nullopt;
}

}  // namespace tailrace::cf
