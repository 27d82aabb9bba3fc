// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <span>

#include "formats/grib2/reading/grib_sections.hpp"
#include "formats/sources/source.hpp"

namespace tailrace::sources {

/// Stores the part of a field inside `cut` at `values`, as Source::read says. `message` is the whole message,
/// with at least `spare_bytes` of memory behind it: codes are read eight octets at a time. Simple, complex,
/// IEEE and CCSDS packing are decoded here, to the same numbers as ecCodes gives; ecCodes decodes other
/// packings. `memory` holds decompressed codes and decoded values meanwhile.
Result<Index> decode_grib(std::span<const std::byte> message, const GribField& field, const Grid& grid,
                          const layout::Box& cut, ElementType type, std::byte* values, ByteVector& memory);
inline constexpr Bytes spare_bytes = 8;

/// Returns an upper bound of the bytes that decode_grib uses in `memory`.
Bytes decoding_bytes(const Grid& grid);

}  // namespace tailrace::sources
