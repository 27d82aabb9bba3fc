// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "formats/codec/definition.hpp"

namespace tailrace::sections {

/// Tells readers where the points of a section lie.
struct SectionGrid {
  codec::Georeference georeference;  // of the section, without coordinates
  std::string no_grid;               // codec::Section::no_grid
};

/// Local. Returns the georeference of a section of `shape` from that of the whole array. If the section is no
/// grid that keys describe, the georeference has no grid, and `no_grid` says why. If the keys of the whole
/// array are wrong, they stay as they are, and `no_grid` says what is wrong.
[[nodiscard]] SectionGrid section_grid(const codec::Georeference& whole, const codec::Section& section,
                                       const std::vector<Index>& shape);

/// Local. Returns the coordinates of the points of a section, with their values and the checksum of these.
/// `whole` has its values.
[[nodiscard]] codec::Coordinates section_coordinates(const codec::Coordinates& whole,
                                                     const codec::Section& section,
                                                     const std::vector<Index>& shape);

/// Local. Returns the part of a dimension's coordinate that belongs to `count` elements from `start` on, each
/// `stride` elements behind the one before. Each keeps the bounds of its own cell.
[[nodiscard]] codec::Axis section_axis(const codec::Axis& whole, Index start, Index stride, Index count);

}  // namespace tailrace::sections
