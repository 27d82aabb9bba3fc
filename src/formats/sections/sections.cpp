// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// This file tells where the points of a section of an array lie (section=).
#include "formats/sections/sections.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "formats/cf/grid.hpp"
#include "formats/grids/grids.hpp"
#include "ground/base/checksum.hpp"
#include "ground/base/text.hpp"

namespace tailrace::sections {

namespace {

using cf::Axis;
using cf::Grid;

/// The keys that tell the numbers and the places of points. A section has others.
constexpr std::array<std::string_view, 14> keys_of_points{"Ni",
                                                          "Nj",
                                                          "Nx",
                                                          "Ny",
                                                          "numberOfPointsAlongAParallel",
                                                          "numberOfPointsAlongAMeridian",
                                                          "numberOfPointsAlongXAxis",
                                                          "numberOfPointsAlongYAxis",
                                                          "latitudeOfFirstGridPoint",
                                                          "longitudeOfFirstGridPoint",
                                                          "latitudeOfLastGridPoint",
                                                          "longitudeOfLastGridPoint",
                                                          "numberOfDataPoints",
                                                          "numberOfValues"};

constexpr std::array<std::string_view, 3> increments_of_x{"iDirectionIncrement", "Di", "Dx"};
constexpr std::array<std::string_view, 3> increments_of_y{"jDirectionIncrement", "Dj", "Dy"};

/// Returns true if a section of the grid has another value of the key. The increment of an axis of one point
/// follows from no points, and stays.
bool is_of_points(std::string_view key, const Grid& grid) {
  for (const std::string_view unit : {"InDegrees", "InMetres"})
    if (key.ends_with(unit)) key.remove_suffix(unit.size());
  const auto is_in = [key](const auto& names) { return std::ranges::find(names, key) != names.end(); };
  return is_in(keys_of_points) || (grid.x.points > 1 && is_in(increments_of_x)) ||
         (grid.y.points > 1 && is_in(increments_of_y));
}

/// The points of a section along one dimension.
struct Chosen {
  Index start = 0, stride = 1, count = 0;
  [[nodiscard]] Index last() const { return start + (count - 1) * stride; }
};

double rounded(double value, double parts) { return std::round(value * parts) / parts; }

/// Longitudes of a row go on beyond 360 degrees where it crosses the end of the circle, and keys do not. A
/// row that goes round the whole circle keeps both of its ends: less 360 they would be one point.
void add_longitudes(double first, double last, codec::Keys& keys) {
  if (first >= 360 && last >= 360) {
    first -= 360;
    last -= 360;
  }
  constexpr double circle = 360 - 1e-6;  // sums of increments are not exact
  if (std::fabs(last - first) < circle) {
    if (first >= 360) first -= 360;
    if (last >= 360) last -= 360;
  }
  keys.emplace_back("longitudeOfFirstGridPointInDegrees", cat(first));
  keys.emplace_back("longitudeOfLastGridPointInDegrees", cat(last));
}

/// Returns the distance of two points of the section, as keys have it, or 0 if nothing tells it.
double step_of(const Axis& axis, const Chosen& along) {
  if (axis.points < 2) return 0;
  return std::fabs(axis.last - axis.first) / static_cast<double>(axis.points - 1) *
         static_cast<double>(along.stride);
}

void add_degrees(const Grid& grid, const Chosen& y, const Chosen& x, codec::Keys& keys) {
  const std::vector<double> rows = grid.rows();
  keys.emplace_back("Ni", cat(x.count));
  keys.emplace_back("Nj", cat(y.count));
  keys.emplace_back("latitudeOfFirstGridPointInDegrees", cat(rows[static_cast<std::size_t>(y.start)]));
  keys.emplace_back("latitudeOfLastGridPointInDegrees", cat(rows[static_cast<std::size_t>(y.last())]));
  add_longitudes(grid.x.at(x.start), grid.x.at(x.last()), keys);
  // GRIB counts millionths of a degree.
  constexpr double parts = 1e6;
  if (const double step = step_of(grid.x, x); step > 0)
    keys.emplace_back("iDirectionIncrementInDegrees", cat(rounded(step, parts)));
  if (grid.kind == Grid::Kind::gaussian) {
    if (y.stride > 1) keys.emplace_back(cf::every_parallel_key, cat(y.stride));
    return;
  }
  if (const double step = step_of(grid.y, y); step > 0)
    keys.emplace_back("jDirectionIncrementInDegrees", cat(rounded(step, parts)));
}

void add_metres(const Grid& grid, const Chosen& y, const Chosen& x, codec::Keys& keys) {
  const Grid::Point first = grid.on_globe(grid.y.at(y.start), grid.x.at(x.start));
  keys.emplace_back("Nx", cat(x.count));
  keys.emplace_back("Ny", cat(y.count));
  keys.emplace_back("latitudeOfFirstGridPointInDegrees", cat(first.latitude));
  // ecCodes takes no negative longitudes in a projection.
  const double east = first.longitude < 0 ? first.longitude + 360 : first.longitude;
  keys.emplace_back("longitudeOfFirstGridPointInDegrees", cat(east));
  // Nothing but these tells where the last point lies. So they are exact, and GRIB rounds to millimetres.
  if (const double step = step_of(grid.x, x); step > 0) keys.emplace_back("DxInMetres", cat(step));
  if (const double step = step_of(grid.y, y); step > 0) keys.emplace_back("DyInMetres", cat(step));
}

/// Calls each(number) for the elements of the whole array that are in the section, in C order.
template <typename Each>
void for_each_chosen(const codec::Section& section, const std::vector<Index>& shape, Each each) {
  std::vector<Index> at(shape.size());
  Index count = 1;
  for (const Index extent : shape) count *= extent;
  for (Index i = 0; i < count; ++i) {
    Index number = 0;
    for (std::size_t d = 0; d < shape.size(); ++d)
      number = number * section.whole[d] + section.start[d] + at[d] * section.stride[d];
    each(number);
    for (std::size_t d = shape.size(); d-- > 0 && ++at[d] == shape[d];) at[d] = 0;
  }
}

}  // namespace

SectionGrid section_grid(const codec::Georeference& whole, const codec::Section& section,
                         const std::vector<Index>& shape) {
  SectionGrid out{{whole.sample, whole.keys, nullptr}, ""};
  const Result<codec::Keys> keys = grids::keys_of(out.georeference);
  if (!keys.is_ok()) return {std::move(out.georeference), keys.status().text()};
  if (keys->empty()) return out;
  if (const std::string_view key = cf::other_order_in(*keys); !key.empty())
    return {std::move(out.georeference),
            cat("grid key '", key,
                "': the grid of a section is known where rows lie one after another, all in one direction")};
  const Result<Grid> grid = cf::grid_of(*keys, section.whole);
  if (!grid.is_ok()) return {std::move(out.georeference), grid.status().text()};
  const std::string* const type = codec::find_key(*keys, "gridType");
  if (grid->kind == Grid::Kind::unknown)
    return {{},
            cat("a part of a grid '", type == nullptr ? "of unknown type" : *type,
                "' is no grid that a message describes")};
  if (shape.size() != 2)
    return {std::move(out.georeference),
            "the layout has the points of a map in one dimension: give it the map's two"};
  const Chosen y{section.start[0], section.stride[0], shape[0]};
  const Chosen x{section.start[1], section.stride[1], shape[1]};
  std::erase_if(out.georeference.keys, [&](const auto& key) { return is_of_points(key.first, *grid); });
  grid->is_projected() ? add_metres(*grid, y, x, out.georeference.keys)
                       : add_degrees(*grid, y, x, out.georeference.keys);
  if (grid->kind == Grid::Kind::gaussian && y.stride > 1)
    out.no_grid =
        "a Gaussian grid of GRIB has all parallels between its first and its last row: give the "
        "rows the stride 1";
  return out;
}

codec::Coordinates section_coordinates(const codec::Coordinates& whole, const codec::Section& section,
                                       const std::vector<Index>& shape) {
  codec::Coordinates part{shape, whole.corners, 0, {}};
  part.values.reserve(static_cast<std::size_t>(part.bytes().value_or(0)));
  const auto take = [&](Bytes begin, Bytes width) {
    for_each_chosen(section, shape, [&](Index number) {
      const auto from = whole.values.begin() + begin + number * width;
      part.values.insert(part.values.end(), from, from + width);
    });
  };
  constexpr Bytes size = sizeof(double);
  const Bytes all = whole.points() * size;
  take(0, size);
  take(all, size);
  if (whole.corners > 0) {
    take(2 * all, whole.corners * size);
    take(2 * all + whole.corners * all, whole.corners * size);
  }
  part.checksum = checksum(part.values);
  return part;
}

codec::Axis section_axis(const codec::Axis& whole, Index start, Index stride, Index count) {
  codec::Axis part{whole.dimension, whole.type, {}, {}, whole.attributes};
  const auto take = [&](const ByteVector& from, ByteVector& to, Bytes width) {
    for (Index i = 0; !from.empty() && i < count; ++i) {
      const auto at = from.begin() + (start + i * stride) * width;
      to.insert(to.end(), at, at + width);
    }
  };
  take(whole.values, part.values, size_of(whole.type));
  take(whole.bounds, part.bounds, 2 * size_of(whole.type));
  return part;
}

}  // namespace tailrace::sections
