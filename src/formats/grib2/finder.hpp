// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <deque>
#include <memory>

#include "formats/codec/codec.hpp"
#include "formats/grib2/header.hpp"

namespace tailrace::grib2 {

/// Makes a finder of messages whose sections 0 to 4 are those of the fields' records, for any level and lead.
std::unique_ptr<codec::Finder> make_finder(const std::deque<Field>& fields);

}  // namespace tailrace::grib2
