// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/entropy/encode_blocks.hpp"
#include "formats/entropy/ways.hpp"

namespace tailrace::entropy {

namespace {

constexpr int usual = 32;  // codes in a block of ecCodes
// Sums over a block of wider codes need more than 32 bits.
constexpr int most_bits_of_short_sums = 24;

template <typename Code>
TAILRACE_ENTROPY_INLINE void encode_any(const Parameters& parameters, const Code* codes, Index count,
                                        int& split, BitWriter& bits) {
  if (sizeof(Code) > 2 && parameters.bits > most_bits_of_short_sums)
    encode_codes<0, std::uint64_t>(parameters, codes, count, split, bits);
  else if (parameters.block == usual)
    encode_codes<usual, std::uint32_t>(parameters, codes, count, split, bits);
  else
    encode_codes<0, std::uint32_t>(parameters, codes, count, split, bits);
}

template <typename Code>
void encode_portable(const Parameters& parameters, const Code* codes, Index count, int& split,
                     BitWriter& bits) {
  encode_any(parameters, codes, count, split, bits);
}

#if defined(__x86_64__)

template <typename Code>
[[gnu::target(TAILRACE_ENTROPY_AVX2)]] void encode_avx2(const Parameters& parameters, const Code* codes,
                                                        Index count, int& split, BitWriter& bits) {
  encode_any(parameters, codes, count, split, bits);
}

template <typename Code>
[[gnu::target(TAILRACE_ENTROPY_AVX512)]] void encode_avx512(const Parameters& parameters, const Code* codes,
                                                            Index count, int& split, BitWriter& bits) {
  encode_any(parameters, codes, count, split, bits);
}

#endif

}  // namespace

bool covers(const Parameters& parameters) {
  const int block = parameters.block;
  return parameters.bits >= 1 && parameters.bits <= 32 &&
         (block == 8 || block == 16 || block == 32 || block == 64) && parameters.interval >= 1 &&
         parameters.interval <= 4096;
}

Bytes bound(const Parameters& parameters, Index count) {
  // A block that does not compress is stored as it is, behind an identification. The last block is filled up.
  const Index blocks = (count + parameters.block - 1) / parameters.block;
  const Index each = static_cast<Index>(parameters.block) * parameters.bits +
                     static_cast<Index>(identification_bits(parameters.bits));
  return (blocks * each + 7) / 8 + 1;
}

Encoder::Encoder(const Parameters& parameters, Way way) : parameters_(parameters), way_(way) {}

template <typename Code>
Bytes Encoder::encode(const Code* codes, Index count, bool is_last, std::byte* room) {
  BitWriter bits{room, held_, held_bits_};
#if defined(__x86_64__)
  if (way_ == Way::avx512)
    encode_avx512(parameters_, codes, count, split_, bits);
  else if (way_ == Way::avx2)
    encode_avx2(parameters_, codes, count, split_, bits);
  else
#endif
    encode_portable(parameters_, codes, count, split_, bits);
  if (is_last && bits.held_bits > 0) bits.put(0, 8 - bits.held_bits);
  held_ = bits.held;
  held_bits_ = bits.held_bits;
  if (is_last) split_ = 0;
  return bits.at - room;
}

template Bytes Encoder::encode(const std::uint16_t*, Index, bool, std::byte*);
template Bytes Encoder::encode(const std::uint32_t*, Index, bool, std::byte*);

}  // namespace tailrace::entropy
