// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>

#include "formats/sources/source.hpp"
#include "ground/base/status.hpp"

namespace tailrace::grib2 {
class Handle;
}

namespace tailrace::sources {

/// Returns the seconds of a unit of time (GRIB1's code table 4, GRIB2's 4.4), or 0 for months, longer units
/// and those that are in no table.
std::int64_t seconds_of_unit(long edition, long unit);

/// Sets the base time of a record, and the time for which it is valid: of a statistic the end of its
/// interval. The end that a message states counts, whatever begin and length say. Code::corrupt if the
/// message does not tell a time.
Status set_times(grib2::Handle& handle, Record& record);

}  // namespace tailrace::sources
