// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ground/base/bytes.hpp"
#include "ground/base/calendar.hpp"
#include "ground/base/status.hpp"

namespace tailrace {

/// A unit of fixed length in which leads and time variables count.
struct TimeUnit {
  std::string_view symbol;  // "ms"
  std::string_view plural;  // "milliseconds", as time variables name it
  std::int64_t nanoseconds = 0;
};

/// Returns the unit with this symbol or name, or nullptr. There are ns, us, ms, s, min, h and d.
const TimeUnit* find_time_unit(std::string_view name);
/// Returns "ns, us, ms, s, min, h, d", for people.
std::string time_unit_list();

/// The times of a stream's steps. The core of the library carries a time as one int64, its lead: leads are
/// compared, stored and sent as they are, and equal times have equal leads.
///
/// On an axis of leads, a lead counts units after the base time. On an axis of the model's own times, which
/// are of type double, it is the code of a time: codes are ordered as their times, and the code of 0 is 0.
class TimeAxis {
 public:
  enum class Kind : std::int32_t { leads, model };

  /// The axis of leads in seconds.
  TimeAxis() = default;
  /// An axis of leads in `unit`.
  static TimeAxis of_leads(const TimeUnit& unit);
  /// An axis of the model's own times, in seconds without a base time.
  static TimeAxis of_model();

  [[nodiscard]] bool is_model() const { return is_.kind == Kind::model; }
  /// Returns false if times are counted from no date.
  [[nodiscard]] bool has_base() const { return is_.has_base; }
  /// Returns true for leads in seconds whose variable is as programs expect it without any option.
  [[nodiscard]] bool is_default() const { return *this == TimeAxis(); }
  /// The name of the variable of time in files.
  [[nodiscard]] const std::string& name() const { return is_.name; }
  void set_name(std::string_view name) { is_.name = name; }
  /// Sets the units of the variable of time. Code::argument for units that are none above, which only the
  /// times of a model without a base time may have.
  Status set_units(std::string_view units);
  /// Has the model's times count from a base time. Code::argument if their units are none above.
  Status set_base();
  /// Returns the units of the variable of time: "seconds since 2026-03-01 00:00:00", or for times without a
  /// base time the model's units.
  [[nodiscard]] std::string units(const DateTime& base) const;
  /// Returns the symbol of the unit of leads, or the units of the model's times.
  [[nodiscard]] std::string unit() const;

  /// Returns the value of the variable of time for a lead.
  [[nodiscard]] double number(std::int64_t lead) const;
  /// Returns Code::argument if no step can be at this lead: it is before the base time, or beyond the whole
  /// numbers that a float64 holds.
  [[nodiscard]] Status check(std::int64_t lead) const;
  /// Returns the code of a time of the model. Code::argument for NaN and infinity.
  static Result<std::int64_t> code_of(double time);
  /// Returns the time of the model that has this code.
  static double time_of(std::int64_t lead);

  /// Returns the nanoseconds of a unit of leads.
  [[nodiscard]] std::int64_t nanoseconds() const { return is_.nanoseconds; }
  /// Returns how many units of so many nanoseconds a lead is, if it is a whole number of them. Only for axes
  /// of leads.
  [[nodiscard]] std::optional<std::int64_t> count(std::int64_t lead, std::int64_t nanoseconds) const;
  /// Returns the lead that is `count` units of so many nanoseconds. Returns nothing if that is no whole
  /// number of the axis's units, or beyond 64 bits. Only for axes of leads.
  [[nodiscard]] std::optional<std::int64_t> lead_of(std::int64_t count, std::int64_t nanoseconds) const;
  /// Returns the seconds of a lead if they are whole. Only for axes of leads.
  [[nodiscard]] std::optional<std::int64_t> seconds(std::int64_t lead) const;
  /// Returns the last whole second up to a lead, counted from the base time. Only for axes with a base time.
  [[nodiscard]] std::int64_t floor_seconds(std::int64_t lead) const;
  /// Returns the lead that is so many seconds after the base time, or nothing if no lead is. Only for axes
  /// with a base time.
  [[nodiscard]] std::optional<std::int64_t> lead_at(std::int64_t seconds) const;
  /// Parses a length of time such as "6h", "1h30m", "00:15", "250ms" or "90s" into units of leads. Returns
  /// Code::argument if the text is no length, or no whole number of units.
  [[nodiscard]] Result<std::int64_t> parse_length(std::string_view text) const;

  /// Returns "21600 s", "250 ms" or "0.667 s", for people.
  [[nodiscard]] std::string text(std::int64_t lead) const;
  /// Returns "lead 21600 s" or "time 0.667 s", for people.
  [[nodiscard]] std::string at(std::int64_t lead) const;

  /// The members of an axis, as indexes and messages between ranks store them.
  struct Parts {
    Kind kind = Kind::leads;
    bool has_base = true;
    std::int64_t nanoseconds =
        1'000'000'000;                   // of a unit of leads, or of the model's times if their unit is one
    std::int64_t shown = 1'000'000'000;  // of a unit of the variable
    std::string name = "time";
    std::string units{};  // of the model's times
    friend bool operator==(const Parts&, const Parts&) = default;
  };
  [[nodiscard]] const Parts& parts() const { return is_; }
  /// Returns Code::corrupt for parts that contradict one another.
  static Result<TimeAxis> of_parts(Parts parts);
  void pack(Packer& out) const;
  static Result<TimeAxis> unpack(Unpacker& in);
  friend bool operator==(const TimeAxis&, const TimeAxis&) = default;

 private:
  Parts is_;
};

}  // namespace tailrace
