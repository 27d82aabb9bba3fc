// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <limits>
#include <optional>
#include <vector>

#include "formats/cf/found.hpp"
#include "formats/cf/times.hpp"
#include "formats/cf/vertical.hpp"
#include "ground/base/time_axis.hpp"

namespace tailrace::variables {

/// The meaning of a dimension of a file with CF metadata.
enum class Role { unknown, time, level, member, horizontal, corner /* bounds of cells and intervals */ };

/// Returns all numbers of a coordinate, with scale and offset applied; a missing number is NaN. `number` is
/// the index of `variable` in the file. `has_default_fill`: elements that were never written hold the NetCDF
/// library's fill value.
Result<std::vector<double>> scaled_numbers(const cf::FoundVariable& variable, std::size_t number,
                                           const cf::ReadNumbers& read, bool has_default_fill);

/// Stands for a time that the file does not state: its number is a fill value, or too large for a time.
inline constexpr std::int64_t untold_time = std::numeric_limits<std::int64_t>::max();

struct FoundTimes {
  std::vector<std::int64_t> seconds;  // since 1970, or untold_time; of a model's times the codes
  std::vector<std::int64_t> rests;    // nanoseconds that each time lies behind its second
  Status odd;                         // why a time is untold_time; success: none is
  Status inexact;                     // why a time is rounded to its second; success: none is
};

/// The dimensions and coordinates of a file of any writer, recognised by the CF conventions and by other
/// common habits (docs/input-formats.md).
class CfAxes {
 public:
  CfAxes(const cf::FoundContents& contents, const cf::ReadNumbers& read, bool has_default_fill);

  [[nodiscard]] Role role(int dimension) const { return roles_[static_cast<std::size_t>(dimension)]; }
  /// Returns the coordinate variable of the dimension, or -1.
  [[nodiscard]] int coordinate(int dimension) const {
    return coordinates_[static_cast<std::size_t>(dimension)];
  }
  /// True if the variable only describes other variables: coordinates, bounds, descriptions of grids.
  [[nodiscard]] bool is_auxiliary(std::size_t variable) const { return auxiliary_[variable]; }
  /// Returns the first dimension whose role is time, or -1.
  [[nodiscard]] int time_dimension() const;

  /// Returns the coordinates of one element that belong to a field: those named in its attribute
  /// `coordinates`, and the time of the file if the file has only one.
  [[nodiscard]] std::vector<std::size_t> scalars_of(const cf::FoundVariable& field) const;
  /// Calls scaled_numbers() for the variable.
  Result<std::vector<double>> numbers(std::size_t variable) const;
  /// Returns the times of a coordinate; if `ends` is true and it has bounds, the ends of its intervals. All
  /// times of a file must have one calendar, that of the first coordinate with a valid time, and times that
  /// count from no date one unit: Code::format for another one.
  Result<FoundTimes> times(std::size_t variable, bool ends);
  [[nodiscard]] bool has_time_units(std::size_t variable) const;
  /// True if the variable holds times: from a date, or from none in a file that has no dates.
  [[nodiscard]] bool holds_times(std::size_t variable) const {
    return has_time_units(variable) || has_model_times(variable);
  }
  /// Returns the axis of the file's times if times() has returned those of a model, which count from no date.
  [[nodiscard]] const std::optional<TimeAxis>& model() const { return model_; }
  /// Returns Code::format if the dimension counts times in a way that is not read: in other units, or as base
  /// times or leads without times.
  [[nodiscard]] Status check_no_times(int dimension) const;
  [[nodiscard]] bool is_reference(std::size_t variable) const;
  [[nodiscard]] bool is_member(std::size_t variable) const;
  [[nodiscard]] std::optional<Calendar> calendar() const { return calendar_; }

 private:
  void mark_named();
  void mark_others(bool surely_times);
  [[nodiscard]] bool is_of_points(std::size_t dimension) const;
  void mark_auxiliary();
  void mark_plane();
  void find_single_times();
  Result<std::vector<double>> time_numbers(std::size_t variable, bool ends) const;
  [[nodiscard]] Role role_of(std::size_t coordinate) const;
  /// True if the variable's axis or standard_name says that it holds times, whatever its units are.
  [[nodiscard]] bool tells_time(std::size_t variable) const;
  [[nodiscard]] bool has_model_times(std::size_t variable) const;
  Result<FoundTimes> model_times(std::size_t variable, bool ends);
  [[nodiscard]] const cf::FoundVariable& at(std::size_t variable) const {
    return contents_.variables[variable];
  }

  const cf::FoundContents& contents_;
  const cf::ReadNumbers& read_;
  bool has_default_fill_;
  std::vector<Role> roles_;
  std::vector<int> coordinates_;
  std::vector<bool> auxiliary_;
  std::vector<std::size_t> single_references_, single_times_;  // times without dimensions
  std::optional<Calendar> calendar_;
  bool has_dates_ = false;
  std::optional<TimeAxis> model_;
};

}  // namespace tailrace::variables
