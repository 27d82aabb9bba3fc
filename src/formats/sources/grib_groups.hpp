// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <span>

#include "formats/sources/grib_codes.hpp"

// Complex packing, with spatial differences or without (templates 5.2 and 5.3), and IEEE numbers (5.4).
// ecCodes' decoders of these trust the numbers in a message; here each is checked before it is used.
namespace tailrace::sources {

/// Returns true if the section is of template 5.2 or 5.3.
bool is_complex(std::span<const std::byte> representation);

/// Decodes `count` values into `values`, missing ones as NaN. `data` is the content of section 7; 8 bytes
/// behind it may be read. Code::corrupt if the groups do not have as many values.
Status decode_groups(std::span<const std::byte> representation, std::span<const std::byte> data, Index count,
                     const Codes& scale, double* values);

/// Decodes big-endian numbers of 4 or 8 bytes.
Status decode_ieee(std::span<const std::byte> representation, std::span<const std::byte> data, Index count,
                   double* values);

}  // namespace tailrace::sources
