// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/grib2/reading/grib_codes.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "formats/entropy/decoder.hpp"
#include "formats/entropy/libaec.hpp"
#include "ground/base/text.hpp"

namespace tailrace::sources {

namespace {

constexpr bool is_little = std::endian::native == std::endian::little;

/// Decodes codes of whole octets, in GRIB's byte order (`swapped` on a little-endian machine) or in this
/// machine's.
template <typename Number, bool swapped, typename Value>
void decode_numbers(const Codes& codes, Index first, Index count, Value* to) {
  const double unit = codes.unit, reference = codes.reference, factor = codes.factor;
  const std::byte* const from = codes.octets + first * static_cast<Index>(sizeof(Number));
  for (Index i = 0; i < count; ++i) {
    Number code;
    std::memcpy(&code, from + i * static_cast<Index>(sizeof(Number)), sizeof code);
    if constexpr (swapped && sizeof(Number) == 2) code = __builtin_bswap16(code);
    if constexpr (swapped && sizeof(Number) == 4) code = __builtin_bswap32(code);
    to[i] = static_cast<Value>((static_cast<double>(code) * unit + reference) * factor);
  }
}

/// Decodes codes of any width up to 32 bits. A code lies within the 8 octets that begin where its first bit
/// lies.
template <typename Value>
void decode_any(const Codes& codes, Index first, Index count, Value* to) {
  const double unit = codes.unit, reference = codes.reference, factor = codes.factor;
  const int bits = codes.bits;
  for (Index i = 0; i < count; ++i) {
    const Index bit = (first + i) * bits;
    std::uint64_t word = 0;
    std::memcpy(&word, codes.octets + bit / 8, sizeof word);
    if constexpr (is_little) word = __builtin_bswap64(word);
    // Signed on purpose: processors convert signed numbers of 64 bits to double with one instruction, and a
    // code of 32 bits fits.
    const auto code = static_cast<std::int64_t>(word << (bit % 8) >> (64 - bits));
    to[i] = static_cast<Value>((static_cast<double>(code) * unit + reference) * factor);
  }
}

}  // namespace

Status contradiction(std::string_view what, std::int64_t expected, std::int64_t got) {
  return {Code::corrupt, cat(what, ": expected ", expected, ", got ", got)};
}

template <typename Value>
void decode_codes(const Codes& codes, Index first, Index count, Value* to) {
  const int bits = codes.bits;
  if (codes.values != nullptr) {
    std::transform(codes.values + first, codes.values + first + count, to,
                   [](double value) { return static_cast<Value>(value); });
  } else if (bits == 0) {
    std::fill_n(to, count, static_cast<Value>(codes.reference));
  } else if (codes.width != 0) {
    if (codes.width == 1) return decode_numbers<std::uint8_t, false>(codes, first, count, to);
    if (codes.width == 2) return decode_numbers<std::uint16_t, false>(codes, first, count, to);
    decode_numbers<std::uint32_t, false>(codes, first, count, to);
  } else {
    if (bits == 8) return decode_numbers<std::uint8_t, is_little>(codes, first, count, to);
    if (bits == 16) return decode_numbers<std::uint16_t, is_little>(codes, first, count, to);
    if (bits == 32) return decode_numbers<std::uint32_t, is_little>(codes, first, count, to);
    decode_any(codes, first, count, to);
  }
}

template void decode_codes(const Codes&, Index, Index, float*);
template void decode_codes(const Codes&, Index, Index, double*);

bool decompresses(const CcsdsParameters& parameters) {
  // Without these flags ecCodes 2.28 takes the octets of a code in another order when it writes, and again
  // when it reads, so only ecCodes knows the codes.
  const bool has_usual_order = (parameters.flags & entropy::layout_flags) == entropy::layout_flags;
  return has_usual_order && (entropy::has_libaec() || parameters.usual());
}

Status decompress_codes(const CcsdsParameters& parameters, std::span<const std::byte> compressed, Index count,
                        Codes& codes, ByteVector& memory) {
  const bool is_own = parameters.usual() && entropy::agrees_with_libaec();
  codes.width = is_own ? grib2::width_of_code(codes.bits) : entropy::libaec_width(codes.bits);
  memory.resize(static_cast<std::size_t>(count) * static_cast<std::size_t>(codes.width));
  codes.octets = memory.data();
  if (!is_own)
    return entropy::libaec_decode({parameters.flags, parameters.block, parameters.interval, codes.bits},
                                  compressed, memory);
  const entropy::Parameters coder = parameters.coder(codes.bits);
  return codes.width == 2
             ? entropy::decode(coder, compressed, count, reinterpret_cast<std::uint16_t*>(memory.data()))
             : entropy::decode(coder, compressed, count, reinterpret_cast<std::uint32_t*>(memory.data()));
}

Index count_bits(std::span<const std::byte> bits, Index first, Index count) {
  Index found = 0;
  const Index end = first + count;
  Index at = first;
  for (; at < end && at % 8 != 0; ++at) found += bit_at(bits, at) ? 1 : 0;
  for (; at + 64 <= end; at += 64) {
    std::uint64_t word = 0;
    std::memcpy(&word, &bits[static_cast<std::size_t>(at / 8)], sizeof word);
    found += std::popcount(word);
  }
  for (; at < end; ++at) found += bit_at(bits, at) ? 1 : 0;
  return found;
}

}  // namespace tailrace::sources
