// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string_view>

namespace tailrace::cf {

/// The name of a quantity in the CF conventions, and the unit in which GRIB and CMIP have it.
struct Quantity {
  std::string_view name;  // short name of GRIB or of CMIP
  std::string_view standard_name;
  std::string_view units;
};
/// Returns the quantity with this short name, or null if the table does not have it.
const Quantity* find_quantity(std::string_view name);

/// The coordinate that the CF conventions have for a type of level.
struct LevelType {
  std::string_view type;       // ecCodes' typeOfLevel
  std::string_view dimension;  // name of dimension and coordinate
  std::string_view standard_name;
  std::string_view units;
  std::string_view positive;  // "up" or "down"
};
/// Returns the coordinate for this type of level, or null if the table does not have it.
const LevelType* find_level_type(std::string_view type);

}  // namespace tailrace::cf
