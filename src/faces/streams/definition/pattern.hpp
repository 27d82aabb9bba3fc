// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/calendar.hpp"
#include "ground/base/status.hpp"
#include "ground/base/time_axis.hpp"

namespace tailrace::streams {

/// The values, besides the lead, on which a file's name depends.
struct PatternContext {
  DateTime base;
  Calendar calendar = Calendar::proleptic_gregorian;
  std::optional<int> member;
  TimeAxis time{};
};

/// A file name with places for times: "fc_{base:%Y%m%d%H}+{lead:03h}.grib2".
///
///   {base:%Y%m%d%H}   the base time; %Y %m %d %H %M %S, %j (day of the year), %y (year in its century), %%
///   {valid:%Y%m%d}    the base time plus the lead, likewise; without a format both are %Y%m%d%H
///   {lead:03h}        the lead in hours (or d, m, s, ms, us, ns) with at least 3 digits: 006; {lead:h}
///                     unpadded: 6
///   {time:08.3f}      the model's time, rounded to 3 decimals, with at least 8 characters: 0000.667; in
///                     {time} it has as many digits as tell it
///   {member:02}       the ensemble member, padded likewise; {member} unpadded
///   {{ and }}         braces
///
/// The unit of a lead is not written: {lead:03h}h gives 006h.
class Pattern {
 public:
  /// Returns Code::settings naming the position and the forms that are valid there.
  static Result<Pattern> parse(std::string_view text);

  /// Returns the name of the file that holds `lead`. Returns Code::format if the lead cannot be named exactly
  /// (90 minutes under {lead:03h}; below zero), and Code::settings if {member} is asked for and there is
  /// none, or if the axis of times has no leads, times or dates as the pattern asks for.
  [[nodiscard]] Result<std::string> expand(std::int64_t lead, const PatternContext& context) const;
  /// Returns the least lead >= 0 whose file is called `name`. If the name stands only for times before the
  /// base time, returns the least of their leads with `also_before_base`, otherwise none. Returns none if the
  /// pattern does not give this name, or names a unit of time without the longer ones ({valid:%d%H}), so that
  /// the lead cannot be told.
  [[nodiscard]] std::optional<std::int64_t> match(std::string_view name, const PatternContext& context,
                                                  bool also_before_base = false) const;

  /// A name, cut before the first part that the lead changes. In the rest, parts that the lead changes stand
  /// as the pattern writes them, in braces.
  struct Split {
    std::string fixed;
    std::string rest;
  };
  [[nodiscard]] Split split(const PatternContext& context) const;

  /// Returns true if different leads may have different names: the stream then rolls over.
  [[nodiscard]] bool depends_on_lead() const;
  [[nodiscard]] bool uses_member() const;
  /// Returns true if the pattern has a base or valid time.
  [[nodiscard]] bool uses_time() const;
  /// Returns an error if the axis of times lacks what the pattern asks for.
  [[nodiscard]] Status check(const TimeAxis& time) const;
  [[nodiscard]] const std::string& text() const { return text_; }

  enum class Kind { literal, base, valid, lead, time, member };
  struct Part {
    Kind kind = Kind::literal;
    std::string text;       // literal text, or the time format
    std::int64_t unit = 0;  // lead: nanoseconds of its unit
    std::string unit_name;
    int width = 0;      // least number of digits
    int decimals = -1;  // time: -1 = as many as tell it
  };

 private:
  std::string text_;
  std::vector<Part> parts_;
};

}  // namespace tailrace::streams
