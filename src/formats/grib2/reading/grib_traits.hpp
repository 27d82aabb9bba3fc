// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <span>

#include "formats/sources/source.hpp"
#include "ground/base/status.hpp"

namespace tailrace::sources {

/// Local. Returns the traits of a header_message, as ecCodes reads them, with an answer for each key of
/// `asked`. `record` gives the base time. Code::corrupt if ecCodes does not understand the message.
Result<Traits> grib_traits(std::span<const std::byte> message, const Record& record,
                           const codec::Keys& asked);

}  // namespace tailrace::sources
