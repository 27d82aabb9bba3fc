// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <deque>
#include <memory>

#include "formats/codec/codec.hpp"
#include "formats/grib2/header.hpp"

namespace tailrace::grib2::edition1 {

/// Makes a finder of the fields' records: messages whose sections 1 and 2 are those of a field, with any of
/// its levels and any lead. The finder refers to `fields`, which must outlive it.
std::unique_ptr<codec::Finder> make_finder(const std::deque<Field>& fields);

}  // namespace tailrace::grib2::edition1
