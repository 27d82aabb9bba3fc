// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <span>

#include "formats/sources/source.hpp"
#include "ground/base/status.hpp"

namespace tailrace::sources {

/// Local. Tells by ecCodes what a header_message says beside `record`, and whether its keys are as `asked`.
/// Code::corrupt if ecCodes does not understand the message.
Result<Traits> grib_traits(std::span<const std::byte> message, const Record& record,
                           const codec::Keys& asked);

}  // namespace tailrace::sources
