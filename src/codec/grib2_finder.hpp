// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <deque>
#include <memory>

#include "codec/codec.hpp"
#include "codec/grib2_header.hpp"

namespace tailrace::codec::grib2 {

/// Makes a finder of messages whose sections 0 to 4 are those of the fields' records, for any level and lead.
std::unique_ptr<Finder> make_finder(const std::deque<Field>& fields);

}  // namespace tailrace::codec::grib2
