// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/cf/grid.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numbers>
#include <optional>
#include <utility>

#include "formats/cf/model.hpp"
#include "ground/base/options.hpp"
#include "ground/base/text.hpp"
#include "ground/base/uuid.hpp"

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
  /// Returns true if the flag is set, by a key of its own or by its bit of scanningMode (GRIB2, flag
  /// table 3.4).
  [[nodiscard]] bool scans(std::string_view name, int bit) const { return is_set(name, "scanningMode", bit); }
  /// Returns true if the south pole is on the projection plane (GRIB2, flag table 3.5).
  [[nodiscard]] bool has_south_pole() const {
    return is_set("southPoleOnProjectionPlane", "projectionCentreFlag", 128);
  }
  [[nodiscard]] bool to_west() const { return scans("iScansNegatively", 128); }
  [[nodiscard]] bool to_north() const { return scans("jScansPositively", 64); }
  [[nodiscard]] Result<std::optional<double>> number(std::string_view name) const {
    const std::string* const text = find(name);
    if (text == nullptr) return std::optional<double>();
    const Result<double> value = parse_real(*text);
    if (!value.is_ok()) return Status(Code::format, cat("grid key '", name, "': ", value.status().text()));
    if (!std::isfinite(*value)) return wrong(name, *value, "it must be a finite number");
    return std::optional(*value);
  }
  /// Returns the degrees from the key NAMEInDegrees, or from NAME, which counts millionths.
  [[nodiscard]] Result<std::optional<double>> degrees(const std::string& name) const {
    return scaled(name, "InDegrees", 1e-6);
  }
  [[nodiscard]] Result<double> needed(const std::string& name) const {
    return there(name, "InDegrees", degrees(name));
  }
  [[nodiscard]] Result<double> needed_latitude(const std::string& name) const {
    const Result<double> value = needed(name);
    TR_TRY(value.status());
    if (std::fabs(*value) <= 90) return *value;
    return wrong(name + "InDegrees", *value, "a latitude lies from -90 to 90");
  }
  [[nodiscard]] static Status wrong(std::string_view name, double value, std::string_view why) {
    return {Code::format, cat("grid key '", name, "' = ", value, ": ", why)};
  }
  /// Returns the metres from the key NAMEInMetres, or from NAME, which counts millimetres.
  [[nodiscard]] Result<double> needed_metres(const std::string& name) const {
    return there(name, "InMetres", scaled(name, "InMetres", 1e-3));
  }
  /// Returns the number from the key scaledValueOfNAME, which has as many decimals as scaleFactorOfNAME says.
  [[nodiscard]] Result<double> needed_decimal(const std::string& name) const {
    const Result<std::optional<double>> factor = number("scaleFactorOf" + name);
    TR_TRY(factor.status());
    const Result<std::optional<double>> value = number("scaledValueOf" + name);
    TR_TRY(value.status());
    if (value->has_value()) return **value * std::pow(10.0, -factor->value_or(0));
    return Status(Code::format, cat("the earth needs the key scaledValueOf", name,
                                    " for its shape; add it to the georeference"));
  }

 private:
  /// Returns true if the flag is set, by a key of its own or by its bit of the key `all`.
  [[nodiscard]] bool is_set(std::string_view name, std::string_view all, int bit) const {
    if (const std::string* const value = find(name); value != nullptr) return *value != "0";
    const std::string* const flags = find(all);
    const Result<std::int64_t> bits =
        flags == nullptr ? Result<std::int64_t>(0) : parse_integer(*flags, 0, 255);
    return bits.is_ok() && (*bits & bit) != 0;
  }
  [[nodiscard]] Result<std::optional<double>> scaled(const std::string& name, std::string_view ending,
                                                     double unit) const {
    const Result<std::optional<double>> given = number(cat(name, ending));
    TR_TRY(given.status());
    if (given->has_value()) return *given;
    const Result<std::optional<double>> counted = number(name);
    TR_TRY(counted.status());
    return counted->has_value() ? std::optional(**counted * unit) : std::nullopt;
  }
  [[nodiscard]] static Result<double> there(const std::string& name, std::string_view ending,
                                            const Result<std::optional<double>>& value) {
    TR_TRY(value.status());
    if (value->has_value()) return **value;
    return Status(Code::format, cat("the grid needs the key ", name, ending, "; add it to the georeference"));
  }

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
    // The longitudes of a row jump where it crosses the end of the circle. Here they go on beyond it.
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
  const auto count = [&](const char* name, const char* other) {
    return keys.number(keys.find(name) != nullptr ? name : other);
  };
  const Result<std::optional<double>> i = count("Ni", "Nx"), j = count("Nj", "Ny");
  TR_TRY(i.status());
  TR_TRY(j.status());
  Index elements = 1;
  for (const Index extent : shape) elements *= extent;
  std::vector<Index> points = shape;
  if (shape.size() != 2) {
    // Takes the numbers that a Gaussian grid without Ni and Nj has in GRIB.
    const Result<std::optional<double>> parallels = keys.number("N");
    const double n = parallels.is_ok() ? parallels->value_or(0) : 0;
    points = {static_cast<Index>(2 * n), static_cast<Index>(4 * n)};
  }
  constexpr double most = 1e9;
  if (i->has_value() && **i < most) points[1] = static_cast<Index>(**i);
  if (j->has_value() && **j < most) points[0] = static_cast<Index>(**j);
  const bool fits = shape.size() != 2 || points == shape;
  if (fits && points[0] > 0 && points[1] > 0 && points[0] * points[1] == elements) return points;
  return Status(Code::format, cat("the grid has Nj=", points[0], " rows of Ni=", points[1],
                                  " points, but a record has ", elements, " elements"));
}

