// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ground/base/calendar.hpp"
#include "ground/base/status.hpp"
#include "ground/base/time_axis.hpp"

namespace tailrace::operations {

/// The length of an interval: so many units of leads, or so many months of the calendar. One of them is 0.
struct IntervalLength {
  std::int64_t leads = 0;
  std::int64_t months = 0;
  friend bool operator==(const IntervalLength&, const IntervalLength&) = default;
};

/// Parses "1mo", "3mo", "1y" and every length above 0 that the axis has, such as "6h" or "250ms". Returns
/// Code::settings for other texts, and for an axis of the model's own times.
Result<IntervalLength> parse_interval(std::string_view text, const TimeAxis& time = {});
/// Returns "3600 s" or "1 month", for people.
std::string text_of(const IntervalLength& length, const TimeAxis& time = {});

/// The intervals of a stream. They follow one another from the base time on. An interval has the leads above
/// its begin, up to and with its end: each lead above 0 is in one interval.
class Intervals {
 public:
  /// Intervals of months need a base time on one of the days 1 to 28: see check().
  Intervals(IntervalLength length, const DateTime& base, Calendar calendar, const TimeAxis& time = {})
      : length_(length), base_(base), calendar_(calendar), time_(time) {}

  /// Returns Code::settings if the base time is on a day that some months lack.
  [[nodiscard]] Status check() const;
  [[nodiscard]] const IntervalLength& length() const { return length_; }
  /// Returns the lead at which the interval ends that has `lead`, or 0 if `lead` is not above 0.
  [[nodiscard]] std::int64_t end_of(std::int64_t lead) const;
  /// Returns the lead at which the interval that has `lead` begins, or 0 if `lead` is not above 0.
  [[nodiscard]] std::int64_t begin_of(std::int64_t lead) const;
  /// Returns true if an interval ends at `lead`.
  [[nodiscard]] bool is_end(std::int64_t lead) const { return lead > 0 && end_of(lead) == lead; }

 private:
  [[nodiscard]] std::int64_t number_of(std::int64_t lead) const;
  [[nodiscard]] std::int64_t end_of_number(std::int64_t number) const;

  IntervalLength length_;
  DateTime base_;
  Calendar calendar_;
  TimeAxis time_;
};

}  // namespace tailrace::operations
