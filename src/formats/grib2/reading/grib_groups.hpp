// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <span>

#include "formats/grib2/reading/grib_codes.hpp"

// Decoders of complex packing without and with spatial differences (templates 5.2 and 5.3) and of IEEE
// numbers (5.4). ecCodes' decoders trust the numbers in a message; the decoders here check each number before
// they use it.
namespace tailrace::sources {

/// True if section 5 has template 5.2 or 5.3.
bool is_complex(std::span<const std::byte> representation);

/// Decodes `count` values into `values`; missing ones become NaN. `representation` is section 5, `data` the
/// content of section 7; 8 bytes behind `data` must be readable. Code::corrupt if the groups do not have
/// `count` values.
Status decode_groups(std::span<const std::byte> representation, std::span<const std::byte> data, Index count,
                     const Codes& scale, double* values);

/// Decodes big-endian IEEE numbers of 4 or 8 bytes. Code::corrupt if there are fewer than `count`.
Status decode_ieee(std::span<const std::byte> representation, std::span<const std::byte> data, Index count,
                   double* values);

}  // namespace tailrace::sources
