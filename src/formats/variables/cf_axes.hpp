// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "formats/cf/found.hpp"
#include "formats/cf/times.hpp"
#include "formats/cf/vertical.hpp"

namespace tailrace::variables {

/// The meaning of a dimension of a file with CF metadata.
enum class Role { unknown, time, level, member, horizontal, corner /* bounds of cells and intervals */ };

/// Returns all numbers of a coordinate, with its scale and offset; NaN where it has none.
/// `has_default_fill`: elements that were never written hold the fill value of the NetCDF library.
Result<std::vector<double>> scaled_numbers(const cf::FoundVariable& variable, std::size_t number,
                                           const cf::ReadNumbers& read, bool has_default_fill);

/// Stands for a time that the file does not tell: its number is a fill value, or no time.
inline constexpr std::int64_t untold_time = std::numeric_limits<std::int64_t>::max();

struct FoundTimes {
  std::vector<std::int64_t> seconds;  // since 1970, or untold_time
  Status odd;                         // why one of them is untold; success: none is
};

/// The dimensions and coordinates of a file of any writer, by the CF conventions and by what else is usual
/// (docs/input-formats.md).
class CfAxes {
 public:
  CfAxes(const cf::FoundContents& contents, const cf::ReadNumbers& read, bool has_default_fill);

  [[nodiscard]] Role role(int dimension) const { return roles_[static_cast<std::size_t>(dimension)]; }
  /// Returns the variable whose numbers are those of the dimension, or -1.
  [[nodiscard]] int coordinate(int dimension) const {
    return coordinates_[static_cast<std::size_t>(dimension)];
  }
  /// Returns true if the variable is there for others: coordinates, bounds, descriptions of grids.
  [[nodiscard]] bool is_auxiliary(std::size_t variable) const { return auxiliary_[variable]; }
  /// Returns the first dimension of times, or -1.
  [[nodiscard]] int time_dimension() const;

  /// Returns the variables without dimensions that belong to a field: those that it names as coordinates, and
  /// the only time of a file.
  [[nodiscard]] std::vector<std::size_t> scalars_of(const cf::FoundVariable& field) const;
  /// Returns what scaled_numbers() does.
  Result<std::vector<double>> numbers(std::size_t variable) const;
  /// Returns the times of a coordinate; with `ends` the ends of its intervals, if it has bounds. The times of
  /// a file have one calendar, that of the first coordinate which tells a time; another one is Code::format.
  Result<FoundTimes> times(std::size_t variable, bool ends);
  [[nodiscard]] bool has_time_units(std::size_t variable) const;
  /// Returns Code::format if the coordinate says that the dimension counts times, in a way that is not read.
  [[nodiscard]] Status check_no_times(int dimension) const;
  [[nodiscard]] bool is_reference(std::size_t variable) const;
  [[nodiscard]] bool is_member(std::size_t variable) const;
  [[nodiscard]] std::optional<Calendar> calendar() const { return calendar_; }

 private:
  void mark_named();
  void mark_others(bool surely_times);
  void mark_auxiliary();
  void mark_plane();
  void find_single_times();
  Result<std::vector<double>> time_numbers(std::size_t variable, bool ends) const;
  [[nodiscard]] Role role_of(std::size_t coordinate) const;
  /// Returns true if the variable says that it holds times, whatever its units are.
  [[nodiscard]] bool tells_time(std::size_t variable) const;
  [[nodiscard]] const cf::FoundVariable& at(std::size_t variable) const {
    return contents_.variables[variable];
  }

  const cf::FoundContents& contents_;
  const cf::ReadNumbers& read_;
  bool has_default_fill_;
  std::vector<Role> roles_;
  std::vector<int> coordinates_;
  std::vector<bool> auxiliary_;
  std::vector<std::size_t> single_references_, single_times_;  // variables of times without dimensions
  std::optional<Calendar> calendar_;
};

}  // namespace tailrace::variables
