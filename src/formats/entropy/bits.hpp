// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "ground/base/bytes.hpp"

// Everything here is compiled into its callers, for the processor that the caller is compiled for.
namespace tailrace::entropy {

#define TAILRACE_ENTROPY_INLINE [[gnu::always_inline]] inline

/// The bits of an identification of a block's option, for codes of `bits`.
constexpr unsigned identification_bits(int bits) { return bits <= 8 ? 3 : bits <= 16 ? 4 : 5; }
/// The largest number of bits behind the unary part of a code.
constexpr int largest_split(int bits) { return (1 << identification_bits(bits)) - 3; }
/// Runs of zero blocks end where so many blocks of an interval end.
inline constexpr int segment_blocks = 64;
/// An encoder writes this number, in unary, for a run of zero blocks that goes on to the end of its segment.
inline constexpr unsigned rest_of_segment = 4;

/// Writes bits, the most significant one first. It always stores eight octets: those behind the last whole
/// octet are overwritten by the next call.
struct BitWriter {
  std::byte* at;
  std::uint64_t held;  // fewer than 8 bits, from the most significant one on
  unsigned held_bits;

  static constexpr unsigned most = 56;

  /// Appends the `count` (at most 56) low bits of `value`, whose other bits are 0.
  TAILRACE_ENTROPY_INLINE void put(std::uint64_t value, unsigned count) {
    held |= value << (64 - held_bits - count) % 64;
    const std::uint64_t octets = std::endian::native == std::endian::little ? __builtin_bswap64(held) : held;
    std::memcpy(at, &octets, sizeof octets);
    held_bits += count;
    at += held_bits / 8;
    held <<= held_bits / 8 * 8;
    held_bits %= 8;
  }
  /// Appends `zeros` zeros and a one.
  TAILRACE_ENTROPY_INLINE void put_unary(std::uint64_t zeros) {
    for (; zeros >= most; zeros -= most) put(0, most);
    put(1, static_cast<unsigned>(zeros) + 1);
  }
};

}  // namespace tailrace::entropy
