// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <optional>
#include <span>

#include "formats/codec/definition.hpp"
#include "ground/base/bytes.hpp"

namespace tailrace::grib2 {

/// Returns the keys of a grid: those of the georeference, and from its sample message those that the
/// georeference does not give. The sample adds numbers for grids of latitudes and longitudes (plain, rotated
/// or Gaussian), on a cone, at a pole, and HEALPix, and the identity of an unstructured grid; of other grids
/// it gives the type alone. Returns Code::corrupt if ecCodes does not read the sample, and Code::format if
/// the sample has no grid. Needs ecCodes.
Result<codec::Keys> grid_keys(const codec::Georeference& georeference);

/// Replaces gridName= and isOctahedral=1 with the keys for which they stand: O32 becomes gridType=reduced_gg,
/// N=32 and pl=, the points of each row. Returns Code::format if no grid has this name, or other keys
/// contradict it.
Result<codec::Keys> named_grid(codec::Keys keys);
/// Returns true if a key names the type of the grid: gridType, gridDefinitionTemplateNumber or gridName.
bool has_grid(const codec::Keys& keys);

// HEALPix grids are not left to ecCodes, because its versions before 2.32 do not know them.

/// Returns true if the keys name a HEALPix grid.
bool is_healpix(const codec::Keys& keys);
/// Returns section 3 with the HEALPix grid of the keys, which have no gridName=. Code::format if a key is
/// none of this grid, or if the grid does not have `points` points.
Result<ByteVector> healpix_section(const codec::Keys& keys, Index points);
/// Returns the keys of a section 3 with a HEALPix grid.
codec::Keys keys_of_section(std::span<const std::byte> section);
/// Returns the keys of a message's HEALPix grid, or nothing if it has another grid.
std::optional<codec::Keys> healpix_keys(std::span<const std::byte> message);
/// Returns the message with an unstructured grid of as many points in place of its HEALPix grid. Returns
/// nothing if the message has another grid, or if this ecCodes knows HEALPix.
std::optional<ByteVector> without_healpix(std::span<const std::byte> message);

}  // namespace tailrace::grib2