/// Returns the shape of the earth: an entry of code table 3.2 of GRIB2, with ecCodes' axes, or the axes in
/// the keys.
Result<Earth> earth_of(const GridKeys& keys) {
  const Result<std::optional<double>> shape = keys.number("shapeOfTheEarth");
  TR_TRY(shape.status());
  const auto number = static_cast<int>(shape->value_or(0));
  if (number == 1) {
    const Result<double> radius = keys.needed_decimal("RadiusOfSphericalEarth");
    TR_TRY(radius.status());
    return Earth{*radius, *radius};
  }
  if (number == 3 || number == 7) {
    const Result<double> major = keys.needed_decimal("EarthMajorAxis");
    TR_TRY(major.status());
    const Result<double> minor = keys.needed_decimal("EarthMinorAxis");
    TR_TRY(minor.status());
    const double unit = number == 3 ? 1000 : 1;
    return Earth{*major * unit, *minor * unit};
  }
  static const auto& known = *new const std::map<int, Earth>{
      {0, {6367470, 6367470}},         {2, {6378160, 6356775}}, {4, {6378137, 6356752.314}},
      {5, {6378137, 6356752.3142}},    {6, {6371229, 6371229}}, {8, {6371200, 6371200}},
      {9, {6377563.396, 6356256.909}},
  };
  if (const auto found = known.find(number); found != known.end()) return found->second;
  return Status(Code::format, cat("grid key 'shapeOfTheEarth' = ", number,
                                  ": the size of this earth is not known; 1 and 7 take any"));
}

/// Returns the Gaussian latitudes from north to south: the zeros of the Legendre polynomial of degree
/// 2 * `parallels`, by Newton's method.
std::vector<double> gaussian_latitudes(Index parallels) {
  const Index degree = 2 * parallels;
  std::vector<double> latitudes(static_cast<std::size_t>(degree));
  for (Index i = 0; i < parallels; ++i) {
    double z =
        std::cos(std::numbers::pi * (static_cast<double>(i) + 0.75) / (static_cast<double>(degree) + 0.5));
    for (int turn = 0; turn < 10; ++turn) {
      double above = 0, value = 1;
      for (Index k = 1; k <= degree; ++k) {
        const auto order = static_cast<double>(k);
        above = std::exchange(value, ((2 * order - 1) * z * value - (order - 1) * above) / order);
      }
      const double step = value * (z * z - 1) / (static_cast<double>(degree) * (z * value - above));
      z -= step;
      if (std::fabs(step) < 1e-15) break;
    }
    const double latitude = std::asin(z) / std::numbers::pi * 180;
    latitudes[static_cast<std::size_t>(i)] = latitude;
    latitudes[static_cast<std::size_t>(degree - 1 - i)] = -latitude;
  }
  return latitudes;
}

