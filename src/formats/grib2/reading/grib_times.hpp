// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>

#include "formats/sources/source.hpp"
#include "ground/base/status.hpp"

namespace tailrace::grib2 {
class Handle;
}

namespace tailrace::sources {

/// Returns the seconds of a unit of time (GRIB1's code table 4, GRIB2's 4.4), or 0 for months, longer units
/// and codes that are in neither table.
std::int64_t seconds_of_unit(long edition, long unit);

/// Returns when the interval of a statistic begins: `reference` plus the time that the message states
/// (GRIB2's forecast time, GRIB1's P1), or nothing if the message states none or in units that are not known.
std::optional<std::int64_t> interval_begin_of(const grib2::Handle& handle, int edition,
                                              std::int64_t reference);

/// Sets the base time of a record and the time for which it is valid: for a statistic, the end of its
/// interval. If a message states the end, the stated end counts, whatever begin and length say. Code::corrupt
/// if the message states no time.
Status set_times(grib2::Handle& handle, Record& record);

}  // namespace tailrace::sources
