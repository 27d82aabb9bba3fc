// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/grib2/sample.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "formats/grib2/handle.hpp"
#include "ground/base/text.hpp"

namespace tailrace::grib2 {

namespace {

/// The keys of grids whose values are numbers.
constexpr std::array numeric_keys{"Ni",
                                  "Nj",
                                  "jScansPositively",
                                  "iScansNegatively",
                                  "jPointsAreConsecutive",
                                  "alternativeRowScanning",
                                  "latitudeOfFirstGridPointInDegrees",
                                  "longitudeOfFirstGridPointInDegrees",
                                  "latitudeOfLastGridPointInDegrees",
                                  "longitudeOfLastGridPointInDegrees",
                                  "latitudeOfSouthernPoleInDegrees",
                                  "longitudeOfSouthernPoleInDegrees",
                                  "N",
                                  "DxInMetres",
                                  "DyInMetres",
                                  "LoVInDegrees",
                                  "LaDInDegrees",
                                  "Latin1InDegrees",
                                  "Latin2InDegrees",
                                  "orientationOfTheGridInDegrees",
                                  "projectionCentreFlag",
                                  "shapeOfTheEarth",
                                  "scaleFactorOfRadiusOfSphericalEarth",
                                  "scaledValueOfRadiusOfSphericalEarth",
                                  "scaleFactorOfEarthMajorAxis",
                                  "scaledValueOfEarthMajorAxis",
                                  "scaleFactorOfEarthMinorAxis",
                                  "scaledValueOfEarthMinorAxis"};

/// ecCodes has several names for some octets of a grid. Returns the same one for all of them.
std::string_view word_for(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> words{
      {{"Nx", "Ni"},
       {"Ny", "Nj"},
       {"orientationOfTheGrid", "LoV"},
       {"southPoleOnProjectionPlane", "projectionCentreFlag"}}};
  const auto found = std::ranges::find(words, name, &std::pair<std::string_view, std::string_view>::first);
  return found == words.end() ? name : found->second;
}

}  // namespace

Result<codec::Keys> grid_keys(const codec::Georeference& georeference) {
  Result<codec::Keys> named = named_grid(georeference.keys);
  TR_TRY(named.status());
  codec::Keys keys = std::move(*named);
  if (georeference.sample.empty()) return keys;
  if (const std::optional<codec::Keys> healpix = healpix_keys(georeference.sample)) {
    for (const auto& each : *healpix)
      if (codec::find_key(keys, each.first) == nullptr) keys.push_back(each);
    return keys;
  }
  const auto lock = lock_definitions();
  const Result<Handle> sample = Handle::from_message(georeference.sample);
  TR_TRY(sample.status());
  const std::optional<std::string> type = sample->text("gridType");
  if (!type) return Status(Code::format, "the sample is no GRIB message with a grid");
  // A key counts as given whichever of its names the georeference has, with a unit at its end or without.
  const auto plain = [](std::string_view name) {
    for (const std::string_view unit : {"InDegrees", "InMetres"}) {
      if (name.ends_with(unit)) name.remove_suffix(unit.size());
    }
    return name;
  };
  const auto is_given = [&](std::string_view name) {
    return std::ranges::any_of(georeference.keys, [&](const auto& key) {
      return word_for(plain(key.first)) == word_for(plain(name));
    });
  };
  const bool has_mode = is_given("scanningMode");
  for (const std::string name : numeric_keys) {
    if (has_mode && (name.find("Scan") != std::string::npos || name == "jPointsAreConsecutive")) continue;
    if (is_given(name) || !sample->has(name) || sample->is_missing(name)) continue;
    if (const std::optional<double> value = sample->number(name)) keys.emplace_back(name, cat(*value));
  }
  if (*type == "unstructured_grid") {
    for (const std::string name : {"numberOfGridUsed", "uuidOfHGrid"}) {
      const std::optional<std::string> value = sample->text(name);
      if (!is_given(name) && !sample->is_missing(name) && value) keys.emplace_back(name, *value);
    }
  }
  if (sample->is_lost()) return Status(Code::corrupt, "ecCodes cannot tell the keys of the message's grid");
  if (!is_given("gridType")) keys.emplace_back("gridType", *type);
  return keys;
}

}  // namespace tailrace::grib2
