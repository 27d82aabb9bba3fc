// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// The georeference of a layout has keys of GRIB2, or a sample message of either edition. This file says the
// same grid in keys of GRIB1.
#include <algorithm>
#include <array>
#include <cmath>

#include "formats/grib2/edition1/header.hpp"
#include "formats/grib2/sample.hpp"
#include "ground/base/text.hpp"

namespace tailrace::grib2::edition1 {

namespace {

constexpr std::array<std::string_view, 9> grid_types{"regular_ll", "rotated_ll", "reduced_ll",
                                                     "regular_gg", "rotated_gg", "reduced_gg",
                                                     "lambert",    "mercator",   "polar_stereographic"};
/// The grids of which keys_of() reads all keys from a sample. Of others it reads the type alone.
constexpr std::array<std::string_view, 6> types_of_samples{"regular_ll", "rotated_ll", "regular_gg",
                                                           "reduced_gg", "lambert",    "polar_stereographic"};

std::optional<double> number_of(const codec::Keys& keys, std::string_view name) {
  const std::string* const text = codec::find_key(keys, name);
  return text == nullptr ? std::nullopt : as_number(*text);
}

void remove(codec::Keys& keys, std::string_view name) {
  std::erase_if(keys, [&](const auto& each) { return each.first == name; });
}

/// Returns the name in GRIB2's definitions for which ecCodes takes this one, too.
std::string_view word_for(std::string_view name, bool is_projected) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 12> anywhere{
      {{"La1", "latitudeOfFirstGridPoint"},
       {"Lo1", "longitudeOfFirstGridPoint"},
       {"La2", "latitudeOfLastGridPoint"},
       {"Lo2", "longitudeOfLastGridPoint"},
       {"latitudeOfTheSouthernPoleOfProjection", "latitudeOfSouthernPole"},
       {"longitudeOfTheSouthernPoleOfProjection", "longitudeOfSouthernPole"},
       {"angleOfRotationOfProjection", "angleOfRotation"},
       {"latitudeWhereDxAndDyAreSpecified", "LaD"},
       {"xDirectionGridLength", "Dx"},
       {"yDirectionGridLength", "Dy"},
       {"longitudinalDirectionGridLength", "Dx"},
       {"latitudinalDirectionGridLength", "Dy"}}};
  const auto found = std::ranges::find(anywhere, name, &std::pair<std::string_view, std::string_view>::first);
  if (found != anywhere.end()) return found->second;
  if (name == "Di" || name == "Dx") return is_projected ? "Dx" : "iDirectionIncrement";
  if (name == "Dj" || name == "Dy") return is_projected ? "Dy" : "jDirectionIncrement";
  return name;
}

/// Gives whole numbers of GRIB2 their unit: they count millionths of a degree and millimetres, and those of
/// GRIB1 by the same names thousandths and metres. The angle of rotation is a number of degrees in both.
void take_units(codec::Keys& keys, const std::string& type) {
  constexpr std::array<std::string_view, 13> degrees{"latitudeOfFirstGridPoint",
                                                     "longitudeOfFirstGridPoint",
                                                     "latitudeOfLastGridPoint",
                                                     "longitudeOfLastGridPoint",
                                                     "latitudeOfSouthernPole",
                                                     "longitudeOfSouthernPole",
                                                     "iDirectionIncrement",
                                                     "jDirectionIncrement",
                                                     "LoV",
                                                     "LaD",
                                                     "Latin1",
                                                     "Latin2",
                                                     "orientationOfTheGrid"};
  const bool is_projected = type == "lambert" || type == "mercator" || type == "polar_stereographic";
  for (auto& [key, value] : keys) {
    const std::string word(word_for(key, is_projected));
    const bool is_angle = std::ranges::find(degrees, std::string_view(word)) != degrees.end();
    const bool is_length = word == "Dx" || word == "Dy";
    if (word == "angleOfRotation") key = "angleOfRotationInDegrees";
    if (key == "DiInMetres") key = "DxInMetres";
    if (key == "DjInMetres") key = "DyInMetres";
    const std::optional<double> number = as_number(value);
    if (!number || (!is_angle && !is_length)) continue;
    value = cat(*number / (is_angle ? 1e6 : 1e3));
    key = word + (is_angle ? "InDegrees" : "InMetres");
  }
}

Status cannot_hold(std::string_view what, std::string_view why) {
  return {Code::format, cat(what, ": ", why, "; choose format=grib2, or another georeference")};
}

/// GRIB1 has one bit for the shape of the earth: a sphere, or the spheroid of 1965.
Status take_shape_of_the_earth(codec::Keys& keys) {
  const std::string* const shape = codec::find_key(keys, "shapeOfTheEarth");
  const std::string code = shape == nullptr ? "6" : *shape;
  if (code != "0" && code != "1" && code != "2" && code != "6" && code != "8")
    return cannot_hold(cat("grid key 'shapeOfTheEarth' = ", code),
                       "GRIB1 knows a sphere (0, 1, 6, 8) and the spheroid of 1965 (2)");
  std::erase_if(keys, [](const auto& each) {
    return each.first == "shapeOfTheEarth" ||
           each.first.find("RadiusOfSphericalEarth") != std::string::npos ||
           each.first.find("OfEarthM") != std::string::npos;
  });
  if (code == "2") keys.emplace_back("earthIsOblate", "1");
  return {};
}

bool is_south_polar(const codec::Keys& keys) {
  constexpr int south = 0x80;
  for (const std::string_view name : {"projectionCentreFlag", "projectionCenterFlag"})
    if (const auto flag = number_of(keys, name)) return (static_cast<int>(*flag) & south) != 0;
  return number_of(keys, "southPoleOnProjectionPlane").value_or(0) != 0;
}

/// In GRIB1 the latitude at which increments are true is that of the cone, or 60 degrees. A cylinder has a
/// latitude of its own.
Status take_true_latitude(codec::Keys& keys, const std::string& type) {
  if (type != "lambert" && type != "polar_stereographic") return {};
  const std::optional<double> given = number_of(keys, "LaDInDegrees");
  if (!given) return {};
  const bool is_cone = type == "lambert";
  const double one = is_cone ? number_of(keys, "Latin1InDegrees").value_or(*given) : 60;
  const double other = is_cone ? number_of(keys, "Latin2InDegrees").value_or(one) : -60;
  if (std::fabs(*given - one) > 1e-6 && std::fabs(*given - other) > 1e-6)
    return cannot_hold(cat("grid key 'LaDInDegrees' = ", *given),
                       is_cone ? "GRIB1 gives the increments of a cone at its latitude Latin1"
                               : "GRIB1 gives the increments of a polar grid at 60 degrees");
  // GRIB1 has 60 degrees of either hemisphere, and many files that say so mean the one of the flag.
  if (!is_cone && *given < 0 && !is_south_polar(keys))
    return {Code::format, cat("grid key 'LaDInDegrees' = ", *given,
                              " lies in the south, and the grid has the north pole in its middle: add "
                              "projectionCentreFlag=128")};
  remove(keys, "LaDInDegrees");
  return {};
}

/// The flags of GRIB2 tell by other bits than those of GRIB1 whether increments are given, which follows from
/// the other keys. The bit of the components of vectors is the same, and has a key of its own.
Status take_component_flags(codec::Keys& keys) {
  const std::optional<double> given = number_of(keys, "resolutionAndComponentFlags");
  if (!given) return {};
  constexpr int components = 0x08, increments = 0x30;
  const int flags = static_cast<int>(*given);
  if ((flags & ~(components | increments)) != 0)
    return cannot_hold(
        cat("grid key 'resolutionAndComponentFlags' = ", *given),
        "GRIB2 has the flags 32, 16 (increments are given) and 8 (components follow the grid)");
  remove(keys, "resolutionAndComponentFlags");
  if (codec::find_key(keys, "uvRelativeToGrid") == nullptr)
    keys.emplace_back("uvRelativeToGrid", (flags & components) != 0 ? "1" : "0");
  return {};
}

/// Returns Code::format for rows that do not all run the same way, and for other bits of the scanning mode
/// that GRIB1 does not have.
Status take_scanning(codec::Keys& keys) {
  constexpr int known = 0xe0;
  const std::optional<double> mode = number_of(keys, "scanningMode");
  if (mode && (static_cast<int>(*mode) & ~known) != 0)
    return cannot_hold(cat("grid key 'scanningMode' = ", *mode),
                       "GRIB1 knows the flags 128, 64 and 32 alone, and rows that all run the same way");
  if (const std::string* const rows = codec::find_key(keys, "alternativeRowScanning")) {
    if (*rows != "0")
      return cannot_hold("alternativeRowScanning", "GRIB1 has rows that all run the same way");
    remove(keys, "alternativeRowScanning");
  }
  return {};
}

/// Replaces an increment by the last point of its axis: increments are often no thousandths of a degree.
Status take_increment(codec::Keys& keys, std::string_view axis, std::string_view letter, Index points) {
  const std::string step_key = cat(letter, "DirectionIncrementInDegrees");
  const std::string last_key = cat(axis, "OfLastGridPointInDegrees");
  const std::optional<double> step = number_of(keys, step_key), last = number_of(keys, last_key),
                              first = number_of(keys, cat(axis, "OfFirstGridPointInDegrees"));
  if (!step || !first || points < 1) return {};
  const bool is_longitude = letter == "i";
  const std::string* const scans =
      codec::find_key(keys, is_longitude ? "iScansNegatively" : "jScansPositively");
  const std::optional<double> mode = number_of(keys, "scanningMode");
  const int flag = is_longitude ? 0x80 : 0x40;
  const bool is_set = scans != nullptr ? *scans == "1" : mode && (static_cast<int>(*mode) & flag) != 0;
  // Without a sign of its own a grid with two latitudes goes from the first one to the last one.
  const bool is_told = scans != nullptr || mode;
  const bool upwards = is_longitude ? !is_set : !is_told && last ? *last > *first : is_set;
  const double span = (upwards ? 1 : -1) * *step * static_cast<double>(points - 1);
  double end = *first + span;
  if (is_longitude) end = std::fmod(std::fmod(end, 360) + 360, 360);
  if (last) {
    const double off = std::fabs(std::remainder(*last - end, is_longitude ? 360 : 1e9));
    if (off > 1.5e-3)
      return {Code::format,
              cat("the grid's ", axis, "s contradict themselves: ", points, " points of ", step_key, " = ",
                  *step, " from ", *first, " on end at ", end, ", and ", last_key, " is ", *last)};
  } else {
    keys.emplace_back(last_key, cat(end));
  }
  remove(keys, step_key);
  return {};
}

Status take_increments(codec::Keys& keys, const std::vector<Index>& shape) {
  const auto points = [&](std::string_view one, std::string_view other, std::size_t from_end) -> Index {
    if (const auto given = number_of(keys, one)) return static_cast<Index>(*given);
    if (const auto given = number_of(keys, other)) return static_cast<Index>(*given);
    return shape.size() < from_end ? 0 : shape[shape.size() - from_end];
  };
  TR_TRY(take_increment(keys, "latitude", "j", points("Nj", "Ny", 2)));
  return take_increment(keys, "longitude", "i", points("Ni", "Nx", 1));
}

/// Returns the keys of a sample's grid, and the points of its rows.
Result<codec::Keys> keys_of_sample(const codec::Georeference& georeference) {
  Result<codec::Keys> keys = grib2::grid_keys(georeference);
  TR_TRY(keys.status());
  const std::string* const type = codec::find_key(*keys, "gridType");
  if (type == nullptr ||
      std::ranges::find(types_of_samples, std::string_view(*type)) == types_of_samples.end())
    return Status(Code::format, cat("the sample's grid '", type == nullptr ? "" : *type,
                                    "' is not taken over into GRIB1: give its keys"));
  const auto lock = lock_definitions();
  const Result<Handle> sample = Handle::from_message(georeference.sample);
  TR_TRY(sample.status());
  // The readers' list of keys has not these two. ecCodes has a name for the bit of the components on some
  // grids alone.
  constexpr long components = 0x08;
  const bool has_components = codec::find_key(*keys, "uvRelativeToGrid") != nullptr ||
                              codec::find_key(*keys, "resolutionAndComponentFlags") != nullptr;
  if (!has_components && (sample->integer("resolutionAndComponentFlags").value_or(0) & components) != 0)
    keys->emplace_back("uvRelativeToGrid", "1");
  const bool has_angle =
      std::ranges::any_of(*keys, [](const auto& each) { return each.first.starts_with("angleOfRotation"); });
  if (const auto angle = sample->number("angleOfRotationInDegrees"); angle && *angle != 0 && !has_angle)
    keys->emplace_back("angleOfRotationInDegrees", cat(*angle));
  if (*type != "reduced_gg" || codec::find_key(*keys, "pl") != nullptr) return keys;
  std::string rows;
  for (const double row : sample->numbers("pl")) rows += cat(rows.empty() ? "" : ",", static_cast<long>(row));
  remove(*keys, "Ni");
  keys->emplace_back("pl", rows);
  return keys;
}

}  // namespace