Status read_lat_lon(const GridKeys& keys, Grid& grid) {
  const int north = keys.to_north() ? 1 : -1;
  const int east = keys.to_west() ? -1 : 1;
  const Result<Axis> latitudes = axis_of(keys, "latitude", 'j', grid.y.points, north, 0);
  TR_TRY(latitudes.status());
  const Result<Axis> longitudes = axis_of(keys, "longitude", 'i', grid.x.points, east, 360);
  TR_TRY(longitudes.status());
  grid.y = *latitudes;
  grid.x = *longitudes;
  if (grid.kind == Grid::Kind::lat_lon) return {};
  const Result<double> latitude = keys.needed("latitudeOfSouthernPole");
  TR_TRY(latitude.status());
  const Result<double> longitude = keys.needed("longitudeOfSouthernPole");
  TR_TRY(longitude.status());
  grid.south_pole_latitude = *latitude;
  grid.south_pole_longitude = *longitude;
  return {};
}

/// Reads a Gaussian grid. Without keys for its first and last points it is global, as in GRIB.
Status read_gaussian(const GridKeys& keys, Grid& grid) {
  const Result<std::optional<double>> parallels = keys.number("N");
  TR_TRY(parallels.status());
  constexpr double most = 10000;
  if (!parallels->has_value() || **parallels < 1 || **parallels > most)
    return {Code::format,
            cat("the Gaussian grid needs the key N, the number of its parallels between pole and "
                "equator, from 1 to ",
                most)};
  grid.parallels = static_cast<Index>(**parallels);
  const std::vector<double> all = gaussian_latitudes(grid.parallels);
  const bool to_north = keys.to_north();
  const Result<std::optional<double>> given = keys.degrees("latitudeOfFirstGridPoint");
  TR_TRY(given.status());
  const double first = given->value_or(to_north ? all.back() : all.front());
  const auto nearest =
      std::ranges::min_element(all, {}, [&](double each) { return std::fabs(each - first); });
  const Index begin = nearest - all.begin();
  const Result<std::optional<double>> every = keys.number(every_parallel_key);
  TR_TRY(every.status());
  const Index apart = (grid.y.points - 1) * static_cast<Index>(std::clamp(every->value_or(1), 1.0, 2 * most));
  const Index end = to_north ? begin - apart : begin + apart;
  if (std::fabs(*nearest - first) > 0.01 || end < 0 || end >= std::ssize(all))
    return {Code::format, cat(grid.y.points, " rows from latitude ", first,
                              " on are no parallels of the Gaussian grid with N=", grid.parallels)};
  grid.y.first = *nearest;
  grid.y.last = all[static_cast<std::size_t>(end)];
  const Result<std::optional<double>> west = keys.degrees("longitudeOfFirstGridPoint");
  TR_TRY(west.status());
  const bool has_end = keys.find("longitudeOfLastGridPoint") != nullptr ||
                       keys.find("longitudeOfLastGridPointInDegrees") != nullptr ||
                       keys.find("iDirectionIncrement") != nullptr ||
                       keys.find("iDirectionIncrementInDegrees") != nullptr;
  if (west->has_value() && has_end) {
    const Result<Axis> longitudes =
        axis_of(keys, "longitude", 'i', grid.x.points, keys.to_west() ? -1 : 1, 360);
    TR_TRY(longitudes.status());
    grid.x = *longitudes;
    return {};
  }
  const auto points = static_cast<double>(grid.x.points);
  grid.x.first = west->value_or(0);
  grid.x.last = grid.x.first + 360 * (points - 1) / points;
  return {};
}

/// Returns Code::format if the numbers make no map of the earth.
Status check_projection(const Projection& map, bool lambert) {
  const auto is_length = [](double value) { return std::isfinite(value) && value > 0; };
  if (!is_length(map.earth.major) || !is_length(map.earth.minor))
    return {Code::format, cat("the earth has axes of ", map.earth.major, " and ", map.earth.minor,
                              " m: both must be positive; set shapeOfTheEarth and its keys otherwise")};
  if (!lambert) return {};
  for (const auto& [key, latitude] :
       {std::pair("Latin1InDegrees", map.parallel_1), std::pair("Latin2InDegrees", map.parallel_2)}) {
    if (std::fabs(latitude) >= 90)
      return GridKeys::wrong(key, latitude,
                             "a cone needs a parallel between the poles (polar_stereographic is at a pole)");
  }
  if (std::fabs(map.parallel_1 + map.parallel_2) < 1e-9)
    return {Code::format,
            cat("Latin1 = ", map.parallel_1, " and Latin2 = ", map.parallel_2, " make no cone")};
  return {};
}

