// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/streams/definition/pattern.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>

#include "ground/base/text.hpp"

namespace tailrace::streams {
namespace {

using Kind = Pattern::Kind;
using Part = Pattern::Part;

constexpr std::string_view kDefaultFormat = "%Y%m%d%H";
constexpr int kMostDigits = 18;

Status pattern_error(std::string_view text, std::size_t position, std::string_view what) {
  return {Code::settings, cat("file pattern \"", text, "\", position ", position + 1, ": ", what,
                              "; valid are {base:%Y%m%d%H} {valid:%Y%m%d%H} {lead:03h} {lead:05m} {lead:06s} "
                              "{lead:09ms} {time:08.3f} {member:02}, and {{ }} for braces")};
}

std::string padded(std::int64_t value, int width) {
  std::string digits = std::to_string(value);
  const auto wanted = static_cast<std::size_t>(width);
  return digits.size() < wanted ? std::string(wanted - digits.size(), '0') + digits : digits;
}

std::int64_t day_of_year(const DateTime& time, Calendar calendar) {
  const DateTime first{time.year, 1, 1, 0, 0, 0};
  const DateTime midnight{time.year, time.month, time.day, 0, 0, 0};
  return (to_seconds(midnight, calendar) - to_seconds(first, calendar)) / 86400 + 1;
}

/// Returns a time as {time} gives it, with zeros behind its sign up to the width.
std::string time_text(double time, const Part& part) {
  char buffer[400];  // the largest double has 309 digits before the point
  const double size = std::abs(time);
  const auto [end, error] = part.decimals < 0 ? std::to_chars(buffer, buffer + sizeof buffer, size)
                                              : std::to_chars(buffer, buffer + sizeof buffer, size,
                                                              std::chars_format::fixed, part.decimals);
  const std::string_view digits(buffer, static_cast<std::size_t>(end - buffer));
  // A time that rounds to 0 gets no sign: match() must find the same time for "0.0" and "-0.0".
  const std::string sign = time < 0 && digits.find_first_of("123456789") != std::string_view::npos ? "-" : "";
  const auto wanted = static_cast<std::size_t>(part.width);
  const std::size_t length = sign.size() + digits.size();
  return cat(sign, std::string(length < wanted ? wanted - length : 0, '0'), digits);
}

/// The parts of a lead that a file name gives. Fields of the valid time that the name leaves out stay at -1.
struct Found {
  std::optional<std::int64_t> lead;
  std::int64_t year = -1, year_of_century = -1, month = -1, day = -1, day_of_year = -1;
  std::int64_t hour = -1, minute = -1, second = -1;
};

/// A letter of a time format, and the field that it names.
struct TimeLetter {
  char letter;
  int width;
  std::int64_t (*value)(const DateTime&, Calendar);
  std::int64_t Found::*found;
};
// match() does not find years outside of 0 to 9999: their width is not fixed.
constexpr std::array<TimeLetter, 8> kTimeLetters{{
    {'Y', 4, [](const DateTime& t, Calendar) { return t.year; }, &Found::year},
    {'y', 2, [](const DateTime& t, Calendar) { return (t.year % 100 + 100) % 100; }, &Found::year_of_century},
    {'m', 2, [](const DateTime& t, Calendar) { return std::int64_t{t.month}; }, &Found::month},
    {'d', 2, [](const DateTime& t, Calendar) { return std::int64_t{t.day}; }, &Found::day},
    {'H', 2, [](const DateTime& t, Calendar) { return std::int64_t{t.hour}; }, &Found::hour},
    {'M', 2, [](const DateTime& t, Calendar) { return std::int64_t{t.minute}; }, &Found::minute},
    {'S', 2, [](const DateTime& t, Calendar) { return std::int64_t{t.second}; }, &Found::second},
    {'j', 3, day_of_year, &Found::day_of_year},
}};

/// Returns nullptr for any other letter.
const TimeLetter* find_letter(char letter) {
  const auto* const row = std::ranges::find(kTimeLetters, letter, &TimeLetter::letter);
  return row == kTimeLetters.end() ? nullptr : row;
}

std::string format(std::string_view form, const DateTime& time, Calendar calendar) {
  std::string out;
  for (std::size_t i = 0; i < form.size(); ++i) {
    const TimeLetter* const row = form[i] == '%' ? find_letter(form[++i]) : nullptr;
    if (row == nullptr) {
      out += form[i];
      continue;
    }
    const std::int64_t value = row->value(time, calendar);
    out += value < 0 ? "-" + padded(-value, row->width) : padded(value, row->width);
  }
  return out;
}

/// Returns true if a time format names any field.
bool names_time(std::string_view form) {
  for (std::size_t i = 0; i + 1 < form.size(); ++i) {
    if (form[i] == '%' && form[++i] != '%') return true;
  }
  return false;
}

/// Reads a pattern from left to right into parts.
class PatternScanner {
 public:
  explicit PatternScanner(std::string_view text) : text_(text) {}

