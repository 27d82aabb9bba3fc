// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>

#include "ground/base/bytes.hpp"
#include "ground/base/types.hpp"

// The adaptive entropy coder of CCSDS 121.0-B, in which template 5.42 of GRIB2 compresses the codes of a
// record: the same octets as from libaec, which ecCodes uses, in less time. docs/design/034-entropy-coder.md
// says how a block's option is chosen. Nothing here knows of GRIB.
namespace tailrace::entropy {

/// The parameters of a stream of unsigned codes, each mapped to its difference from the code before it (the
/// preprocessor of the standard).
struct Parameters {
  int bits = 0;      // of one code
  int block = 0;     // codes that are compressed together: J of the standard
  int interval = 0;  // blocks from one reference code to the next: r of the standard
};
/// Local. Returns true if this module codes such streams: 1 to 32 bits; blocks of 8, 16, 32 or 64; intervals
/// of 1 to 4096 blocks.
bool covers(const Parameters& parameters);

/// What the loops are compiled for. Every way gives the same octets.
enum class Way { portable, avx2, avx512 };
/// Local. Returns true if this processor has the instructions of `way`.
bool has(Way way);
/// Local. Returns the fastest way of this processor.
Way best_way();

/// Codes of at most this many bits lie in numbers of 16 bits, wider ones in numbers of 32.
inline constexpr int most_narrow_bits = 16;

/// The encoder may write so many octets behind those that count.
inline constexpr Bytes encoder_spare = 8;
/// Local. Returns the largest number of octets to which `count` codes are compressed.
Bytes bound(const Parameters& parameters, Index count);

/// Compresses a stream in portions. Local: no call blocks. `parameters` must be covered.
class Encoder {
 public:
  explicit Encoder(const Parameters& parameters, Way way = best_way());

  /// Compresses the next `count` codes (1 or more) into `room`, which must hold bound() of them and
  /// encoder_spare. Returns the number of octets. All portions but the last consist of whole intervals.
  /// The portion behind the last one begins another stream.
  /// `Code` is std::uint16_t for at most most_narrow_bits, otherwise std::uint32_t; codes must fit their
  /// bits.
  template <typename Code>
  Bytes encode(const Code* codes, Index count, bool is_last, std::byte* room);

 private:
  Parameters parameters_;
  Way way_;
  int split_ = 0;           // where the last block that had a choice was split
  std::uint64_t held_ = 0;  // bits that make no whole octet yet, from the most significant one on
  unsigned held_bits_ = 0;
};

}  // namespace tailrace::entropy
