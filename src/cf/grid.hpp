// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <vector>

#include "codec/definition.hpp"

namespace tailrace::cf {

/// Evenly spaced coordinates, in degrees.
struct Axis {
  double first = 0;
  double last = 0;
  Index points = 0;
  [[nodiscard]] double at(Index i) const;
  friend bool operator==(const Axis&, const Axis&) = default;
};

/// The places of a record's points on the globe: latitudes and longitudes, plain or turned so that their
/// south pole lies elsewhere. They are unknown for other kinds of grids.
struct Grid {
  enum class Kind : std::int32_t { unknown, lat_lon, rotated };
  Kind kind = Kind::unknown;
  Axis latitudes, longitudes;  // slower and faster dimension of the record
  double south_pole_latitude = -90, south_pole_longitude = 0;
  friend bool operator==(const Grid&, const Grid&) = default;

  struct Point {
    double latitude = 0, longitude = 0;
  };
  /// Returns where a point of a turned grid lies on the globe, longitudes from -180 to 180.
  [[nodiscard]] Point on_globe(double latitude, double longitude) const;

  void pack(Packer& out) const;
  static Result<Grid> unpack(Unpacker& in);
};

/// Reads the grid off the keys of a georeference, which have the names that ecCodes gives them. Grids other
/// than regular_ll and rotated_ll are unknown. Returns Code::format if the keys are not enough, or do not fit
/// to the shape.
Result<Grid> grid_of(const codec::Keys& keys, const std::vector<Index>& shape);

}  // namespace tailrace::cf
