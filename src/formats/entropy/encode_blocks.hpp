// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <algorithm>
#include <limits>
#include <type_traits>

#include "formats/entropy/bits.hpp"
#include "formats/entropy/entropy.hpp"

// The loops of the encoder. encode.cpp compiles them once for each way, so nothing here is a call.
//
// With F(k) the sum of a block's codes without their k low bits, splitting at k takes F(k) + J (k + 1) bits.
// Going from k to k + 1 saves F(k) - F(k + 1) - J, which never grows with k. So the splits of least length
// are neighbours, from the first k at which the next one saves nothing to the first at which it costs
// something. libaec walks from the split of the block before and stops at the first of them: that is the
// nearest one.
namespace tailrace::entropy {

/// What the choice of a block's option needs. `Sum` holds any sum over a block.
template <typename Sum>
struct Costs {
  Sum sum;       // of all mapped codes
  Sum unary[3];  // the zeros of the unary parts when split at `base`, `base` + 1, `base` + 2
  int base;
  int least, most;  // the splits of least length
  Sum extension;    // the bits of the second extension, if it can be the shortest
};

/// Maps each code's difference from the one before it to a number without sign.
template <typename Code>
TAILRACE_ENTROPY_INLINE void map_codes(const Code* codes, Index count, Code largest, Code* mapped) {
  for (Index i = 0; i < count; ++i) {
    const Code before = codes[i - 1], code = codes[i];
    const auto room = static_cast<Code>(largest - before);
    const Code reach = before < room ? before : room;
    const bool is_up = code >= before;
    const auto step = static_cast<Code>(is_up ? code - before : before - code);
    const auto folded = static_cast<Code>(step + step - (is_up ? 0 : 1));
    mapped[i] = step <= reach ? folded : static_cast<Code>(reach + step);
  }
}

template <typename Sum, typename Code>
TAILRACE_ENTROPY_INLINE Sum sum_of(const Code* mapped, int block, int split) {
  Sum sum = 0;
  for (int i = 0; i < block; ++i) sum += static_cast<Code>(mapped[i] >> split);
  return sum;
}

/// Returns the bits of the second extension, the bit that tells it from a zero block included. All codes are
/// small.
template <typename Code>
TAILRACE_ENTROPY_INLINE std::uint32_t extension_bits(const Code* mapped, int block) {
  std::uint32_t bits = 1;
  for (int i = 0; i < block; i += 2) {
    const std::uint32_t second = mapped[i + 1], both = mapped[i] + second;
    bits += both * (both + 1) / 2 + second + 1;
  }
  return bits;
}

template <typename Sum>
TAILRACE_ENTROPY_INLINE int bits_of(Sum sum) {
  return sum == 0 ? 0 : std::numeric_limits<Sum>::digits - std::countl_zero(sum);
}

/// Assesses a block of which `coded` mapped codes are written (one fewer in a block with a reference).
template <typename Sum, typename Code>
TAILRACE_ENTROPY_INLINE Costs<Sum> assess(const Code* mapped, int block, int coded, int largest) {
  Costs<Sum> costs;
  costs.sum = sum_of<Sum>(mapped, block, 0);
  // With h = log2(sum / coded): at a split below h - 1 the next one saves bits for sure, and above h it costs
  // some.
  const auto each = static_cast<Sum>(coded);
  int high = bits_of(costs.sum) - bits_of(each);
  high -= high >= 0 && each << high > costs.sum ? 1 : 0;
  costs.base = std::clamp(high - 1, 0, largest);
  for (int i = 0; i < 3; ++i) costs.unary[i] = sum_of<Sum>(mapped, block, costs.base + i);
  const Sum first = costs.unary[0] - costs.unary[1], second = costs.unary[1] - costs.unary[2];
  costs.least = std::min(costs.base + (first > each ? 1 : 0) + (second > each ? 1 : 0), largest);
  costs.most = std::min(costs.base + (first >= each ? 1 : 0) + (second >= each ? 1 : 0), largest);
  // From two bits a code on, a split at 1 is shorter than the second extension.
  costs.extension = costs.sum < static_cast<Sum>(2 * block) ? static_cast<Sum>(extension_bits(mapped, block))
                                                            : std::numeric_limits<Sum>::max();
  return costs;
}

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
TAILRACE_ENTROPY_INLINE void put_low_bits_singly(BitWriter& out, const Code* mapped, int first, int end, int bits) {
  const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
  for (int i = first; i < end; ++i) out.put(mapped[i] & mask, static_cast<unsigned>(bits));
}

/// Joins the `bits` low bits of the codes that lie in each octet of octets: four narrow codes, or two wide ones. The
/// code with the lowest address comes first.
template <typename Code>
TAILRACE_ENTROPY_INLINE void join_low_bits(const Code* mapped, int words, int bits, std::uint64_t* joined) {
  const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
  for (int i = 0; i < words; ++i) {
    std::uint64_t word;
    std::memcpy(&word, reinterpret_cast<const std::byte*>(mapped) + i * 8, sizeof word);
    if constexpr (sizeof(Code) == 2) {
      constexpr std::uint64_t evens = 0x0000ffff0000ffff;
      const std::uint64_t pairs = (word & mask * 0x0000000100000001) << bits |
                                  (word >> 16 & evens & mask * 0x0000000100000001);
      joined[i] = (pairs & low_half) << 2 * bits | pairs >> 32;
    } else {
      joined[i] = (word & mask) << bits | (word >> 32 & mask);
    }
  }
}

/// Writes the `bits` low bits of each code from `first` on.
template <typename Code>
TAILRACE_ENTROPY_INLINE void put_low_bits(BitWriter& out, const Code* mapped, int first, int block, int bits) {
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
      out.put((joined[i] << width | joined[i + 1]) << 2 * width | joined[i + 2] << width | joined[i + 3], 4 * width);
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

/// Joins the unary parts of the codes that lie in each word. A part is at most 2^14. The counts are right, and the bits
/// are, if each part of a narrow code has fewer than 32 bits, and that of a wide one fewer than 64.
template <typename Code>
TAILRACE_ENTROPY_INLINE void join_unary_parts(const Code* mapped, int words, int split, std::uint64_t* bits,
                                              std::uint64_t* counts) {
  if constexpr (sizeof(Code) == 2) {
    alignas(64) std::uint32_t pair_bits[most_block / 2], pair_counts[most_block / 2];
    for (int i = 0; i < 2 * words; ++i) {
      std::uint32_t pair;
      std::memcpy(&pair, mapped + 2 * i, sizeof pair);
      const std::uint32_t first = ((pair & 0xffff) >> split) + 1, second = (pair >> 16 >> split) + 1;
      pair_bits[i] = 1U << second % 32 | 1;
      pair_counts[i] = first + second;
    }
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
TAILRACE_ENTROPY_INLINE void put_unary_parts(BitWriter& out, const Code* mapped, int first, int block, int split,
                                             Sum zeros) {
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
    for (int j = 1; j < joins; ++j) joined[i] = joined[i].before({bits[joins * i + j], counts[joins * i + j]});
    longest = std::max(longest, joined[i].count);
  }
  if (longest > most_joined) return put_unary_parts_singly(out, mapped, first, block, split);
  for (int i = 0; i < words / joins; ++i) out.put(joined[i].bits, static_cast<unsigned>(joined[i].count));
}

/// Writes the blocks of a segment: a scalar chain, because the choice of a split begins at that of the block
/// before.
template <typename Code, typename Sum>
struct SegmentWriter {
  BitWriter out;
  unsigned identification;  // its bits
  int bits, block, split;
  std::uint64_t reference = 0;
  bool has_reference = false;  // of the block that is written next
  unsigned zero_blocks = 0;
  bool zero_has_reference = false;

  TAILRACE_ENTROPY_INLINE void put_reference(bool is_there) {
    if (is_there) out.put(reference, static_cast<unsigned>(bits));
  }
  TAILRACE_ENTROPY_INLINE void put_zero_blocks(bool ends_segment) {
    if (zero_blocks == 0) return;
    out.put(0, identification + 1);
    put_reference(zero_has_reference);
    const bool is_rest = ends_segment && zero_blocks > rest_of_segment;
    out.put_unary(is_rest ? rest_of_segment : zero_blocks > rest_of_segment ? zero_blocks : zero_blocks - 1);
    zero_blocks = 0;
    zero_has_reference = false;
  }
  TAILRACE_ENTROPY_INLINE void put_extension(const Code* mapped, bool is_reference) {
    out.put(1, identification + 1);
    put_reference(is_reference);
    for (int i = 0; i < block; i += 2) {
      const std::uint32_t second = mapped[i + 1], both = mapped[i] + second;
      out.put_unary(both * (both + 1) / 2 + second);
    }
  }
  TAILRACE_ENTROPY_INLINE void put_block(const Code* mapped, const Costs<Sum>& costs) {
    const bool is_reference = has_reference;
    has_reference = false;
    if (costs.sum == 0) {
      zero_has_reference = zero_has_reference || is_reference;
      ++zero_blocks;
      return;
    }
    put_zero_blocks(false);
    split = std::clamp(split, costs.least, costs.most);
    const int first = is_reference ? 1 : 0;
    const auto coded = static_cast<Sum>(block - first);
    const Sum zeros = costs.unary[split - costs.base];
    const Sum split_bits = zeros + coded * static_cast<Sum>(split + 1);
    const Sum plain_bits = coded * static_cast<Sum>(bits);
    if (costs.extension < plain_bits && costs.extension <= split_bits)
      return put_extension(mapped, is_reference);
    if (split_bits < plain_bits) {
      out.put(static_cast<std::uint64_t>(split) + 1, identification);
      put_reference(is_reference);
      put_unary_parts(out, mapped, first, block, split, zeros);
      return put_low_bits(out, mapped, first, block, split);
    }
    out.put((std::uint64_t{1} << identification) - 1, identification);
    put_reference(is_reference);
    put_low_bits(out, mapped, first, block, bits);
  }
};

/// Encodes `count` codes. `usual_block`: the size of a block if it is known here, else 0.
template <int usual_block, typename Sum, typename Code>
TAILRACE_ENTROPY_INLINE void encode_codes(const Parameters& parameters, const Code* codes, Index count,
                                          int& split, BitWriter& bits) {
  alignas(64) Code mapped[segment_blocks * most_block];
  const int block = usual_block != 0 ? usual_block : parameters.block;
  const auto largest = static_cast<Code>(std::numeric_limits<Code>::max() >>
                                         (std::numeric_limits<Code>::digits - parameters.bits));
  const int largest_k = largest_split(parameters.bits);
  SegmentWriter<Code, Sum> writer{bits, identification_bits(parameters.bits), parameters.bits, block, split};
  Index done = 0;
  while (done < count) {
    for (int at = 0; at < parameters.interval && done < count; at += segment_blocks) {
      const int blocks = std::min(segment_blocks, parameters.interval - at);
      const Index here = std::min<Index>(count - done, static_cast<Index>(blocks) * block);
      const Index used = (here + block - 1) / block * block;
      const bool has_reference = at == 0;
      if (has_reference) mapped[0] = 0;
      const int first = has_reference ? 1 : 0;
      map_codes(codes + done + first, here - first, largest, mapped + first);
      std::fill(mapped + here, mapped + used, Code{0});  // the last block is filled up with its last code
      writer.has_reference = has_reference;
      writer.reference = codes[done];
      for (Index i = 0; i < used; i += block) {
        const int coded = block - (writer.has_reference ? 1 : 0);
        writer.put_block(mapped + i, assess<Sum>(mapped + i, block, coded, largest_k));
      }
      writer.put_zero_blocks(true);
      done += here;
    }
  }
  split = writer.split;
  bits = writer.out;
}

}  // namespace tailrace::entropy
