// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <algorithm>
#include <limits>
#include <span>

#include "formats/entropy/bit_reader.hpp"
#include "formats/entropy/entropy.hpp"

// The loops of the decoder. decode.cpp compiles them once for each way, so nothing here is a call.
namespace tailrace::entropy {

/// Why a stream is not decoded.
enum class Flaw { none, ends_early, code_too_wide, run_too_long };

/// Undoes the mapping: each code is the one before it, and the difference that `mapped` tells.
template <typename Code>
TAILRACE_ENTROPY_INLINE void unmap_codes(const Code* mapped, int count, Code before, Code largest,
                                         Code* codes) {
  Code steps[64], known[65];
  known[0] = before;
  for (int i = 0; i < count; ++i)
    steps[i] = static_cast<Code>((mapped[i] >> 1) ^ static_cast<Code>(0 - (mapped[i] & 1)));
  for (int i = 0; i < count; ++i) known[i + 1] = static_cast<Code>(known[i] + steps[i]);
  // A step that leads out of the codes' range is told otherwise. Up to the first of them, `known` is right.
  Code is_far = 0;
  for (int i = 0; i < count; ++i) {
    const auto room = static_cast<Code>(largest - known[i]);
    const Code reach = known[i] < room ? known[i] : room;
    const auto step = static_cast<Code>((mapped[i] >> 1) + (mapped[i] & 1));
    is_far = static_cast<Code>(is_far | (step > reach ? 1 : 0));
  }
  if (is_far == 0) {
    for (int i = 0; i < count; ++i) codes[i] = known[i + 1];
    return;
  }
  // Without branches: near the edges of the range each way is as likely as the others.
  std::int64_t code = before;
  const std::int64_t last = largest;
  for (int i = 0; i < count; ++i) {
    const std::int64_t number = mapped[i];
    const std::int64_t near = code + ((number >> 1) ^ -(number & 1));
    const std::int64_t inside = number > 2 * (last - code) ? last - number : near;
    code = number > 2 * code ? number : inside;
    codes[i] = static_cast<Code>(code);
  }
}

/// Sets two codes from the number that the second extension writes for them: (a + b) (a + b + 1) / 2 + b.
/// Returns false if their sum is 2^16 or larger, which is longer than any other option.
template <typename Code>
TAILRACE_ENTROPY_INLINE bool separate(std::uint64_t pair, Code& first, Code& second) {
  if (pair >= std::uint64_t{1} << 31) return false;
  std::uint64_t both = 0;
  while ((both + 1) * (both + 2) / 2 <= pair) ++both;
  const std::uint64_t b = pair - both * (both + 1) / 2;
  second = static_cast<Code>(b);
  first = static_cast<Code>(both - b);
  return both < (std::uint64_t{1} << 16);
}

template <typename Code>
struct BlockReader {
  BitReader in;
  unsigned identification;  // its bits
  int bits, block;
  Code largest;
  Code before = 0;  // the last code that was read
  std::uint64_t zero_blocks = 0;

