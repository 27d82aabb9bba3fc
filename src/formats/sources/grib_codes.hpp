// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "formats/grib2/ccsds.hpp"
#include "ground/base/bytes.hpp"
#include "ground/base/status.hpp"

// The codes of packed values, and bitmaps.
namespace tailrace::sources {

using grib2::ccsds_parameters;
using grib2::CcsdsParameters;

/// "octets of section 5: expected 21, got 7"
Status contradiction(std::string_view what, std::int64_t expected, std::int64_t got);

/// No wider code is decoded here.
inline constexpr int most_code_bits = 32;

/// value = (code * unit + reference) * factor
struct Codes {
  const double* values = nullptr;     // if they are decoded already
  const std::byte* octets = nullptr;  // 8 octets behind the last code may be read
  int bits = 0;                       // of a code; 0: all values are the reference
  bool is_native = false;             // numbers of 1, 2 or 4 octets in this machine's order; otherwise GRIB's
  double unit = 1;
  double reference = 0;
  double factor = 1;
};

/// Stores the values of `count` codes from the code `first` on. `Value` is float or double.
template <typename Value>
void decode_codes(const Codes& codes, Index first, Index count, Value* to);

/// Returns false if this build leaves CCSDS to ecCodes.
bool has_libaec();
/// Decompresses CCSDS codes into `memory`, and makes `codes` tell of them. Code::corrupt if fewer come out.
Status decompress_codes(const CcsdsParameters& parameters, std::span<const std::byte> compressed, Index count,
                        Codes& codes, ByteVector& memory);

/// Returns how many of `count` bits from bit `first` on are 1. Bits are numbered from the most significant
/// on.
Index count_bits(std::span<const std::byte> bits, Index first, Index count);
inline bool bit_at(std::span<const std::byte> bits, Index at) {
  return (std::to_integer<unsigned>(bits[static_cast<std::size_t>(at / 8)]) >> (7 - at % 8) & 1) != 0;
}

}  // namespace tailrace::sources
