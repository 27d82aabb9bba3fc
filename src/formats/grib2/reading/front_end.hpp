// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include "formats/sources/front_end.hpp"

namespace tailrace::grib2 {

/// Reads GRIB1 and GRIB2 files of any writer. The place of a record: offset and length of its message, and
/// the number of the field in the message, from 0 on. An inventory is kept for one version of ecCodes and one
/// directory of its definitions: names and levels depend on both.
extern const sources::FrontEnd front_end;

}  // namespace tailrace::grib2

namespace tailrace::sources {

/// As FrontEnd::scan, with a limit: Code::corrupt if there are more than `most` records.
Result<Inventory> scan_grib_of(const Opening& opening, std::int64_t most);

}  // namespace tailrace::sources