  /// Reads the first `wanted` codes of the second extension. Where a reference precedes them, `first` is 1,
  /// and the first number means nothing.
  TAILRACE_ENTROPY_INLINE Flaw take_extension(int first, int wanted, Code* mapped) {
    std::uint64_t any = 0;
    for (int i = 0; i < wanted; i += 2) {
      if (!separate(in.take_unary(), mapped[i], mapped[i + 1]))
        return in.is_beyond() ? Flaw::ends_early : Flaw::code_too_wide;
      any |= static_cast<std::uint64_t>(i < first ? Code{0} : mapped[i]) | mapped[i + 1];
    }
    return any > largest ? Flaw::code_too_wide : Flaw::none;
  }
  /// Reads the number of zero blocks in a run. The first of them is block number `at` of an interval.
  TAILRACE_ENTROPY_INLINE Flaw take_run(int at, int interval) {
    const std::uint64_t told = in.take_unary();
    if (in.is_beyond()) return Flaw::ends_early;
    const auto left = static_cast<std::uint64_t>(interval - at);
    const auto segment = static_cast<std::uint64_t>(segment_blocks - at % segment_blocks);
    zero_blocks = told == rest_of_segment  ? std::min(left, segment)
                  : told > rest_of_segment ? told
                                           : told + 1;
    return zero_blocks > left ? Flaw::run_too_long : Flaw::none;
  }
  /// Reads the codes of a block that are split at `split`, from `mapped[first]` to `mapped[wanted - 1]`.
  TAILRACE_ENTROPY_INLINE Flaw take_split(int split, int first, int wanted, Code* mapped) {
    Code parts[64];
    const std::uint64_t any = take_unary_parts(in, parts, block - first);
    if (in.is_beyond()) return Flaw::ends_early;
    if (any > static_cast<std::uint64_t>(largest) >> split) return Flaw::code_too_wide;
    take_low_bits(in, parts, wanted - first, split, mapped + first);
    // Narrow codes have splits that leave more low bits than a code has.
    const bool is_too_wide = split > bits && std::any_of(mapped + first, mapped + wanted,
                                                         [&](Code code) { return code > largest; });
    return is_too_wide ? Flaw::code_too_wide : Flaw::none;
  }
  /// Reads block number `at` of an interval to `codes`, which has room for all of its codes. Of the last
  /// block only `wanted` codes count: a stream may end before the rest, with which a writer fills it up.
  TAILRACE_ENTROPY_INLINE Flaw take_block(int at, int interval, int wanted, Code* codes) {
    Flaw flaw = Flaw::none;
    const int first = at == 0 ? 1 : 0;
    Code mapped[64];
    for (int i = wanted; i < block; ++i) mapped[i] = 0;
    if (zero_blocks == 0) {
      const auto option = static_cast<unsigned>(in.take(identification));
      const unsigned plain = (1U << identification) - 1;
      const bool is_extension = option == 0 && in.take(1) != 0;
      if (at == 0) before = static_cast<Code>(in.take(static_cast<unsigned>(bits)));
      if (option == plain) {
        constexpr Code nothing[64] = {};
        take_low_bits(in, nothing, wanted - first, bits, mapped + first);
      } else if (option != 0) {
        flaw = take_split(static_cast<int>(option) - 1, first, wanted, mapped);
      } else if (is_extension) {
        flaw = take_extension(first, wanted, mapped);
      } else {
        flaw = take_run(at, interval);
      }
      if (flaw != Flaw::none) return flaw;
      if (in.is_beyond()) return Flaw::ends_early;
      if (at == 0)
        mapped[0] = 0;  // the second extension tells a number for the reference, which means nothing
    }
    if (zero_blocks > 0) {
      --zero_blocks;
      std::fill_n(codes, block, before);
      return Flaw::none;
    }
    unmap_codes(mapped, block, before, largest, codes);
    before = codes[block - 1];
    return Flaw::none;
  }
};

/// Decodes `count` codes. `usual_block`: the size of a block if it is known here, else 0. `reached` becomes
/// the number of blocks that were read before a flaw.
template <int usual_block, typename Code>
TAILRACE_ENTROPY_INLINE Flaw decode_codes(const Parameters& parameters, std::span<const std::byte> stream,
                                          Index count, Code* codes, Index& reached) {
  const int block = usual_block != 0 ? usual_block : parameters.block;
  const auto largest = static_cast<Code>(std::numeric_limits<Code>::max() >>
                                         (std::numeric_limits<Code>::digits - parameters.bits));
  BlockReader<Code> reader{
      {stream.data(), stream.size()}, identification_bits(parameters.bits), parameters.bits, block, largest};
  int at = 0;
  reached = 0;
  for (Index done = 0; done < count; done += block, ++reached) {
    Code last[64];
    const bool is_whole = count - done >= block;
    const Flaw flaw = is_whole
                          ? reader.take_block(at, parameters.interval, block, codes + done)
                          : reader.take_block(at, parameters.interval, static_cast<int>(count - done), last);
    if (flaw != Flaw::none) return flaw;
    if (!is_whole) std::copy_n(last, count - done, codes + done);
    if (++at == parameters.interval) at = 0;
  }
  return Flaw::none;
}

}  // namespace tailrace::entropy
