// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "formats/cf/found.hpp"

namespace tailrace::cf {

/// The levels of a vertical axis in the words of GRIB.
struct FoundLevels {
  std::string type;  // ecCodes' typeOfLevel; "" if the file does not tell
  std::vector<double> values;
};

/// Returns true if the variable is the coordinate of a vertical axis or of a single level: by its attributes
/// axis, positive and standard_name, by units of pressure, or by the name "height".
[[nodiscard]] bool is_vertical(const FoundVariable& coordinate);
/// Returns true if the variable is surely a vertical coordinate and no field of a single level: by axis,
/// positive, standard_name, or the name of hybrid levels. Units of pressure do not count, because fields have
/// them, too.
[[nodiscard]] bool tells_vertical(const FoundVariable& coordinate);
/// Returns true if the variable is the coordinate of a horizontal direction.
[[nodiscard]] bool is_horizontal(const FoundVariable& coordinate);
/// Returns the levels of a vertical coordinate with these values: pressures in hPa, heights and depths in
/// metres. Hybrid levels are numbered anew, from 1 on, unless all their values are whole numbers of at
/// least 1.
[[nodiscard]] FoundLevels levels_of(const FoundVariable& coordinate, std::vector<double> values);

}  // namespace tailrace::cf
