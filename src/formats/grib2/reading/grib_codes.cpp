// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/grib2/reading/grib_codes.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "ground/base/text.hpp"

#ifdef TAILRACE_HAVE_AEC
#include <libaec.h>
#endif

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
  } else if (codes.is_native) {
    if (bits <= 8) return decode_numbers<std::uint8_t, false>(codes, first, count, to);
    if (bits <= 16) return decode_numbers<std::uint16_t, false>(codes, first, count, to);
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

#ifdef TAILRACE_HAVE_AEC

bool has_libaec() { return true; }

Status decompress_codes(const CcsdsParameters& parameters, std::span<const std::byte> compressed, Index count,
                        Codes& codes, ByteVector& memory) {
  // ecCodes ignores these flags of the template, so they are ignored here, too.
  constexpr unsigned layout_flags = AEC_DATA_3BYTE | AEC_DATA_MSB;
  const auto width = static_cast<std::size_t>(grib2::width_of_code(codes.bits));
  memory.resize(static_cast<std::size_t>(count) * width);
  aec_stream stream{};
  stream.flags = (parameters.flags & ~layout_flags) | (is_little ? 0U : AEC_DATA_MSB);
  stream.bits_per_sample = static_cast<unsigned>(codes.bits);
  stream.block_size = parameters.block;
  stream.rsi = parameters.interval;
  stream.next_in = reinterpret_cast<const unsigned char*>(compressed.data());
  stream.avail_in = compressed.size();
  stream.next_out = reinterpret_cast<unsigned char*>(memory.data());
  stream.avail_out = memory.size();
  const int error = aec_buffer_decode(&stream);
  if (error == AEC_MEM_ERROR) return {Code::memory, "no memory to decompress the values"};
  if (error != AEC_OK) return {Code::corrupt, cat("libaec does not decompress its values: error ", error)};
  if (stream.total_out != memory.size())
    return {Code::corrupt, cat("packed values: expected ", count, ", got ", stream.total_out / width)};
  codes.octets = memory.data();
  codes.is_native = true;
  return {};
}

#else

bool has_libaec() { return false; }

Status decompress_codes(const CcsdsParameters&, std::span<const std::byte>, Index, Codes&, ByteVector&) {
  return {Code::unsupported, "built without libaec"};
}

#endif

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