  Status scan(std::vector<Part>& parts) {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      const bool doubled = at_ + 1 < text_.size() && text_[at_ + 1] == c;
      if ((c == '{' || c == '}') && doubled) {
        literal(parts, c);
        at_ += 2;
      } else if (c == '{') {
        TR_TRY(place(parts));
      } else if (c == '}') {
        return pattern_error(text_, at_, "\"}\" without \"{\" before it");
      } else if (c == '\0') {
        return pattern_error(text_, at_, "a zero byte");
      } else {
        literal(parts, c);
        ++at_;
      }
    }
    return {};
  }

 private:
  static void literal(std::vector<Part>& parts, char c) {
    if (parts.empty() || parts.back().kind != Kind::literal) parts.emplace_back();
    parts.back().text += c;
  }

  Status place(std::vector<Part>& parts) {
    const std::size_t end = text_.find('}', at_);
    if (end == std::string_view::npos) return pattern_error(text_, at_, "\"{\" is never closed");
    const std::string_view inside = text_.substr(at_ + 1, end - at_ - 1);
    const std::size_t colon = std::min(inside.find(':'), inside.size());
    const std::string_view name = inside.substr(0, colon);
    const bool has_form = colon < inside.size();
    const std::string_view form = has_form ? inside.substr(colon + 1) : std::string_view();
    const std::size_t form_at = at_ + 1 + colon + (has_form ? 1 : 0);
    Part part;
    if (name == "base" || name == "valid") {
      part.kind = name == "base" ? Kind::base : Kind::valid;
      TR_TRY(time_form(form, has_form, form_at, part));
    } else if (name == "lead") {
      part.kind = Kind::lead;
      TR_TRY(lead_form(form, form_at, part));
    } else if (name == "time") {
      part.kind = Kind::time;
      TR_TRY(number_form(form, form_at, part));
    } else if (name == "member") {
      part.kind = Kind::member;
      TR_TRY(width(form, form_at, part));
    } else {
      const std::vector<std::string_view> names{"base", "valid", "lead", "time", "member"};
      const std::string near = nearest(name, names);
      return pattern_error(
          text_, at_,
          cat("unknown \"{", inside, "}\"; ",
              near.empty() ? "it may be {base}, {valid}, {lead}, {time} or {member}, and {{ is a brace"
                           : cat("did you mean {", near, "}?")));
    }
    parts.push_back(std::move(part));
    at_ = end + 1;
    return {};
  }

  Status time_form(std::string_view form, bool given, std::size_t position, Part& part) const {
    part.text = given ? form : kDefaultFormat;
    if (part.text.empty()) return pattern_error(text_, position, "the time format is empty");
    for (std::size_t i = 0; i < part.text.size(); ++i) {
      if (part.text[i] == '{') return pattern_error(text_, position + i, "\"{\" inside of a time format");
      if (part.text[i] != '%') continue;
      if (++i == part.text.size() || (part.text[i] != '%' && find_letter(part.text[i]) == nullptr)) {
        return pattern_error(text_, position + i - 1,
                             cat("unknown \"", std::string_view(part.text).substr(i - 1, 2),
                                 "\" in a time format, which takes %Y %m %d %H %M %S %j %y %%"));
      }
    }
    return {};
  }

  Status lead_form(std::string_view form, std::size_t position, Part& part) const {
    const std::size_t digits = std::min(form.find_first_not_of("0123456789"), form.size());
    const std::string_view name = form.substr(digits);
    const TimeUnit* const unit = name == "min" ? nullptr : find_time_unit(name == "m" ? "min" : name);
    if (unit == nullptr || unit->symbol.size() < name.size()) {
      return pattern_error(text_, position,
                           "{lead} needs its unit, d, h, m, s, ms, us or ns, as in {lead:h} or {lead:03h}");
    }
    part.unit = unit->nanoseconds;
    part.unit_name = name;
    return width(form.substr(0, digits), position, part);
  }

