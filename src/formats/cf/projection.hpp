// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

namespace tailrace::cf {

/// A sphere, or a spheroid with two axes, in metres.
struct Earth {
  double major = 6367470;  // the sphere of shapeOfTheEarth=0, the default of ecCodes' messages
  double minor = 6367470;
  [[nodiscard]] bool is_sphere() const { return major == minor; }
  friend bool operator==(const Earth&, const Earth&) = default;
};

/// A conformal map of the earth: Lambert's cone, or a plane at a pole. All angles are in degrees. The
/// equations are from J. P. Snyder, Map projections: a working manual (USGS, 1987); they hold for spheres and
/// spheroids.
struct Projection {
  Earth earth;
  double parallel_1 = 0, parallel_2 = 0;  // true to scale; a plane at a pole has only the first
  double origin_latitude = 0;             // where y is 0 on the central meridian; for a plane, the pole's
  double central_longitude = 0;           // the meridian that is vertical on the map
  friend bool operator==(const Projection&, const Projection&) = default;

  /// Returns true if the cone touches the earth along one parallel; false if it cuts the earth along two.
  [[nodiscard]] bool is_tangent() const;
  struct Point {
    double latitude = 0, longitude = 0;
  };
  struct MapPoint {
    double x = 0, y = 0;  // metres
  };
  /// Returns the place of a point on the map of Lambert's cone.
  [[nodiscard]] MapPoint lambert(Point point) const;
  /// Returns the place of a point on the map of the plane at a pole.
  [[nodiscard]] MapPoint polar(Point point) const;
  /// Undoes lambert(). The longitude is from -180 to 180.
  [[nodiscard]] Point from_lambert(MapPoint at) const;
  /// Undoes polar(). The longitude is from -180 to 180.
  [[nodiscard]] Point from_polar(MapPoint at) const;

 private:
  struct Cone {
    double n = 0, scale = 0, origin = 0;  // Snyder's n, a F and rho 0
  };
  [[nodiscard]] Cone cone() const;
  [[nodiscard]] double eccentricity() const;
  [[nodiscard]] double m(double latitude) const;
  [[nodiscard]] double t(double latitude) const;
  [[nodiscard]] double latitude_of(double t) const;
  [[nodiscard]] double polar_scale() const;
};

}  // namespace tailrace::cf
