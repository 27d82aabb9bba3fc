// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <algorithm>

#include "formats/opening/open.hpp"
#include "formats/sources/source.hpp"

namespace tailrace::sources::test {

inline Inventory sample_inventory() {
  Inventory inventory;
  inventory.format = "GRIB";
  inventory.calendar = Calendar::no_leap;
  inventory.grids = {{{181, 360}, {{"gridType", "regular_ll"}, {"Ni", "360"}}}, {{7}, {}}};
  inventory.records = {{"t", "isobaricInhPa", 850, 3600, 0, -1, 0, {0, 100, 0, 0}},
                       {"t", "isobaricInhPa", 0.5, 3600, 0, 3, 0, {100, 100, 1, 0}},
                       {"sd", "", 0, 7200, 0, -1, 1, {200, 50, 0, -9}}};
  return inventory;
}

inline bool same_record(const Record& a, const Record& b) {
  return a.field == b.field && a.level_type == b.level_type && a.level == b.level && a.valid == b.valid &&
         a.reference == b.reference && a.member == b.member && a.grid == b.grid && a.place == b.place;
}

inline bool same_inventory(const Inventory& a, const Inventory& b) {
  const auto same_grid = [](const Grid& x, const Grid& y) { return x.shape == y.shape && x.keys == y.keys; };
  return a.format == b.format && a.calendar == b.calendar &&
         std::equal(a.grids.begin(), a.grids.end(), b.grids.begin(), b.grids.end(), same_grid) &&
         std::equal(a.records.begin(), a.records.end(), b.records.begin(), b.records.end(), same_record);
}

}  // namespace tailrace::sources::test
