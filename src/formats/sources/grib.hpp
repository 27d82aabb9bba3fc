// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include "formats/sources/front_end.hpp"

// GRIB1 and GRIB2 of any writer. The place of a record: offset and length of its message, and the number of
// the field in the message, from 0 on.
namespace tailrace::sources {

bool fits_grib(const Opening& opening);
Result<Inventory> scan_grib(const Opening& opening);
/// As scan_grib, with a limit: Code::corrupt if there are more than `most` records.
Result<Inventory> scan_grib_of(const Opening& opening, std::int64_t most);
Result<std::shared_ptr<const Source>> make_grib(const Opening& opening, Inventory inventory);
/// Returns the version of ecCodes and the directory of its definitions: names and levels depend on both.
std::string grib_maker();

}  // namespace tailrace::sources