Result<Projection> projection_of(const GridKeys& keys, bool lambert) {
  const Result<Earth> earth = earth_of(keys);
  TR_TRY(earth.status());
  const bool orientation =
      keys.find("orientationOfTheGrid") != nullptr || keys.find("orientationOfTheGridInDegrees") != nullptr;
  const Result<double> central = keys.needed(!lambert && orientation ? "orientationOfTheGrid" : "LoV");
  TR_TRY(central.status());
  const Result<double> one = keys.needed_latitude(lambert ? "Latin1" : "LaD");
  TR_TRY(one.status());
  const Result<double> two = lambert ? keys.needed_latitude("Latin2") : Result<double>(*one);
  TR_TRY(two.status());
  const Result<std::optional<double>> origin = keys.degrees("LaD");
  TR_TRY(origin.status());
  const double pole = keys.has_south_pole() ? -90 : 90;
  Projection map{*earth, *one, *two, lambert ? origin->value_or(*one) : pole, std::remainder(*central, 360)};
  // In the CF conventions a map with one standard parallel has its origin on this parallel.
  if (lambert && map.is_tangent()) map.origin_latitude = *one;
  TR_TRY(check_projection(map, lambert));
  return map;
}

/// Returns Code::format if a corner of a projected grid lies nowhere on the globe. Maps each corner to the
/// globe and back.
Status check_corners(const Grid& grid) {
  const bool lambert = grid.kind == Grid::Kind::lambert;
  for (const double y : {grid.y.first, grid.y.last}) {
    for (const double x : {grid.x.first, grid.x.last}) {
      const Grid::Point point = grid.on_globe(y, x);
      const Projection::MapPoint place =
          lambert ? grid.projection.lambert(point) : grid.projection.polar(point);
      // A corner is no place if it is very far away (the pole that the map lacks is infinitely far), or if it
      // comes back elsewhere (it lies beyond the meridian where the cone is cut open). On that meridian
      // itself x may have either sign.
      const double far = 1000 * grid.projection.earth.major, close = 1e-6 * grid.projection.earth.major;
      const bool is_place = std::fabs(x) < far && std::fabs(y) < far &&
                            std::fabs(std::fabs(place.x) - std::fabs(x)) < close &&
                            std::fabs(place.y - y) < close;
      if (!is_place)
        return {Code::format, cat("a corner of the grid, x = ", x, " m and y = ", y,
                                  " m in its projection, lies nowhere on the globe: check the first grid "
                                  "point, the increments Dx and Dy, and the parallels")};
    }
  }
  return {};
}

Status read_projection(const GridKeys& keys, Grid& grid) {
  const bool lambert = grid.kind == Grid::Kind::lambert;
  const Result<Projection> map = projection_of(keys, lambert);
  TR_TRY(map.status());
  grid.projection = *map;
  const Result<double> latitude = keys.needed_latitude("latitudeOfFirstGridPoint");
  TR_TRY(latitude.status());
  const Result<double> longitude = keys.needed("longitudeOfFirstGridPoint");
  TR_TRY(longitude.status());
  const Result<double> dx = keys.needed_metres("Dx"), dy = keys.needed_metres("Dy");
  TR_TRY(dx.status());
  TR_TRY(dy.status());
  constexpr std::string_view apart = "points lie some metres apart (scanning flags tell the direction)";
  if (*dx <= 0 && grid.x.points > 1) return GridKeys::wrong("DxInMetres", *dx, apart);
  if (*dy <= 0 && grid.y.points > 1) return GridKeys::wrong("DyInMetres", *dy, apart);
  const Projection::Point point{*latitude, *longitude};
  const Projection::MapPoint first = lambert ? map->lambert(point) : map->polar(point);
  const double east = keys.to_west() ? -*dx : *dx;
  const double north = keys.to_north() ? *dy : -*dy;
  grid.x = {first.x, first.x + east * static_cast<double>(grid.x.points - 1), grid.x.points};
  grid.y = {first.y, first.y + north * static_cast<double>(grid.y.points - 1), grid.y.points};
  return check_corners(grid);
}

