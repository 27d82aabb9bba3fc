// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "formats/grib2/ccsds.hpp"
#include "ground/base/bytes.hpp"
#include "ground/base/status.hpp"

// The integer codes of packed values, and bitmaps.
namespace tailrace::sources {

using grib2::ccsds_parameters;
using grib2::CcsdsParameters;

/// Returns an error such as "octets of section 5: expected 21, got 7".
Status contradiction(std::string_view what, std::int64_t expected, std::int64_t got);

/// The widest code that is decoded here; ecCodes decodes wider ones.
inline constexpr int most_code_bits = 32;

/// value = (code * unit + reference) * factor
struct Codes {
  const double* values = nullptr;     // the values, if they are decoded already
  const std::byte* octets = nullptr;  // the codes; 8 octets behind the last must be readable
  int bits = 0;                       // of one code; 0: all values are the reference
  /// Octets of each code in this machine's byte order: 1, 2 or 4. 0: codes lie bit behind bit, as in GRIB.
  int width = 0;
  double unit = 1;
  double reference = 0;
  double factor = 1;
};

/// Stores the values of `count` codes at `to`, from the code number `first` on. `Value` is float or double.
template <typename Value>
void decode_codes(const Codes& codes, Index first, Index count, Value* to);

/// True if this build decompresses CCSDS with these parameters; otherwise ecCodes does.
bool decompresses(const CcsdsParameters& parameters);
/// Decompresses CCSDS codes into `memory`, and makes `codes` refer to them. Code::corrupt if there are fewer
/// than `count`, or the stream is malformed.
Status decompress_codes(const CcsdsParameters& parameters, std::span<const std::byte> compressed, Index count,
                        Codes& codes, ByteVector& memory);

/// Returns the number of ones among `count` bits from bit `first` on. Bit 0 is the most significant bit of
/// the first octet.
Index count_bits(std::span<const std::byte> bits, Index first, Index count);
inline bool bit_at(std::span<const std::byte> bits, Index at) {
  return (std::to_integer<unsigned>(bits[static_cast<std::size_t>(at / 8)]) >> (7 - at % 8) & 1) != 0;
}

}  // namespace tailrace::sources
