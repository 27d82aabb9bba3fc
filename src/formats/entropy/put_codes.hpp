// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <algorithm>

#include "formats/entropy/bits.hpp"

// Writes the two parts of a block's codes: the unary ones, and the low bits. On a little-endian machine the
// bits of several codes are joined in vector registers before they are written.
namespace tailrace::entropy {

/// The bits of several codes, behind one another.
struct Joined {
  std::uint64_t bits, count;
  TAILRACE_ENTROPY_INLINE Joined before(const Joined& next) const {
    return {bits << next.count % 64 | next.bits, count + next.count};
  }
};

constexpr bool is_little = std::endian::native == std::endian::little;
constexpr std::uint64_t low_half = 0xffffffff;
constexpr int together = 8;  // codes whose bits are written at once
constexpr int most_block = 64;

/// Writes the `bits` low bits of each code from `first` on, one by one.
template <typename Code>
TAILRACE_ENTROPY_INLINE void put_low_bits_singly(BitWriter& out, const Code* mapped, int first, int end,
                                                 int bits) {
  const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
  for (int i = first; i < end; ++i) out.put(mapped[i] & mask, static_cast<unsigned>(bits));
}

/// Joins the `bits` low bits of the codes that lie in each octet of octets: four narrow codes, or two wide
/// ones. The code with the lowest address comes first.
template <typename Code>
TAILRACE_ENTROPY_INLINE void join_low_bits(const Code* mapped, int words, int bits, std::uint64_t* joined) {
  const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
  // Unrolled, the loops over a block would not become vector instructions (GCC 12).
#pragma GCC unroll 1
  for (int i = 0; i < words; ++i) {
    std::uint64_t word;
    std::memcpy(&word, reinterpret_cast<const std::byte*>(mapped) + i * 8, sizeof word);
    if constexpr (sizeof(Code) == 2) {
      constexpr std::uint64_t evens = 0x0000ffff0000ffff;
      const std::uint64_t pairs =
          (word & mask * 0x0000000100000001) << bits | (word >> 16 & evens & mask * 0x0000000100000001);
      joined[i] = (pairs & low_half) << 2 * bits | pairs >> 32;
    } else {
      joined[i] = (word & mask) << bits | (word >> 32 & mask);
    }
  }
}

/// Writes the `bits` low bits of each code from `first` on.
template <typename Code>
TAILRACE_ENTROPY_INLINE void put_low_bits(BitWriter& out, const Code* mapped, int first, int block,
                                          int bits) {
  constexpr int each = 8 / static_cast<int>(sizeof(Code));  // codes in a word
  if (bits == 0) return;
  const auto width = static_cast<unsigned>(bits * each);
  if (!is_little || first != 0 || width > BitWriter::most)
    return put_low_bits_singly(out, mapped, first, block, bits);
  const int words = block / each;
  alignas(64) std::uint64_t joined[most_block / each];
  join_low_bits(mapped, words, bits, joined);
  if (2 * width > BitWriter::most) {
    for (int i = 0; i < words; ++i) out.put(joined[i], width);
  } else if (4 * width > BitWriter::most || each == 4) {
    for (int i = 0; i < words; i += 2) out.put(joined[i] << width | joined[i + 1], 2 * width);
  } else {
    for (int i = 0; i < words; i += 4)
      out.put((joined[i] << width | joined[i + 1]) << 2 * width | joined[i + 2] << width | joined[i + 3],
              4 * width);
  }
}

/// Writes the unary parts of codes that are split at `split`, from `first` on, one after the other.
template <typename Code>
TAILRACE_ENTROPY_INLINE void put_unary_parts_singly(BitWriter& out, const Code* mapped, int first, int block,
                                                    int split) {
  for (int i = first; i < block;) {
    std::uint64_t bits = 0;
    unsigned count = 0;
    for (; i < block; ++i) {
      const std::uint64_t part = mapped[i] >> split;
      if (part >= BitWriter::most - count) break;
      bits = bits << (part + 1) | 1;
      count += static_cast<unsigned>(part) + 1;
    }
    if (count > 0)
      out.put(bits, count);
    else
      out.put_unary(mapped[i++] >> split);
  }
}

/// Joins the unary parts of the codes that lie in each word. A part is at most 2^14. The counts are right,
/// and the bits are, if each part of a narrow code has fewer than 32 bits, and that of a wide one fewer
/// than 64.
template <typename Code>
TAILRACE_ENTROPY_INLINE void join_unary_parts(const Code* mapped, int words, int split, std::uint64_t* bits,
                                              std::uint64_t* counts) {
  if constexpr (sizeof(Code) == 2) {
    alignas(64) std::uint32_t pair_bits[most_block / 2], pair_counts[most_block / 2];
#pragma GCC unroll 1
    for (int i = 0; i < 2 * words; ++i) {
      std::uint32_t pair;
      std::memcpy(&pair, mapped + 2 * i, sizeof pair);
      const std::uint32_t first = ((pair & 0xffff) >> split) + 1, second = (pair >> 16 >> split) + 1;
      pair_bits[i] = 1U << second % 32 | 1;
      pair_counts[i] = first + second;
    }
#pragma GCC unroll 1
    for (int i = 0; i < words; ++i) {
      std::uint64_t both, count;
      std::memcpy(&both, pair_bits + 2 * i, sizeof both);
      std::memcpy(&count, pair_counts + 2 * i, sizeof count);
      bits[i] = (both & low_half) << (count >> 32) % 64 | both >> 32;
      counts[i] = (count & low_half) + (count >> 32);
    }
  } else {
    for (int i = 0; i < words; ++i) {
      std::uint64_t pair;
      std::memcpy(&pair, mapped + 2 * i, sizeof pair);
      const std::uint64_t first = ((pair & low_half) >> split) + 1, second = (pair >> 32 >> split) + 1;
      bits[i] = std::uint64_t{1} << second % 64 | 1;
      counts[i] = first + second;
    }
  }
}

/// Writes the unary parts of codes that are split at `split`; `zeros` is the sum of the parts.
template <typename Sum, typename Code>
TAILRACE_ENTROPY_INLINE void put_unary_parts(BitWriter& out, const Code* mapped, int first, int block,
                                             int split, Sum zeros) {
  constexpr int each = 8 / static_cast<int>(sizeof(Code)), joins = together / each;
  constexpr Sum most_zeros = 1 << 14;
  // The shortest that eight parts can be if one of them has 32 bits is 39.
  constexpr std::uint64_t most_joined = each == 4 ? 31 + together - 1 : BitWriter::most;
  if (!is_little || first != 0 || zeros > most_zeros)
    return put_unary_parts_singly(out, mapped, first, block, split);
  const int words = block / each;
  alignas(64) std::uint64_t bits[most_block / each], counts[most_block / each];
  join_unary_parts(mapped, words, split, bits, counts);
  Joined joined[most_block / together];
  std::uint64_t longest = 0;
  for (int i = 0; i < words / joins; ++i) {
    joined[i] = {bits[joins * i], counts[joins * i]};
    for (int j = 1; j < joins; ++j)
      joined[i] = joined[i].before({bits[joins * i + j], counts[joins * i + j]});
    longest = std::max(longest, joined[i].count);
  }
  if (longest > most_joined) return put_unary_parts_singly(out, mapped, first, block, split);
  for (int i = 0; i < words / joins; ++i) out.put(joined[i].bits, static_cast<unsigned>(joined[i].count));
}

}  // namespace tailrace::entropy
