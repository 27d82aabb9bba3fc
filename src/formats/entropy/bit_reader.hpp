// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <algorithm>

#include "formats/entropy/bits.hpp"

// Reads the bits of a stream. Compiled into its callers, as bits.hpp.
namespace tailrace::entropy {

/// Reads bits, the most significant one first. Behind the end there are zeros: who has read a block asks
/// is_beyond().
struct BitReader {
  const std::byte* data;
  std::uint64_t size;    // octets
  std::uint64_t at = 0;  // the next bit

  /// Returns the bits from `bit` on, the next one as the most significant one. Its last bit % 8 bits are
  /// zeros.
  TAILRACE_ENTROPY_INLINE std::uint64_t window(std::uint64_t bit) const {
    const std::uint64_t octet = bit / 8;
    std::uint64_t word = 0;
    if (octet + 8 <= size) [[likely]]
      std::memcpy(&word, data + octet, 8);
    else if (octet < size)
      std::memcpy(&word, data + octet, size - octet);
    if constexpr (std::endian::native == std::endian::little) word = __builtin_bswap64(word);
    return word << bit % 8;
  }
  TAILRACE_ENTROPY_INLINE std::uint64_t take(unsigned bits) {
    const std::uint64_t value = window(at) >> (64 - bits);
    at += bits;
    return value;
  }
  [[nodiscard]] TAILRACE_ENTROPY_INLINE bool is_beyond() const { return at > size * 8; }
  /// Reads zeros up to a one, and returns their number. Behind the end it is a number that ends in
  /// is_beyond().
  TAILRACE_ENTROPY_INLINE std::uint64_t take_unary() {
    std::uint64_t zeros = 0;
    while (true) {
      const std::uint64_t word = window(at);
      if (word != 0) {
        const auto here = static_cast<unsigned>(std::countl_zero(word));
        at += here + 1;
        return zeros + here;
      }
      const std::uint64_t whole = 64 - at % 8;
      at += whole;
      zeros += whole;
      if (is_beyond()) return zeros;
    }
  }
};

/// Reads the unary parts of a block's codes. Returns all parts, or-ed; those that a `Code` cannot hold are
/// cut in `parts`.
template <typename Code>
TAILRACE_ENTROPY_INLINE std::uint64_t take_unary_parts(BitReader& in, Code* parts, int count) {
  std::uint64_t any = 0;
  std::uint64_t before = 0;  // zeros of the part that began in an earlier window
  for (int i = 0; i < count;) {
    std::uint64_t word = in.window(in.at);
    const int ones = std::min(std::popcount(word), count - i);
    if (ones == 0) {
      const std::uint64_t whole = 64 - in.at % 8;
      in.at += whole;
      before += whole;
      if (in.is_beyond()) return any;
      continue;
    }
    const auto first = static_cast<std::uint64_t>(std::countl_zero(word));
    word = word << first << 1;
    parts[i] = static_cast<Code>(first + before);
    any |= first + before;
    std::uint64_t used = first + 1;
    for (int j = 1; j < ones; ++j) {
      const auto zeros = static_cast<std::uint64_t>(std::countl_zero(word));
      word = word << zeros << 1;
      parts[i + j] = static_cast<Code>(zeros);
      any |= zeros;
      used += zeros + 1;
    }
    before = 0;
    in.at += used;
    i += ones;
  }
  return any;
}

/// Sets each code to its part and the `bits` bits that follow, which begin at bit in.at.
template <typename Code>
TAILRACE_ENTROPY_INLINE void take_low_bits(BitReader& in, const Code* parts, int count, int bits,
                                           Code* mapped) {
  const auto width = static_cast<unsigned>(bits);
  int i = 0;
  if (bits == 0) {
    for (; i < count; ++i) mapped[i] = static_cast<Code>(parts[i]);
    return;
  }
  const auto code = [&](int j, std::uint64_t low) __attribute__((always_inline)) {
    mapped[j] = static_cast<Code>(static_cast<std::uint64_t>(parts[j]) << width | low);
  };
  const unsigned rest = 64 - width;
  if (4 * width <= BitWriter::most) {
    for (; i + 4 <= count; i += 4, in.at += 4 * width) {
      const std::uint64_t word = in.window(in.at);
      code(i, word >> rest);
      code(i + 1, word << width >> rest);
      code(i + 2, word << 2 * width >> rest);
      code(i + 3, word << 3 * width >> rest);
    }
  } else if (2 * width <= BitWriter::most) {
    for (; i + 2 <= count; i += 2, in.at += 2 * width) {
      const std::uint64_t word = in.window(in.at);
      code(i, word >> rest);
      code(i + 1, word << width >> rest);
    }
  }
  for (; i < count; ++i) code(i, in.take(width));
}

}  // namespace tailrace::entropy
