// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <span>

#include "formats/codec/definition.hpp"
#include "formats/grib2/time.hpp"

namespace tailrace::grib2::edition1 {

/// Returns Code::argument if the interval begins before the base time or after its own end, and Code::format
/// if no unit of code table 4 lets the octets of GRIB1 hold it.
Status check_interval(const Interval& interval, codec::Process process);
/// Writes the octets of `interval`, for which check_interval() returns success, into a head.
void write_time(std::byte* head, const Interval& interval, codec::Process process);
/// Returns the interval that a head states, or one that ends before the base time if it states none.
Interval read_time(std::span<const std::byte> head);

}  // namespace tailrace::grib2::edition1
