// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/operations/interval.hpp"

#include <limits>

#include "ground/base/options.hpp"
#include "ground/base/text.hpp"

namespace tailrace::operations {

namespace {

constexpr std::int64_t most_months = 12'000;
constexpr int last_common_day = 28;  // each month of each calendar has it

Result<IntervalLength> months(std::string_view number, std::int64_t unit, std::string_view text) {
  const Result<std::int64_t> count = parse_integer(number, 1, most_months / unit);
  if (!count.is_ok()) return count.status().in(cat("\"", text, "\""));
  return IntervalLength{0, *count * unit};
}

}  // namespace

Result<IntervalLength> parse_interval(std::string_view text, const TimeAxis& time) {
  if (time.is_model())
    return Status(Code::settings,
                  "intervals need leads, which end at the same instant in each run: leave time=model out and "
                  "give lead_unit=");
  if (text.ends_with("mo")) return months(text.substr(0, text.size() - 2), 1, text);
  if (text.ends_with("y")) return months(text.substr(0, text.size() - 1), 12, text);
  const Result<std::int64_t> leads = time.parse_length(text);
  if (!leads.is_ok())
    return Status(Code::settings, cat(leads.status().text(), "; months and years are 1mo and 1y"));
  if (*leads == 0) return Status(Code::settings, "an interval of 0 s has no steps; leave interval= out");
  return IntervalLength{*leads, 0};
}

std::string text_of(const IntervalLength& length, const TimeAxis& time) {
  return length.months > 0 ? counted(length.months, "month") : time.text(length.leads);
}

Status Intervals::check() const {
  if (length_.months > 0 && end_of_number(1) <= 0)
    return {Code::settings,
            cat("an interval of ", text_of(length_), " is too long to be counted in ", time_.unit())};
  if (length_.months == 0 || base_.day <= last_common_day) return {};
  return {Code::settings,
          cat("the base time ", format_time(base_),
              " is on a day that some months lack: intervals of months begin on one of the days 1 "
              "to 28")};
}

/// Returns the number of the interval that has `lead`, counted from 1.
std::int64_t Intervals::number_of(std::int64_t lead) const {
  if (length_.months == 0) return (lead - 1) / length_.leads + 1;
  const DateTime time = from_seconds(to_seconds(base_, calendar_) + time_.floor_seconds(lead), calendar_);
  const std::int64_t passed = (time.year - base_.year) * 12 + time.month - base_.month;
  const std::int64_t number = passed / length_.months;
  return end_of_number(number) < lead ? number + 1 : number;
}

std::int64_t Intervals::end_of_number(std::int64_t number) const {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  if (length_.months == 0) return number > most / length_.leads ? most : number * length_.leads;
  const std::int64_t month = base_.month - 1 + number * length_.months;
  DateTime time = base_;
  time.year += month / 12;
  time.month = static_cast<int>(month % 12) + 1;
  // A month ends after whole days, which are whole numbers of each unit of leads.
  return time_.lead_at(to_seconds(time, calendar_) - to_seconds(base_, calendar_)).value_or(0);
}

std::int64_t Intervals::end_of(std::int64_t lead) const {
  return lead <= 0 ? 0 : end_of_number(number_of(lead));
}

std::int64_t Intervals::begin_of(std::int64_t lead) const {
  return lead <= 0 ? 0 : end_of_number(number_of(lead) - 1);
}

}  // namespace tailrace::operations
