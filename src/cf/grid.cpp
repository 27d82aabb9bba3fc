// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "cf/grid.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

#include "base/options.hpp"
#include "base/text.hpp"

namespace tailrace::cf {

namespace {

/// The keys of a georeference, by the names of ecCodes.
class GridKeys {
 public:
  explicit GridKeys(const codec::Keys& keys) : keys_(keys) {}

  [[nodiscard]] const std::string* find(std::string_view name) const {
    for (const auto& [key, value] : keys_) {
      if (key == name) return &value;
    }
    return nullptr;
  }
  [[nodiscard]] bool is_set(std::string_view name) const {
    const std::string* const value = find(name);
    return value != nullptr && *value != "0";
  }
  [[nodiscard]] Result<std::optional<double>> number(std::string_view name) const {
    const std::string* const text = find(name);
    if (text == nullptr) return std::optional<double>();
    const Result<double> value = parse_real(*text);
    if (!value.is_ok()) return Status(Code::format, cat("grid key '", name, "': ", value.status().text()));
    return std::optional(*value);
  }
  /// Returns the degrees of NAMEInDegrees, or of NAME, which counts millionths.
  [[nodiscard]] Result<std::optional<double>> degrees(const std::string& name) const {
    const Result<std::optional<double>> given = number(name + "InDegrees");
    TR_TRY(given.status());
    if (given->has_value()) return *given;
    const Result<std::optional<double>> millionths = number(name);
    TR_TRY(millionths.status());
    return millionths->has_value() ? std::optional(**millionths * 1e-6) : std::nullopt;
  }
  [[nodiscard]] Result<double> needed(const std::string& name) const {
    const Result<std::optional<double>> value = degrees(name);
    TR_TRY(value.status());
    if (value->has_value()) return **value;
    return Status(Code::format,
                  cat("the grid needs the key ", name, "InDegrees; add it to the georeference"));
  }