Result<codec::Keys> grid_keys_of(const Request& request) {
  const codec::Georeference& georeference = request.field->georeference;
  Result<codec::Keys> keys =
      georeference.sample.empty() ? named_grid(grib2::grid_keys(request)) : keys_of_sample(georeference);
  TR_TRY(keys.status());
  if (codec::find_key(*keys, "gridDefinitionTemplateNumber") != nullptr)
    return Status(Code::format, "GRIB1 has no key gridDefinitionTemplateNumber: say gridType=");
  const std::string* const found = codec::find_key(*keys, "gridType");
  if (found == nullptr) return keys;  // set_grid() says what is missing
  const std::string type = *found;    // the list changes
  if (std::ranges::find(grid_types, std::string_view(type)) == grid_types.end())
    return Status(Code::format,
                  cat("grid '", type,
                      "': GRIB1 holds grids of latitudes and longitudes, Gaussian grids, and grids "
                      "on a cone, a pole or a cylinder alone; choose format=grib2, or NetCDF or Zarr files"));
  take_units(*keys, type);
  TR_TRY(take_shape_of_the_earth(*keys));
  TR_TRY(take_component_flags(*keys));
  TR_TRY(take_true_latitude(*keys, type));
  if (type == "polar_stereographic") {
    for (auto& [key, value] : *keys)
      if (key == "LoVInDegrees") key = "orientationOfTheGridInDegrees";
  }
  if (type == "regular_ll" || type == "rotated_ll") TR_TRY(take_increments(*keys, request.field->shape));
  TR_TRY(take_scanning(*keys));
  return keys;
}

}  // namespace tailrace::grib2::edition1
