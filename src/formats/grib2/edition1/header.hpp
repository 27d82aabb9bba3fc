// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include "formats/grib2/header.hpp"

namespace tailrace::grib2::edition1 {

/// Prepares the header of a field, as Headers does for GRIB2: sections 0 to 2 as the definitions ask, read
/// back from the octets that records will have. Code::format for what GRIB1 has no octets for.
Result<Field> prepare(const codec::StreamDefinition& stream, const codec::FieldDefinition& field);

/// Returns the keys of the field's grid in the words of GRIB1. Leaves out what GRIB1 does not say but fixes,
/// such as the radius of the earth. Code::format for a grid that it cannot hold.
Result<codec::Keys> grid_keys_of(const Request& request);

/// Returns the two octets of a level. Code::format if GRIB1 cannot hold it.
Result<std::uint64_t> level_octets(const Request& request, std::size_t level);

}  // namespace tailrace::grib2::edition1
