// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "formats/cf/projection.hpp"
#include "formats/codec/definition.hpp"

namespace tailrace::cf {

/// A key of georeferences that only formats/sections makes: of how many parallels of a Gaussian grid each row
/// is one. GRIB has no such key.
inline constexpr std::string_view every_parallel_key = "strideOfParallels";

/// Evenly spaced coordinates: degrees, or metres of a projection.
struct Axis {
  double first = 0;
  double last = 0;
  Index points = 0;
  [[nodiscard]] double at(Index i) const;
  friend bool operator==(const Axis&, const Axis&) = default;
};

/// The places of a record's points on the globe. Kinds of grids: latitudes and longitudes, either plain, or
/// turned so that their south pole lies elsewhere; Gaussian latitudes; x and y of a projection; coordinates
/// that the program gives for each point. For other grids the places are unknown.
struct Grid {
  enum class Kind : std::int32_t { unknown, lat_lon, rotated, gaussian, lambert, polar_stereographic, told };
  Kind kind = Kind::unknown;
  Axis y, x;  // slower and faster dimension of the record
  double south_pole_latitude = -90, south_pole_longitude = 0;
  Index parallels = 0;  // of a Gaussian grid, between a pole and the equator; `y` may have only some of them
  Projection projection;
  /// The number and the UUID by which GRIB knows an unstructured grid: 0 and empty if they are not given.
  std::int64_t number_used = 0;
  std::string uuid;  // 8-4-4-4-12 small hexadecimal digits
  /// The coordinates of all points if `kind` is told, otherwise null. On ranks that write no heads they lack
  /// the values.
  std::shared_ptr<const codec::Coordinates> coordinates;
  bool told_is_turned = false;  // `kind` is told, and the keys name a turned grid
  friend bool operator==(const Grid& one, const Grid& other);

  using Point = Projection::Point;
  [[nodiscard]] bool is_projected() const {
    return kind == Kind::lambert || kind == Kind::polar_stereographic;
  }
  /// Returns true if rows and columns do not go east and north.
  [[nodiscard]] bool is_turned() const { return kind == Kind::rotated || is_projected() || told_is_turned; }
  /// Returns the coordinates of the rows.
  [[nodiscard]] std::vector<double> rows() const;
  /// Returns the coordinates of the columns.
  [[nodiscard]] std::vector<double> columns() const;
  /// Returns latitude and longitude of a point of a turned grid. The longitude is from -180 to 180.
  [[nodiscard]] Point on_globe(double y, double x) const;

  void pack(Packer& out) const;
  static Result<Grid> unpack(Unpacker& in);
};

/// Returns true if the grids are equal except for the last bits of their numbers.
[[nodiscard]] bool are_close(Grid one, Grid other);

/// Returns the key by which the points of a grid do not lie row by row, all in one direction, or an empty
/// text.
[[nodiscard]] std::string_view other_order_in(const codec::Keys& keys);

/// Makes the grid from the keys of a georeference, which have ecCodes' names. With `coordinates` the kind is
/// told. Without them, grids other than regular_ll, rotated_ll, regular_gg, lambert and polar_stereographic
/// are unknown. Returns Code::format if keys are missing, if the keys make no grid on the globe, or if they
/// contradict the shape.
Result<Grid> grid_of(const codec::Keys& keys, const std::vector<Index>& shape,
                     std::shared_ptr<const codec::Coordinates> coordinates = nullptr);

}  // namespace tailrace::cf