  // Reads "" or "08.3f" or ".3f".
  Status number_form(std::string_view form, std::size_t position, Part& part) const {
    if (form.empty()) return {};
    const std::size_t point = form.find('.');
    const char* const last = form.data() + form.size() - 1;
    if (point == std::string_view::npos || form.back() != 'f')
      return pattern_error(text_, position,
                           cat("\"", form, "\" is no form of a number; expected one as 08.3f"));
    const auto [end, error] = std::from_chars(form.data() + point + 1, last, part.decimals);
    if (error != std::errc{} || end != last || part.decimals < 0 || part.decimals > kMostDigits)
      return pattern_error(text_, position, "the number of decimals is one from 0 to 18, as in {time:08.3f}");
    return width(form.substr(0, point), position, part);
  }

  // Reads "" or "03". A width without the zero would pad with blanks, which no file name should hold.
  Status width(std::string_view form, std::size_t position, Part& part) const {
    if (form.empty()) return {};
    const char* last = form.data() + form.size();
    const auto [end, error] = std::from_chars(form.data(), last, part.width);
    const bool valid = form.front() == '0' && error == std::errc{} && end == last && part.width >= 1;
    if (valid && part.width <= kMostDigits) return {};
    return pattern_error(
        text_, position,
        cat("\"", form, "\" is no width; give a zero and the number of digits (1 to 18), as 03"));
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

std::size_t leading_digits(std::string_view text) {
  std::size_t count = 0;
  while (count < text.size() && text[count] >= '0' && text[count] <= '9') ++count;
  return count;
}

bool take_digits(std::string_view& rest, std::size_t width, std::int64_t& value) {
  if (leading_digits(rest) < width) return false;
  std::from_chars(rest.data(), rest.data() + width, value);
  rest.remove_prefix(width);
  return true;
}

bool take_literal(std::string_view& rest, std::string_view literal) {
  if (!rest.starts_with(literal)) return false;
  rest.remove_prefix(literal.size());
  return true;
}

bool take_time(std::string_view& rest, std::string_view form, Found& found) {
  for (std::size_t i = 0; i < form.size(); ++i) {
    const TimeLetter* const row = form[i] == '%' ? find_letter(form[++i]) : nullptr;
    const bool taken = row == nullptr
                           ? take_literal(rest, form.substr(i, 1))
                           : take_digits(rest, static_cast<std::size_t>(row->width), found.*row->found);
    if (!taken) return false;
  }
  return true;
}

// Returns true if no unit is missing between the year and the shortest unit found.
bool names_all_units(const Found& found) {
  const bool names_day_of_year = found.day_of_year > 0;
  const bool named[] = {found.year >= 0,
                        found.month > 0 || names_day_of_year,
                        found.day > 0 || names_day_of_year,
                        found.hour >= 0,
                        found.minute >= 0,
                        found.second >= 0};
  return named[0] && std::ranges::is_sorted(named, std::greater<>());
}

// Returns the first lead that is so many seconds after the base time or later.
std::optional<std::int64_t> first_lead_from(std::int64_t seconds, const TimeAxis& time) {
  constexpr std::int64_t second = 1'000'000'000;
  if (time.is_model() || time.nanoseconds() <= second) return time.lead_at(seconds);
  const std::int64_t unit = time.nanoseconds() / second;
  return seconds / unit + (seconds % unit > 0 ? 1 : 0);
}

// Returns the least lead at which the valid time has the fields found. The caller checks it by expanding
// again.
std::optional<std::int64_t> earliest_lead(const Found& found, const PatternContext& context) {
  if (found.lead) return found.lead;
  DateTime valid{found.year, 1, 1, 0, 0, 0};
  if (valid.year < 0) {
    valid.year = context.base.year;
    if (found.year_of_century >= 0) {
      const std::int64_t century = context.base.year - context.base.year % 100;
      valid.year =
          century + found.year_of_century + (found.year_of_century < context.base.year % 100 ? 100 : 0);
    }
  }
  const bool names_day = found.day_of_year > 0;
  const auto at_least = [](std::int64_t value, int least) {
    return static_cast<int>(std::max<std::int64_t>(value, least));
  };
  valid.month = names_day ? 1 : at_least(found.month, 1);
  valid.day = names_day ? 1 : at_least(found.day, 1);
  valid.hour = at_least(found.hour, 0);
  valid.minute = at_least(found.minute, 0);
  valid.second = at_least(found.second, 0);
  if (!is_valid(valid, context.calendar)) return std::nullopt;
  std::int64_t seconds = to_seconds(valid, context.calendar) - to_seconds(context.base, context.calendar);
  if (names_day) seconds += (found.day_of_year - 1) * std::int64_t{86400};
  // A name that leaves out a unit stands for any number of times before the base time: leads count from 0
  // then.
  return first_lead_from(names_all_units(found) ? seconds : std::max<std::int64_t>(seconds, 0), context.time);
}

/// Reads a file name back against the parts of a pattern. A lead's digits may end at several places.
class NameScanner {
 public:
  NameScanner(const Pattern& pattern, const std::vector<Part>& parts, std::string_view name,
              const PatternContext& context, bool also_before_base)
      : pattern_(pattern), parts_(parts), name_(name), context_(context), before_base_(also_before_base) {}

  std::optional<std::int64_t> scan() const { return scan_from(0, name_, {}); }

 private:
  std::optional<std::int64_t> scan_from(std::size_t part, std::string_view rest, Found found) const {
    for (; part < parts_.size(); ++part) {
      const Part& next = parts_[part];
      if (next.kind == Kind::lead) return scan_lead(part, rest, found);
      if (next.kind == Kind::time) return scan_time(part, rest, found);
      if (!take_fixed(next, rest, found)) return std::nullopt;
    }
    if (!rest.empty()) return std::nullopt;
    const std::optional<std::int64_t> lead = earliest_lead(found, context_);
    if (!lead) return std::nullopt;
    if (context_.time.is_model()) return gives_name(*lead) ? lead : std::nullopt;
    const std::int64_t from_base = std::max<std::int64_t>(*lead, 0);
    if (gives_name(from_base)) return from_base;
    return before_base_ && gives_name(*lead) ? lead : std::nullopt;
  }

  bool gives_name(std::int64_t lead) const {
    const Result<std::string> name = pattern_.expand(lead, context_);
    return name.is_ok() && *name == name_;
  }

  std::optional<std::int64_t> scan_lead(std::size_t part, std::string_view rest, Found found) const {
    const Part& lead = parts_[part];
    const std::size_t most = std::min<std::size_t>(leading_digits(rest), kMostDigits);
    for (std::size_t width = std::max<std::size_t>(1, static_cast<std::size_t>(lead.width)); width <= most;
         ++width) {
      std::int64_t number = 0;
      std::from_chars(rest.data(), rest.data() + width, number);
      found.lead = context_.time.lead_of(number, lead.unit);
      if (!found.lead) continue;
      if (const auto result = scan_from(part + 1, rest.substr(width), found)) return result;
    }
    return std::nullopt;
  }

  // A number may end at several places, if digits follow it in the name.
  std::optional<std::int64_t> scan_time(std::size_t part, std::string_view rest, Found found) const {
    const std::size_t most = std::min(rest.find_first_not_of("0123456789.e+-"), rest.size());
    for (std::size_t width = 1; width <= most; ++width) {
      double time = 0;
      const auto [end, error] = std::from_chars(rest.data(), rest.data() + width, time);
      if (error != std::errc{} || end != rest.data() + width) continue;
      const Result<std::int64_t> code = TimeAxis::code_of(time);
      if (!code.is_ok()) continue;
      found.lead = *code;
      if (const auto result = scan_from(part + 1, rest.substr(width), found)) return result;
    }
    return std::nullopt;
  }

  bool take_fixed(const Part& part, std::string_view& rest, Found& found) const {
    switch (part.kind) {
      case Kind::literal:
        return take_literal(rest, part.text);
      case Kind::base:
        return take_literal(rest, format(part.text, context_.base, context_.calendar));
      case Kind::valid:
        return take_time(rest, part.text, found);
      default:
        return context_.member && take_literal(rest, padded(*context_.member, part.width));
    }
  }

  const Pattern& pattern_;
  const std::vector<Part>& parts_;
  std::string_view name_;
  const PatternContext& context_;
  bool before_base_;
};

/// Appends a lead in the unit of a part, which must divide it.
Status append_lead(std::int64_t lead, const Part& part, const TimeAxis& time, std::string& out) {
  if (lead < 0) return {Code::format, cat(time.at(lead), " is below zero")};
  const std::optional<std::int64_t> count = time.count(lead, part.unit);
  if (!count) {
    constexpr std::int64_t minute = 60'000'000'000;
    const std::string finer = time.count(lead, minute) ? "05m"
                              : time.seconds(lead)     ? "06s"
                                                       : cat("09", time.unit());
    return {Code::format, cat("a lead of ", time.text(lead), " is no whole number of {lead:", part.unit_name,
                              "}; use a finer unit, as {lead:", finer, "}")};
  }
  out += padded(*count, part.width);
  return {};
}

}  // namespace

Result<Pattern> Pattern::parse(std::string_view text) {
  if (text.empty())
    return Status(Code::settings, "the file pattern is empty; give a name such as fc+{lead:03h}.grib2");
  Pattern pattern;
  pattern.text_ = text;
  TR_TRY(PatternScanner(text).scan(pattern.parts_));
  if (text.ends_with('/')) return pattern_error(text, text.size() - 1, "this names a directory and no file");
  return pattern;
}

Result<std::string> Pattern::expand(std::int64_t lead, const PatternContext& context) const {
  std::string out;
  for (const Part& part : parts_) {
    switch (part.kind) {
      case Kind::literal:
        out += part.text;
        break;
      case Kind::base:
        out += format(part.text, context.base, context.calendar);
        break;
      case Kind::valid: {
        const std::int64_t seconds =
            to_seconds(context.base, context.calendar) + context.time.floor_seconds(lead);
        out += format(part.text, from_seconds(seconds, context.calendar), context.calendar);
        break;
      }
      case Kind::lead:
        TR_TRY(append_lead(lead, part, context.time, out).in(cat("file pattern \"", text_, "\"")));
        break;
      case Kind::time:
        out += time_text(TimeAxis::time_of(lead), part);
        break;
      case Kind::member:
        if (!context.member) {
          return Status(Code::settings,
                        cat("file pattern \"", text_, "\" asks for {member}, but no member= is given"));
        }
        out += padded(*context.member, part.width);
        break;
    }
  }
  return out;
}

Status Pattern::check(const TimeAxis& time) const {
  for (const Part& part : parts_) {
    const bool names_date = part.kind == Kind::base || part.kind == Kind::valid;
    if (names_date && !time.has_base())
      return {Code::settings,
              cat("file pattern \"", text_, "\" asks for {", part.kind == Kind::base ? "base" : "valid",
                  "}, and the stream has no base=")};
    if (part.kind == Kind::lead && time.is_model())
      return {Code::settings, cat("file pattern \"", text_,
                                  "\" asks for {lead}, which a stream with time=model does not have: write "
                                  "{time:08.3f}")};
    if (part.kind == Kind::time && !time.is_model())
      return {Code::settings,
              cat("file pattern \"", text_,
                  "\" asks for {time}, which a stream has with time=model alone: write {lead:06s}")};
  }
  return {};
}

std::optional<std::int64_t> Pattern::match(std::string_view name, const PatternContext& context,
                                           bool also_before_base) const {
  return NameScanner(*this, parts_, name, context, also_before_base).scan();
}

Pattern::Split Pattern::split(const PatternContext& context) const {
  Split split;
  bool changes = false;
  for (const Part& part : parts_) {
    std::string text = part.text;
    if (part.kind == Kind::base) text = format(part.text, context.base, context.calendar);
    if (part.kind == Kind::member) text = padded(context.member.value_or(0), part.width);
    if (part.kind == Kind::valid) text = cat("{valid:", part.text, "}");
    if (part.kind == Kind::lead) {
      const std::string width = part.width > 0 ? cat("0", part.width) : std::string();
      text = cat("{lead:", width, part.unit_name, "}");
    }
    if (part.kind == Kind::time) {
      const std::string width = part.width > 0 ? cat("0", part.width) : std::string();
      text = part.decimals < 0 ? std::string("{time}") : cat("{time:", width, ".", part.decimals, "f}");
    }
    changes = changes || part.kind == Kind::valid || part.kind == Kind::lead || part.kind == Kind::time;
    (changes ? split.rest : split.fixed) += text;
  }
  return split;
}

bool Pattern::depends_on_lead() const {
  return std::any_of(parts_.begin(), parts_.end(), [](const Part& part) {
    return part.kind == Kind::lead || part.kind == Kind::time ||
           (part.kind == Kind::valid && names_time(part.text));
  });
}

bool Pattern::uses_member() const { return std::ranges::count(parts_, Kind::member, &Part::kind) > 0; }

bool Pattern::uses_time() const {
  return std::ranges::count(parts_, Kind::base, &Part::kind) > 0 ||
         std::ranges::count(parts_, Kind::valid, &Part::kind) > 0;
}

}  // namespace tailrace::streams
