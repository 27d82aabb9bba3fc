// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <algorithm>
#include <limits>
#include <type_traits>

#include "formats/entropy/entropy.hpp"
#include "formats/entropy/put_codes.hpp"

// The loops of the encoder. encode.cpp compiles them once for each way, so nothing here is a call.
//
// With F(k) the sum of a block's codes without their k low bits, splitting at k takes F(k) + J (k + 1) bits.
// Going from k to k + 1 saves F(k) - F(k + 1) - J, which never grows with k. So the splits of least length
// are neighbours, from the first k at which the next one saves nothing to the first at which it costs
// something. libaec walks from the split of the block before and stops at the first of them: that is the
// nearest one.
namespace tailrace::entropy {

/// The encoder chooses a block's option by these figures. `Sum` holds any sum over a block.
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
  // Where codes are two or more on average, a split at 1 is shorter than the second extension.
  costs.extension = costs.sum < static_cast<Sum>(2 * block) ? static_cast<Sum>(extension_bits(mapped, block))
                                                            : std::numeric_limits<Sum>::max();
  return costs;
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
