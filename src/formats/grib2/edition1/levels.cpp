// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Octets 11 and 12 of section 1: a level is one whole number of two octets, a layer two of one octet each, in
// the unit of code table 3.
#include <algorithm>
#include <array>
#include <cmath>

#include "formats/grib2/edition1/header.hpp"
#include "ground/base/text.hpp"

namespace tailrace::grib2::edition1 {

namespace {

/// A type of level whose levels have a value.
struct Type {
  std::string_view name;  // ecCodes' typeOfLevel
  double times;           // what a value of this library becomes when it is multiplied by this
  std::string_view unit;
  bool is_layer = false;
};
constexpr std::array<Type, 18> types{{{"isobaricInhPa", 1, "hPa"},
                                      {"isobaricInPa", 1, "Pa"},
                                      {"isobaricLayer", 0.1, "kPa", true},
                                      {"heightAboveSea", 1, "m"},
                                      {"heightAboveSeaLayer", 0.01, "hm", true},
                                      {"heightAboveGround", 1, "m"},
                                      {"heightAboveGroundLayer", 0.01, "hm", true},
                                      {"sigma", 1e4, "1/10000"},
                                      {"sigmaLayer", 100, "1/100", true},
                                      {"hybrid", 1, "level"},
                                      {"hybridLayer", 1, "level", true},
                                      {"depthBelowLand", 100, "cm"},
                                      {"depthBelowLandLayer", 100, "cm", true},
                                      {"theta", 1, "K"},
                                      {"pressureFromGround", 0.01, "hPa"},
                                      {"pressureFromGroundLayer", 0.01, "hPa", true},
                                      {"potentialVorticity", 1000, "1e-9 K m2 kg-1 s-1"},
                                      {"depthBelowSea", 1, "m"}}};

Result<std::uint64_t> octets_of(const Type& type, double value) {
  // The largest number of two octets means "missing"; of layers ECMWF uses it (soil from 100 to 255 cm).
  const double most = type.is_layer ? 255 : 65534;
  const double stored = value * type.times, whole = std::nearbyint(stored);
  if (std::fabs(stored - whole) <= 1e-9 * std::max(1.0, std::fabs(stored)) && whole >= 0 && whole <= most)
    return static_cast<std::uint64_t>(whole);
  const std::string_view advice =
      type.name == "isobaricInhPa"
          ? "write it to levels=isobaricInPa, ECMWF's type of level for whole Pa, or "
            "with format=grib2"
          : "write it with format=grib2";
  return Status(Code::format,
                cat("level ", value, " of type ", type.name, ": GRIB1 holds whole numbers from 0 to ", most,
                    " of the unit ", type.unit, "; ", advice));
}

}  // namespace

Result<std::uint64_t> level_octets(const Request& request, std::size_t level) {
  const codec::Levels& levels = request.field->levels;
  const double value = levels.values[level];
  const auto type = std::ranges::find(types, std::string_view(request.level_type), &Type::name);
  if (type == types.end()) {
    if (value == 0 && levels.bottoms.empty()) return std::uint64_t{0};
    return Status(Code::format,
                  cat("level ", value, " of type ", request.level_type,
                      ": GRIB1 holds no values for this type; leave them out, give the keys level= or "
                      "topLevel= and bottomLevel=, or choose format=grib2"));
  }
  if (type->is_layer && levels.bottoms.empty())
    return Status(Code::argument, cat("level type ", request.level_type,
                                      " is a layer: give the bottom of each level too, as bottom="));
  if (!type->is_layer && !levels.bottoms.empty())
    return Status(Code::argument,
                  cat("level type ", request.level_type, " has one surface; leave the bottoms out"));
  const Result<std::uint64_t> top = octets_of(*type, value);
  if (!type->is_layer || !top.is_ok()) return top;
  const Result<std::uint64_t> bottom = octets_of(*type, levels.bottoms[level]);
  TR_TRY(bottom.status());
  return *top * 256 + *bottom;
}

}  // namespace tailrace::grib2::edition1
