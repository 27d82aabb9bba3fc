// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/cf/vertical.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "formats/cf/names.hpp"
#include "ground/base/text.hpp"

namespace tailrace::cf {

namespace {

/// A unit, and the number of units that make one hPa or one metre.
struct UnitParts {
  std::string_view name;
  double parts;
};
constexpr std::array<UnitParts, 12> pressure_units{{{"pa", 100},
                                                    {"pascal", 100},
                                                    {"pascals", 100},
                                                    {"hpa", 1},
                                                    {"hectopascal", 1},
                                                    {"hectopascals", 1},
                                                    {"mb", 1},
                                                    {"mbar", 1},
                                                    {"millibar", 1},
                                                    {"millibars", 1},
                                                    {"kpa", 0.1},
                                                    {"bar", 0.001}}};
constexpr std::array<UnitParts, 8> length_units{{{"m", 1},
                                                 {"metre", 1},
                                                 {"meter", 1},
                                                 {"metres", 1},
                                                 {"meters", 1},
                                                 {"km", 0.001},
                                                 {"cm", 100},
                                                 {"mm", 1000}}};

template <typename Units>
const UnitParts* find_unit(const Units& units, const std::string& text) {
  const auto* const found = std::ranges::find(units, lower_case(text), &UnitParts::name);
  return found == units.end() ? nullptr : found;
}

void divide(std::vector<double>& values, double parts) {
  // Divides by 100, which keeps whole hectopascals whole; a multiplication by 0.01 does not.
  for (double& each : values) each = parts >= 1 ? each / parts : each * std::round(1 / parts);
}

bool are_levels(const std::vector<double>& values) {
  return std::ranges::all_of(values, [](double each) { return each >= 1 && each == std::floor(each); });
}

/// Returns the type of level of a coordinate in a file of Tailrace, or "". These files have the type of level
/// in long_name, and name the coordinate after the table of level types, or after the type.
std::string own_type(const FoundVariable& coordinate) {
  const std::string type = coordinate.text("long_name"), units = coordinate.text("units");
  if (coordinate.text("axis") != "Z" || type.empty()) return "";
  if (const LevelType* const known = find_level_type(type); known != nullptr)
    return units == known->units && base_name(coordinate.name).starts_with(known->dimension) ? type : "";
  return units == "1" && base_name(coordinate.name).starts_with(type) ? type : "";
}

bool contains(const FoundVariable& coordinate, std::string_view word) {
  return lower_case(base_name(coordinate.name)).find(word) != std::string::npos ||
         lower_case(coordinate.text("long_name")).find(word) != std::string::npos;
}

/// Returns the type of level of a coordinate that is a length, from its standard name or its own name, or "".
std::string type_of_length(const FoundVariable& coordinate, const std::string& standard) {
  if (standard == "height") return "heightAboveGround";
  if (standard == "altitude" || standard == "height_above_mean_sea_level" ||
      standard == "height_above_geopotential_datum")
    return "heightAboveSea";
  if (standard == "depth")
    return contains(coordinate, "soil") || contains(coordinate, "land") ? "depthBelowLand" : "depthBelowSea";
  if (standard.empty() && lower_case(base_name(coordinate.name)) == "height") return "heightAboveGround";
  return "";
}

bool is_hybrid(const FoundVariable& coordinate, const std::string& standard) {
  constexpr std::array names{"hybrid", "model_level", "model_level_number"};
  const std::string name = lower_case(base_name(coordinate.name)),
                    text = lower_case(coordinate.text("long_name"));
  return standard == "atmosphere_hybrid_sigma_pressure_coordinate" || standard == "model_level_number" ||
         std::ranges::count(names, name) > 0 || text == "model_level_number";
}

}  // namespace

bool tells_vertical(const FoundVariable& coordinate) {
  if (coordinate.type == Number::none) return false;
  if (lower_case(coordinate.text("axis")) == "z") return true;
  const std::string positive = lower_case(coordinate.text("positive"));
  if (positive == "up" || positive == "down") return true;
  const std::string standard = coordinate.text("standard_name");
  return standard == "air_pressure" || standard == "air_potential_temperature" ||
         is_hybrid(coordinate, standard) ||
         (!standard.empty() && !type_of_length(coordinate, standard).empty());
}

bool is_vertical(const FoundVariable& coordinate) {
  if (coordinate.type == Number::none) return false;
  return tells_vertical(coordinate) || find_unit(pressure_units, coordinate.text("units")) != nullptr ||
         !type_of_length(coordinate, coordinate.text("standard_name")).empty();
}

bool is_horizontal(const FoundVariable& coordinate) {
  if (coordinate.type == Number::none) return false;
  const std::string axis = lower_case(coordinate.text("axis")), units = lower_case(coordinate.text("units"));
  if (axis == "x" || axis == "y") return true;
  if (units.starts_with("degree") &&
      (units.ends_with("_n") || units.ends_with("_e") || units.ends_with("north") || units.ends_with("east")))
    return true;
  constexpr std::array names{"latitude",
                             "longitude",
                             "grid_latitude",
                             "grid_longitude",
                             "projection_x_coordinate",
                             "projection_y_coordinate"};
  return std::ranges::count(names, coordinate.text("standard_name")) > 0;
}

FoundLevels levels_of(const FoundVariable& coordinate, std::vector<double> values) {
  const std::string standard = coordinate.text("standard_name"), units = coordinate.text("units");
  if (std::string type = own_type(coordinate); !type.empty()) return {std::move(type), std::move(values)};
  if (is_hybrid(coordinate, standard)) {
    if (!are_levels(values)) {
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i + 1);
    }
    return {"hybrid", std::move(values)};
  }
  if (const UnitParts* const unit = find_unit(pressure_units, units); unit != nullptr) {
    divide(values, unit->parts);
    return {"isobaricInhPa", std::move(values)};
  }
  if (standard == "air_potential_temperature" && units == "K") return {"theta", std::move(values)};
  if (const UnitParts* const unit = find_unit(length_units, units); unit != nullptr) {
    const std::string type = type_of_length(coordinate, standard);
    if (!type.empty()) divide(values, unit->parts);
    return {type, std::move(values)};
  }
  return {"", std::move(values)};
}

}  // namespace tailrace::cf
