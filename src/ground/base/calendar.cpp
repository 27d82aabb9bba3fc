// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/base/calendar.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "ground/base/text.hpp"

namespace tailrace {
namespace {

constexpr std::int64_t kSecondsPerDay = 86400;
// The seconds of all years up to this one fit easily into 64 bits.
constexpr std::int64_t kYearLimit = 1'000'000'000;
constexpr std::array<int, 12> kMonthDays{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

std::int64_t floor_divide(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

bool is_leap(std::int64_t year, Calendar calendar) {
  switch (calendar) {
    case Calendar::proleptic_gregorian:
      return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    case Calendar::julian:
      return year % 4 == 0;
    case Calendar::all_leap:
      return true;
    case Calendar::day_360:
    case Calendar::no_leap:
      return false;
  }
  return false;
}

int days_in_month(std::int64_t year, int month, Calendar calendar) {
  if (calendar == Calendar::day_360) return 30;
  const bool leap_day = month == 2 && is_leap(year, calendar);
  return kMonthDays[static_cast<std::size_t>(month - 1)] + (leap_day ? 1 : 0);
}

/// `years`: the number of years after which the leap days of a calendar repeat. `days`: the days in these
/// years. `epoch`: the days from March 1 of year 0 to 1970-01-01.
struct Cycle {
  std::int64_t years, days, epoch;
};
constexpr Cycle kGregorian{400, 146097, 719468}, kJulian{4, 1461, 719483};

const Cycle* cycle_of(Calendar calendar) {
  if (calendar == Calendar::proleptic_gregorian) return &kGregorian;
  return calendar == Calendar::julian ? &kJulian : nullptr;
}

// Returns days since 1970-01-01. Here a year begins in March, so that the leap day is the last day of its
// year (H. Hinnant, "chrono-compatible low-level date algorithms").
std::int64_t cyclic_days(std::int64_t year, int month, int day, const Cycle& cycle) {
  const std::int64_t y = month <= 2 ? year - 1 : year;
  const std::int64_t era = floor_divide(y, cycle.years);
  const std::int64_t year_of_era = y - era * cycle.years;
  const std::int64_t day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
  const std::int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return era * cycle.days + day_of_era - cycle.epoch;
}

void cyclic_date(std::int64_t days, const Cycle& cycle, DateTime& out) {
  days += cycle.epoch;
  const std::int64_t era = floor_divide(days, cycle.days);
  const std::int64_t day_of_era = days - era * cycle.days;
  const std::int64_t year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  const std::int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const std::int64_t shifted = (5 * day_of_year + 2) / 153;
  out.day = static_cast<int>(day_of_year - (153 * shifted + 2) / 5 + 1);
  out.month = static_cast<int>(shifted < 10 ? shifted + 3 : shifted - 9);
  out.year = year_of_era + era * cycle.years + (out.month <= 2 ? 1 : 0);
}

std::int64_t days_of_regular_year(Calendar calendar) {
  return calendar == Calendar::day_360 ? 360 : calendar == Calendar::all_leap ? 366 : 365;
}

// Returns days since 1970-01-01, in a calendar whose years all have the same length.
std::int64_t regular_days(const DateTime& time, Calendar calendar) {
  std::int64_t days = (time.year - 1970) * days_of_regular_year(calendar) + time.day - 1;
  for (int month = 1; month < time.month; ++month) days += days_in_month(time.year, month, calendar);
  return days;
}

void regular_date(std::int64_t days, Calendar calendar, DateTime& out) {
  const std::int64_t length = days_of_regular_year(calendar);
  const std::int64_t years = floor_divide(days, length);
  out.year = 1970 + years;
  int rest = static_cast<int>(days - years * length);
  out.month = 1;
  while (rest >= days_in_month(out.year, out.month, calendar)) {
    rest -= days_in_month(out.year, out.month, calendar);
    ++out.month;
  }
  out.day = rest + 1;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string padded(std::int64_t value, std::size_t width) {
  std::string digits = std::to_string(value);
  return digits.size() < width ? std::string(width - digits.size(), '0') + digits : digits;
}

/// Reads a time from left to right. A `take` that does not match leaves the text as it is.
class TimeScanner {
 public:
  explicit TimeScanner(std::string_view text) : rest_(text) {}

  bool take(char wanted) {
    if (rest_.empty() || rest_.front() != wanted) return false;
    rest_.remove_prefix(1);
    return true;
  }
  template <typename T>
  bool take_digits(std::size_t width, T& value) {
    if (leading_digits() < width) return false;
    std::from_chars(rest_.data(), rest_.data() + width, value);
    rest_.remove_prefix(width);
    return true;
  }
  [[nodiscard]] std::size_t leading_digits() const {
    return static_cast<std::size_t>(std::ranges::find_if_not(rest_, is_digit) - rest_.begin());
  }
  [[nodiscard]] std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

// Scans "2026-03-01" or "20260301". With a sign, a year may have more than four digits: "-0044-03-15",
// "+12026-03-01". Sets `compact` for a date without dashes, because scan_clock() needs to know that.
bool scan_date(TimeScanner& scanner, DateTime& time, bool& compact) {
  const bool negative = scanner.take('-');
  const bool expanded = negative || scanner.take('+');
  const std::size_t digits = scanner.leading_digits();
  compact = !expanded && digits >= 8;
  const std::size_t year_digits = expanded ? digits : 4;
  if (year_digits < 4 || year_digits > 9 || !scanner.take_digits(year_digits, time.year)) return false;
  if (negative) time.year = -time.year;
  if (compact) return scanner.take_digits(2, time.month) && scanner.take_digits(2, time.day);
  return scanner.take('-') && scanner.take_digits(2, time.month) && scanner.take('-') &&
         scanner.take_digits(2, time.day);
}

// Scans hours, then minutes, then seconds, each optional. After a compact date the 'T' and the colons may be
// missing.
bool scan_clock(TimeScanner& scanner, DateTime& time, bool compact) {
  const bool separated = scanner.take('T') || scanner.take('t') || scanner.take(' ');
  if (!separated && (!compact || scanner.leading_digits() == 0)) return true;
  if (!scanner.take_digits(2, time.hour)) return false;
  const bool colons = scanner.take(':');
  if (!colons && scanner.leading_digits() == 0) return true;
  if (!scanner.take_digits(2, time.minute)) return false;
  if (colons ? !scanner.take(':') : scanner.leading_digits() == 0) return true;
  return scanner.take_digits(2, time.second);
}

Status not_a_time(std::string_view text) {
  return {Code::argument,
          cat("\"", text, "\" is no time; give one as 2026-03-01T00:00Z, 2026-03-01 06 or 20260301T06")};
}

struct Unit {
  std::string_view name;
  std::int64_t seconds;
};
constexpr std::array<Unit, 5> kUnits{{{"d", kSecondsPerDay}, {"h", 3600}, {"min", 60}, {"m", 60}, {"s", 1}}};

Status not_a_duration(std::string_view text, std::string_view reason) {
  return {Code::argument,
          cat("\"", text, "\" is no duration: ", reason, "; give one as 15m, 6h, 90s, 2d, 1h30m or 00:15")};
}

// Adds number * seconds to `total`. Returns false if the sum does not fit into 64 bits.
bool accumulate(std::int64_t& total, std::int64_t number, std::int64_t seconds) {
  std::int64_t product = 0;
  return !__builtin_mul_overflow(number, seconds, &product) &&
         !__builtin_add_overflow(total, product, &total);
}

// Reads "00:15" or "00:15:30": hours, minutes, seconds.
Result<std::int64_t> clock_duration(std::string_view text) {
  std::int64_t total = 0;
  std::int64_t unit = 3600;
  std::string_view rest = text;
  for (;;) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    const bool digits = !rest.empty() && is_digit(rest.front());
    if (!digits || error == std::errc::invalid_argument) return not_a_duration(text, "digits are missing");
    if (error == std::errc::result_out_of_range || !accumulate(total, number, unit)) {
      return not_a_duration(text, "it is too long");
    }
    if (unit < 3600 && number >= 60) return not_a_duration(text, "minutes and seconds end at 59");
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    if (rest.empty()) break;
    if (rest.front() != ':' || unit == 1) return not_a_duration(text, cat("unexpected \"", rest, "\""));
    rest.remove_prefix(1);
    unit /= 60;
  }
  return total;
}

}  // namespace

std::int64_t to_seconds(const DateTime& time, Calendar calendar) {
  const Cycle* const cycle = cycle_of(calendar);
  const std::int64_t days =
      cycle != nullptr ? cyclic_days(time.year, time.month, time.day, *cycle) : regular_days(time, calendar);
  return days * kSecondsPerDay + time.hour * 3600 + time.minute * 60 + time.second;
}

DateTime from_seconds(std::int64_t seconds, Calendar calendar) {
  DateTime time;
  const std::int64_t days = floor_divide(seconds, kSecondsPerDay);
  // The remainder is not computed as seconds - days * 86400: that product overflows for the most negative
  // times.
  const std::int64_t remainder = seconds % kSecondsPerDay;
  const int second_of_day = static_cast<int>(remainder < 0 ? remainder + kSecondsPerDay : remainder);
  if (const Cycle* const cycle = cycle_of(calendar)) {
    cyclic_date(days, *cycle, time);
  } else {
    regular_date(days, calendar, time);
  }
  time.hour = second_of_day / 3600;
  time.minute = second_of_day / 60 % 60;
  time.second = second_of_day % 60;
  return time;
}

bool is_valid(const DateTime& time, Calendar calendar) {
  if (time.year <= -kYearLimit || time.year >= kYearLimit) return false;
  if (time.month < 1 || time.month > 12) return false;
  if (time.day < 1 || time.day > days_in_month(time.year, time.month, calendar)) return false;
  return time.hour >= 0 && time.hour < 24 && time.minute >= 0 && time.minute < 60 && time.second >= 0 &&
         time.second < 60;
}

Result<DateTime> parse_time(std::string_view text, Calendar calendar) {
  TimeScanner scanner(text);
  DateTime time;
  bool compact = false;
  if (!scan_date(scanner, time, compact) || !scan_clock(scanner, time, compact)) return not_a_time(text);
  if (!scanner.rest().empty() && scanner.rest() != "Z" && scanner.rest() != "z") {
    const char next = scanner.rest().front();
    if (next == '+' || next == '-') {
      return Status(Code::argument,
                    cat("\"", text, "\": the zone ", scanner.rest(),
                        " is not supported; give the time in UTC, with Z or nothing behind it"));
    }
    return not_a_time(text);
  }
  if (!is_valid(time, calendar)) {
    return Status(Code::argument, cat("\"", text, "\" does not exist in the calendar ", name_of(calendar)));
  }
  return time;
}

std::string format_time(const DateTime& time) {
  const bool four_digits = time.year >= 0 && time.year <= 9999;
  const std::string sign = four_digits ? "" : (time.year < 0 ? "-" : "+");
  return cat(sign, padded(time.year < 0 ? -time.year : time.year, 4), "-", padded(time.month, 2), "-",
             padded(time.day, 2), "T", padded(time.hour, 2), ":", padded(time.minute, 2), ":",
             padded(time.second, 2), "Z");
}

Result<std::int64_t> parse_duration(std::string_view text) {
  if (text.empty()) return not_a_duration(text, "it is empty");
  if (text.front() == '-') return not_a_duration(text, "it is negative");
  if (text == "0") return std::int64_t{0};
  if (text.find(':') != std::string_view::npos) return clock_duration(text);
  std::int64_t total = 0;
  std::int64_t coarser = std::numeric_limits<std::int64_t>::max();
  std::string_view rest = text;
  while (!rest.empty()) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (!is_digit(rest.front())) return not_a_duration(text, cat("unexpected \"", rest, "\""));
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    const auto unit = std::ranges::find_if(
        kUnits, [rest](const Unit& candidate) { return rest.starts_with(candidate.name); });
    if (unit == kUnits.end())
      return not_a_duration(text, rest.empty() ? "a unit is missing" : cat("unknown unit \"", rest, "\""));
    if (unit->seconds >= coarser)
      return not_a_duration(text, "units go from long to short, each at most once");
    if (error == std::errc::result_out_of_range || !accumulate(total, number, unit->seconds)) {
      return not_a_duration(text, "it is too long");
    }
    coarser = unit->seconds;
    rest.remove_prefix(unit->name.size());
  }
  return total;
}

Result<Calendar> parse_calendar(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, Calendar>, 11> known{{
      {"gregorian", Calendar::proleptic_gregorian},
      {"proleptic_gregorian", Calendar::proleptic_gregorian},
      {"standard", Calendar::proleptic_gregorian},
      {"360_day", Calendar::day_360},
      {"noleap", Calendar::no_leap},
      {"no_leap", Calendar::no_leap},
      {"365_day", Calendar::no_leap},
      {"360day", Calendar::day_360},
      {"julian", Calendar::julian},
      {"all_leap", Calendar::all_leap},
      {"366_day", Calendar::all_leap},
  }};
  const auto found = std::ranges::find(known, text, &std::pair<std::string_view, Calendar>::first);
  if (found != known.end()) return found->second;
  // A list, because clang 14 does not compile the views of libstdc++ 12.
  std::vector<std::string_view> names;
  for (const auto& each : known) names.push_back(each.first);
  return Status(
      Code::settings,
      cat("unknown calendar \"", text, "\"",
          did_you_mean(text, names, "it may be proleptic_gregorian, 360_day, noleap, julian or all_leap")));
}

std::string_view name_of(Calendar calendar) {
  switch (calendar) {
    case Calendar::proleptic_gregorian:
      return "proleptic_gregorian";
    case Calendar::day_360:
      return "360_day";
    case Calendar::no_leap:
      return "noleap";
    case Calendar::julian:
      return "julian";
    case Calendar::all_leap:
      return "all_leap";
  }
  return "unknown";
}

}  // namespace tailrace
