// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/cf/projection.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tailrace::cf {

namespace {

constexpr double degree = std::numbers::pi / 180;

double turn_to(double longitude) { return std::remainder(longitude, 360); }

}  // namespace

double Projection::eccentricity() const {
  const double ratio = earth.minor / earth.major;
  return std::sqrt(std::max(0.0, 1 - ratio * ratio));
}

/// Snyder's equation 14-15. Latitudes here are in radians.
double Projection::m(double latitude) const {
  const double part = eccentricity() * std::sin(latitude);
  return std::cos(latitude) / std::sqrt(1 - part * part);
}

/// Equation 15-9.
double Projection::t(double latitude) const {
  const double e = eccentricity(), part = e * std::sin(latitude);
  return std::tan(std::numbers::pi / 4 - latitude / 2) / std::pow((1 - part) / (1 + part), e / 2);
}

/// Equation 7-9, repeated until it converges. For the earth a few turns are enough.
double Projection::latitude_of(double t) const {
  const double e = eccentricity();
  double latitude = std::numbers::pi / 2 - 2 * std::atan(t);
  for (int i = 0; e > 0 && i < 20; ++i) {
    const double part = e * std::sin(latitude);
    latitude = std::numbers::pi / 2 - 2 * std::atan(t * std::pow((1 - part) / (1 + part), e / 2));
  }
  return latitude;
}

bool Projection::is_tangent() const { return std::fabs(parallel_1 - parallel_2) < 1e-9; }

/// Equations 15-7 to 15-10.
Projection::Cone Projection::cone() const {
  const double one = parallel_1 * degree, two = parallel_2 * degree;
  const double n = is_tangent()
                       ? std::sin(one)
                       : (std::log(m(one)) - std::log(m(two))) / (std::log(t(one)) - std::log(t(two)));
  const double scale = earth.major * m(one) / (n * std::pow(t(one), n));
  return {n, scale, scale * std::pow(t(origin_latitude * degree), n)};
}

Projection::MapPoint Projection::lambert(Point point) const {
  const Cone cone = this->cone();
  const double rho = cone.scale * std::pow(t(point.latitude * degree), cone.n);
  const double theta = cone.n * turn_to(point.longitude - central_longitude) * degree;
  return {rho * std::sin(theta), cone.origin - rho * std::cos(theta)};
}

Projection::Point Projection::from_lambert(MapPoint at) const {
  const Cone cone = this->cone();
  const double sign = cone.n < 0 ? -1 : 1;
  const double down = cone.origin - at.y;
  const double rho = sign * std::hypot(at.x, down);
  if (rho == 0) return {sign * 90, turn_to(central_longitude)};
  const double theta = std::atan2(sign * at.x, sign * down);
  const double latitude = latitude_of(std::pow(rho / cone.scale, 1 / cone.n));
  return {latitude / degree, turn_to(central_longitude + theta / cone.n / degree)};
}

/// Equations 21-33 and 21-34: the distance from the pole, divided by t.
double Projection::polar_scale() const {
  const double parallel = std::fabs(parallel_1) * degree, e = eccentricity();
  if (std::fabs(parallel_1) < 90) return earth.major * m(parallel) / t(parallel);
  return 2 * earth.major / std::sqrt(std::pow(1 + e, 1 + e) * std::pow(1 - e, 1 - e));
}

Projection::MapPoint Projection::polar(Point point) const {
  const double sign = origin_latitude < 0 ? -1 : 1;
  const double rho = polar_scale() * t(sign * point.latitude * degree);
  const double east = turn_to(point.longitude - central_longitude) * degree;
  return {rho * std::sin(east), -sign * rho * std::cos(east)};
}

Projection::Point Projection::from_polar(MapPoint at) const {
  const double sign = origin_latitude < 0 ? -1 : 1;
  const double rho = std::hypot(at.x, at.y);
  if (rho == 0) return {sign * 90, turn_to(central_longitude)};
  const double east = std::atan2(at.x, -sign * at.y) / degree;
  return {sign * latitude_of(rho / polar_scale()) / degree, turn_to(central_longitude + east)};
}

}  // namespace tailrace::cf