Status read_reference(const GridKeys& keys, Grid& grid) {
  const Result<std::optional<double>> number = keys.number("numberOfGridUsed");
  TR_TRY(number.status());
  constexpr double most = 16777215;  // 3 bytes in GRIB
  if (number->has_value() && !(**number >= 0 && **number <= most))
    return {Code::format, cat("grid key 'numberOfGridUsed' = ", **number, ": it is from 0 to ", most)};
  grid.number_used = static_cast<std::int64_t>(number->value_or(0));
  const std::string* const uuid = keys.find("uuidOfHGrid");
  if (uuid == nullptr) return {};
  const Result<Uuid> parsed = Uuid::parse(*uuid);
  TR_TRY(parsed.status().in("grid key 'uuidOfHGrid'"));
  // A GRIB message always has octets for a UUID. They are zero if none was given.
  if (*parsed != Uuid()) grid.uuid = parsed->text();
  return {};
}

}  // namespace

double Axis::at(Index i) const {
  if (points < 2) return first;
  return first + (last - first) * static_cast<double>(i) / static_cast<double>(points - 1);
}

bool operator==(const Grid& one, const Grid& other) {
  const bool both = one.coordinates && other.coordinates;
  return one.kind == other.kind && one.y == other.y && one.x == other.x &&
         one.south_pole_latitude == other.south_pole_latitude &&
         one.south_pole_longitude == other.south_pole_longitude && one.parallels == other.parallels &&
         one.projection == other.projection && one.number_used == other.number_used &&
         one.uuid == other.uuid && one.told_is_turned == other.told_is_turned &&
         (both ? one.coordinates->are_those_of(*other.coordinates) : one.coordinates == other.coordinates);
}

bool are_close(Grid one, Grid other) {
  const auto numbers = [](Grid& grid) {
    Projection& map = grid.projection;
    return std::array{&grid.y.first,
                      &grid.y.last,
                      &grid.x.first,
                      &grid.x.last,
                      &map.earth.major,
                      &map.earth.minor,
                      &map.parallel_1,
                      &map.parallel_2,
                      &map.origin_latitude,
                      &map.central_longitude,
                      &grid.south_pole_latitude,
                      &grid.south_pole_longitude};
  };
  const auto own = numbers(one), its = numbers(other);
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (are_close(*own[i], *its[i])) *its[i] = *own[i];
  }
  return one == other;
}

std::vector<double> Grid::rows() const {
  std::vector<double> values;
  if (kind == Kind::gaussian) {
    values = gaussian_latitudes(parallels);
    if (y.last > y.first) std::ranges::reverse(values);
    // Looks for the nearest latitude, because another processor or build may compute another last bit.
    const auto index_of = [&values](double latitude) {
      return std::ranges::min_element(values, {}, [&](double each) { return std::abs(each - latitude); }) -
             values.begin();
    };
    const auto first = index_of(y.first);
    const auto step = y.points > 1 ? (index_of(y.last) - first) / (y.points - 1) : 0;
    std::vector<double> rows;
    for (Index i = 0; i < y.points; ++i) rows.push_back(values[static_cast<std::size_t>(first + i * step)]);
    return rows;
  }
  for (Index i = 0; i < y.points; ++i) values.push_back(y.at(i));
  return values;
}

std::vector<double> Grid::columns() const {
  std::vector<double> values;
  for (Index i = 0; i < x.points; ++i) values.push_back(x.at(i));
  return values;
}

Grid::Point Grid::on_globe(double row, double column) const {
  if (kind == Kind::lambert) return projection.from_lambert({column, row});
  if (kind == Kind::polar_stereographic) return projection.from_polar({column, row});
  constexpr double degree = std::numbers::pi / 180;
  // The north pole of the turned grid is opposite to its south pole.
  const double pole = -south_pole_latitude * degree;
  const double out = std::cos(row * degree) * std::cos(column * degree);
  const double east = std::cos(row * degree) * std::sin(column * degree);
  const double north = std::sin(row * degree);
  const double up = std::cos(pole) * out + std::sin(pole) * north;
  const double along = std::atan2(-east, std::cos(pole) * north - std::sin(pole) * out);
  return {std::asin(std::clamp(up, -1.0, 1.0)) / degree,
          std::remainder(south_pole_longitude + 180 + along / degree, 360)};
}

