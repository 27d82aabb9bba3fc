// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <algorithm>
#include <cmath>

#include "formats/grids/grids.hpp"
#include "formats/opening/open.hpp"
#include "ground/base/options.hpp"
#include "ground/base/text.hpp"
#include "ground/layout/shape.hpp"

namespace tailrace::sources {

namespace {

/// Returns the extents other than 1: a layout may say 1 x 181 x 360 for 181 x 360 points.
std::vector<Index> sides(std::vector<Index> shape) {
  std::erase(shape, 1);
  return shape;
}

bool same_number(const std::string& key, double wanted, double got) {
  const double off = std::fabs(wanted - got);
  // GRIB1 keeps angles in thousandths of a degree.
  if (key.find("itude") != std::string::npos || key.ends_with("InDegrees"))
    return off <= 0.5005e-3 || std::fabs(off - 360) <= 0.5005e-3;
  return off <= 1e-6 * std::max(std::fabs(wanted), std::fabs(got));
}

bool same(const std::string& key, const std::string& wanted, const std::string& got) {
  if (wanted == got) return true;
  const Result<double> a = parse_real(wanted), b = parse_real(got);
  return a.is_ok() && b.is_ok() && same_number(key, *a, *b);
}

/// True for keys that must agree. Keys of the Earth's shape need not: they do not move points on a grid of
/// degrees, and models leave them as the sample has them. Alternating rows need not either: they are turned
/// when they are read.
bool counts(const std::string& key) {
  return key != "alternativeRowScanning" && key.find("Earth") == std::string::npos &&
         key.find("Radius") == std::string::npos;
}

}  // namespace

Status check_grid(const Grid& grid, const std::vector<Index>& shape,
                  const codec::Georeference& georeference) {
  if (sides(grid.shape) != sides(shape))
    return layout::layout_error("the layout has ", layout::extents(shape), " points (", order_text(),
                                "), and the file has ", layout::extents(grid.shape));
  if (grid.keys.empty() || (georeference.keys.empty() && georeference.sample.empty())) return {};
  const Result<codec::Keys> wanted = grids::keys_of_message(shape, georeference);
  TR_TRY(wanted.status().in("georeference of the layout"));
  for (const auto& [key, value] : *wanted) {
    const std::string* const got = codec::find_key(grid.keys, key);
    if (got == nullptr || !counts(key) || same(key, value, *got)) continue;
    return layout::layout_error("the layout's georeference says ", key, "=", value, ", and the file says ",
                                *got, "; give the layout the grid of the file, or read a file of this grid");
  }
  return {};
}

}  // namespace tailrace::sources
