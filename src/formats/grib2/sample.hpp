// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <optional>
#include <span>

#include "formats/codec/definition.hpp"
#include "ground/base/bytes.hpp"

namespace tailrace::grib2 {

/// Returns the keys of a grid of latitudes and longitudes (plain, rotated or Gaussian), or of one on a cone
/// or at a pole: those of the georeference, and from its sample message what they leave open. Of other grids
/// the type alone. Returns Code::format if the sample is no message. Needs ecCodes.
Result<codec::Keys> grid_keys(const codec::Georeference& georeference);

/// Returns the keys with gridName=, and isOctahedral=1, in the words of the other keys of a grid: O32 is
/// gridType=reduced_gg, N=32 and pl=, the points of each row. Code::format if there is no such name, or other
/// keys contradict it.
Result<codec::Keys> named_grid(codec::Keys keys);
/// Returns true if the keys say which grid it is.
bool has_grid(const codec::Keys& keys);

// HEALPix grids are not left to ecCodes, whose versions before 2.32 do not know them.
bool is_healpix(const codec::Keys& keys);
/// Returns section 3 of a message with the grid of the keys, without gridName=. Code::format if they are none
/// of such a grid, or it has another number of points.
Result<ByteVector> healpix_section(const codec::Keys& keys, Index points);
/// Returns the keys of such a section, and those of the grid of a message: nothing if it is another one.
codec::Keys keys_of_section(std::span<const std::byte> section);
std::optional<codec::Keys> healpix_keys(std::span<const std::byte> message);
/// Returns the message with as many points of an unstructured grid; nothing if it has another grid, or
/// ecCodes knows HEALPix.
std::optional<ByteVector> without_healpix(std::span<const std::byte> message);

}  // namespace tailrace::grib2