void Grid::pack(Packer& out) const {
  out.put(kind);
  for (const Axis& each : {y, x}) out.put(each.first).put(each.last).put(each.points);
  out.put(south_pole_latitude).put(south_pole_longitude);
  // Heads of NetCDF-4 files hold these bytes. So that old files stay readable, kinds and members that came
  // later add their bytes only where they are used.
  if (kind == Kind::gaussian) out.put(parallels);
  if (is_projected()) out.put(projection);
  if (kind == Kind::told || number_used != 0 || !uuid.empty()) out.put(number_used).put_text(uuid);
  if (kind != Kind::told) return;
  out.put(static_cast<std::int8_t>(told_is_turned));
  coordinates->facts().pack(out);
}

Result<Grid> Grid::unpack(Unpacker& in) {
  Grid grid;
  grid.kind = in.get<Kind>();
  for (Axis* const each : {&grid.y, &grid.x}) *each = {in.get<double>(), in.get<double>(), in.get<Index>()};
  grid.south_pole_latitude = in.get<double>();
  grid.south_pole_longitude = in.get<double>();
  if (grid.kind == Kind::gaussian) grid.parallels = in.get<Index>();
  if (grid.is_projected()) grid.projection = in.get<Projection>();
  if (grid.kind == Kind::told || (grid.kind == Kind::unknown && !in.rest().empty())) {
    grid.number_used = in.get<std::int64_t>();
    grid.uuid = in.get_text();
  }
  if (grid.kind == Kind::told) {
    grid.told_is_turned = in.get<std::int8_t>() != 0;
    Result<codec::Coordinates> told = codec::Coordinates::unpack(in);
    TR_TRY(told.status());
    grid.coordinates = std::make_shared<const codec::Coordinates>(std::move(*told));
  }
  Index all = 0;
  if (in.ok() && grid.kind >= Kind::unknown && grid.kind <= Kind::told && grid.y.points >= 0 &&
      grid.x.points >= 0 && !__builtin_mul_overflow(grid.y.points, grid.x.points, &all))
    return grid;
  return Status(Code::corrupt, "a prepared grid is not whole");
}

std::string_view other_order_in(const codec::Keys& list) {
  const GridKeys keys(list);
  if (keys.scans("jPointsAreConsecutive", 32)) return "jPointsAreConsecutive";
  return keys.scans("alternativeRowScanning", 16) ? "alternativeRowScanning" : "";
}

Result<Grid> grid_of(const codec::Keys& list, const std::vector<Index>& shape,
                     std::shared_ptr<const codec::Coordinates> coordinates) {
  static const auto& kinds = *new const std::map<std::string_view, Grid::Kind>{
      {"regular_ll", Grid::Kind::lat_lon},
      {"rotated_ll", Grid::Kind::rotated},
      {"regular_gg", Grid::Kind::gaussian},
      {"lambert", Grid::Kind::lambert},
      {"polar_stereographic", Grid::Kind::polar_stereographic},
  };
  const GridKeys keys(list);
  Grid grid;
  const std::string* const type = keys.find("gridType");
  const auto found = type == nullptr ? kinds.end() : kinds.find(*type);
  if (type != nullptr && *type == "unstructured_grid") TR_TRY(read_reference(keys, grid));
  if (coordinates) {
    if (found != kinds.end()) grid.kind = found->second;
    grid.told_is_turned = grid.is_turned();
    grid.kind = Grid::Kind::told;
    grid.y.points = coordinates->shape.front();
    grid.x.points = coordinates->shape.size() > 1 ? coordinates->shape[1] : 1;
    grid.coordinates = std::move(coordinates);
    return grid;
  }
  if (found == kinds.end()) return grid;
  if (const std::string_view key = other_order_in(list); !key.empty())
    return Status(Code::format, cat("grid key '", key,
                                    "': NetCDF needs the points of a row one after another, "
                                    "all rows in one direction"));
  grid.kind = found->second;
  const Result<std::vector<Index>> points = points_of(keys, shape);
  TR_TRY(points.status());
  grid.y.points = (*points)[0];
  grid.x.points = (*points)[1];
  if (grid.is_projected())
    TR_TRY(read_projection(keys, grid));
  else if (grid.kind == Grid::Kind::gaussian)
    TR_TRY(read_gaussian(keys, grid));
  else
    TR_TRY(read_lat_lon(keys, grid));
  return grid;
}

}  // namespace tailrace::cf