 private:
  const codec::Keys& keys_;
};

Result<Axis> axis_of(const GridKeys& keys, const std::string& name, char letter, Index points, int sign,
                     double turn) {
  const Result<double> first = keys.needed(name + "OfFirstGridPoint");
  TR_TRY(first.status());
  const Result<std::optional<double>> last = keys.degrees(name + "OfLastGridPoint");
  TR_TRY(last.status());
  Axis axis{*first, *first, points};
  if (last->has_value()) {
    axis.last = **last;
    // A row that goes east over the end of the circle ends at a smaller number than it began at.
    if (turn > 0 && sign > 0 && axis.last < axis.first) axis.last += turn;
    if (turn > 0 && sign < 0 && axis.last > axis.first) axis.last -= turn;
    return axis;
  }
  const std::string step_key = cat(letter, "DirectionIncrement");
  const Result<std::optional<double>> step = keys.degrees(step_key);
  TR_TRY(step.status());
  if (!step->has_value())
    return Status(Code::format, cat("the grid needs ", name, "OfLastGridPointInDegrees or ", step_key,
                                    "InDegrees; add one to the georeference"));
  axis.last = axis.first + sign * **step * static_cast<double>(points - 1);
  return axis;
}

/// Returns the numbers of points along both axes, slowest first.
Result<std::vector<Index>> points_of(const GridKeys& keys, const std::vector<Index>& shape) {
  const Result<std::optional<double>> i = keys.number("Ni"), j = keys.number("Nj");
  TR_TRY(i.status());
  TR_TRY(j.status());
  Index elements = 1;
  for (const Index extent : shape) elements *= extent;
  std::vector<Index> points = shape;
  if (shape.size() != 2) points = {0, 0};
  constexpr double most = 1e9;
  if (i->has_value() && **i < most) points[1] = static_cast<Index>(**i);
  if (j->has_value() && **j < most) points[0] = static_cast<Index>(**j);
  const bool fits = shape.size() != 2 || points == shape;
  if (fits && points[0] > 0 && points[1] > 0 && points[0] * points[1] == elements) return points;
  return Status(Code::format, cat("the grid has Nj=", points[0], " rows of Ni=", points[1],
                                  " points, but a record has ", elements, " elements"));
}

}  // namespace

double Axis::at(Index i) const {
  if (points < 2) return first;
  return first + (last - first) * static_cast<double>(i) / static_cast<double>(points - 1);
}

Grid::Point Grid::on_globe(double latitude, double longitude) const {
  constexpr double degree = std::numbers::pi / 180;
  // The pole of the turned grid is the point opposite of its south pole.
  const double pole = -south_pole_latitude * degree;
  const double x = std::cos(latitude * degree) * std::cos(longitude * degree);
  const double y = std::cos(latitude * degree) * std::sin(longitude * degree);
  const double z = std::sin(latitude * degree);
  const double up = std::cos(pole) * x + std::sin(pole) * z;
  const double along = std::atan2(-y, std::cos(pole) * z - std::sin(pole) * x);
  return {std::asin(std::clamp(up, -1.0, 1.0)) / degree,
          std::remainder(south_pole_longitude + 180 + along / degree, 360)};
}

void Grid::pack(Packer& out) const {
  out.put(kind);
  for (const Axis& each : {latitudes, longitudes}) out.put(each.first).put(each.last).put(each.points);
  out.put(south_pole_latitude).put(south_pole_longitude);
}

Result<Grid> Grid::unpack(Unpacker& in) {
  Grid grid;
  grid.kind = in.get<Kind>();
  for (Axis* const each : {&grid.latitudes, &grid.longitudes})
    *each = {in.get<double>(), in.get<double>(), in.get<Index>()};
  grid.south_pole_latitude = in.get<double>();
  grid.south_pole_longitude = in.get<double>();
  Index all = 0;
  if (in.ok() && grid.kind >= Kind::unknown && grid.kind <= Kind::rotated && grid.latitudes.points >= 0 &&
      grid.longitudes.points >= 0 &&
      !__builtin_mul_overflow(grid.latitudes.points, grid.longitudes.points, &all))
    return grid;
  return Status(Code::corrupt, "a prepared grid is not whole");
}

Result<Grid> grid_of(const codec::Keys& list, const std::vector<Index>& shape) {
  const GridKeys keys(list);
  Grid grid;
  const std::string* const type = keys.find("gridType");
  if (type == nullptr || (*type != "regular_ll" && *type != "rotated_ll")) return grid;
  for (const std::string_view key : {"jPointsAreConsecutive", "alternativeRowScanning"}) {
    if (keys.is_set(key))
      return Status(Code::format, cat("grid key '", key,
                                      "': NetCDF needs the points of a row one after another, "
                                      "all rows in one direction"));
  }
  grid.kind = *type == "regular_ll" ? Grid::Kind::lat_lon : Grid::Kind::rotated;
  const Result<std::vector<Index>> points = points_of(keys, shape);
  TR_TRY(points.status());
  const int north = keys.is_set("jScansPositively") ? 1 : -1;
  const int east = keys.is_set("iScansNegatively") ? -1 : 1;
  const Result<Axis> latitudes = axis_of(keys, "latitude", 'j', (*points)[0], north, 0);
  TR_TRY(latitudes.status());
  const Result<Axis> longitudes = axis_of(keys, "longitude", 'i', (*points)[1], east, 360);
  TR_TRY(longitudes.status());
  grid.latitudes = *latitudes;
  grid.longitudes = *longitudes;
  if (grid.kind == Grid::Kind::lat_lon) return grid;
  const Result<double> latitude = keys.needed("latitudeOfSouthernPole");
  TR_TRY(latitude.status());
  const Result<double> longitude = keys.needed("longitudeOfSouthernPole");
  TR_TRY(longitude.status());
  grid.south_pole_latitude = *latitude;
  grid.south_pole_longitude = *longitude;
  return grid;
}

}  // namespace tailrace::cf
