// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include "codec/definition.hpp"

namespace tailrace::grib2 {

/// Returns the keys of a grid of latitudes and longitudes (plain, rotated or Gaussian), or of one on a cone
/// or at a pole: those of the georeference, and from its sample message what they leave open. Of other grids
/// the type alone. Returns Code::format if the sample is no message. Needs ecCodes.
Result<codec::Keys> grid_keys(const codec::Georeference& georeference);

}  // namespace tailrace::grib2
