// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <vector>

#include "formats/codec/definition.hpp"

namespace tailrace::grids {

// The grids of layouts are given in keys of GRIB2, whatever format a stream has. All other modules ask here
// what these keys say. A build without ecCodes knows no more than the keys that the caller has given.

/// Returns the keys of a grid: those of the georeference, and from its sample message those that the
/// georeference does not give (grib2::grid_keys).
Result<codec::Keys> keys_of(const codec::Georeference& georeference);

/// Returns the keys that a message with a field of this shape on this grid would have, with those that the
/// georeference leaves out. Returns Code::format if the keys and the shape contradict each other.
Result<codec::Keys> keys_of_message(const std::vector<Index>& shape, const codec::Georeference& georeference);

}  // namespace tailrace::grids
