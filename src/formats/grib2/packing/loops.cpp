// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Compiled with -ffp-contract=off: AVX-512 has fused multiplications and additions, which would round
// differently.
#include "formats/grib2/packing/loops.hpp"

#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

#include "formats/entropy/bits.hpp"
#include "formats/entropy/ways.hpp"

namespace tailrace::grib2 {

namespace {

using entropy::Way;

// Independent lanes let the compiler use vector instructions. GCC 12 unrolls loops over 16 lanes or fewer
// instead, and takes 4 times as long.
constexpr int lanes = 32;

// x - x is 0 if x is finite, otherwise NaN.
template <typename Value>
TAILRACE_ENTROPY_INLINE Range range_in(const Value* values, Index count) {
  Value least[lanes], most[lanes], zero[lanes];
  for (int j = 0; j < lanes; ++j) {
    least[j] = std::numeric_limits<Value>::max();
    most[j] = std::numeric_limits<Value>::lowest();
    zero[j] = 0;
  }
  const Index whole = count - count % lanes;
  for (Index i = 0; i < whole; i += lanes) {
    for (int j = 0; j < lanes; ++j) {
      const Value x = values[i + j];
      least[j] = x < least[j] ? x : least[j];
      most[j] = x > most[j] ? x : most[j];
      zero[j] += x - x;
    }
  }
  for (Index i = whole; i < count; ++i) {
    least[0] = values[i] < least[0] ? values[i] : least[0];
    most[0] = values[i] > most[0] ? values[i] : most[0];
    zero[0] += values[i] - values[i];
  }
  for (int j = 1; j < lanes; ++j) {
    least[0] = least[j] < least[0] ? least[j] : least[0];
    most[0] = most[j] > most[0] ? most[j] : most[0];
    zero[0] += zero[j];
  }
  return {least[0], most[0], zero[0] == 0};
}

/// `Whole` is a type that holds every code.
template <typename Whole, typename Code, typename Value>
TAILRACE_ENTROPY_INLINE void compute_codes_in(const Value* values, Index count, Coding coding, Code* codes) {
  for (Index i = 0; i < count; ++i)
    codes[i] = static_cast<Code>(static_cast<Whole>(
        (static_cast<double>(values[i]) * coding.factor - coding.reference) * coding.divisor + 0.5));
}

template <typename Code, typename Value>
TAILRACE_ENTROPY_INLINE void compute_any(const Value* values, Index count, const Coding& coding,
                                         Code* codes) {
  // A code of fewer than 32 bits fits a signed 32-bit number. Vector instructions convert reals to these.
  if (sizeof(Code) < 4 || coding.bits < 32)
    compute_codes_in<std::int32_t>(values, count, coding, codes);
  else
    compute_codes_in<std::int64_t>(values, count, coding, codes);
}

template <typename Code>
TAILRACE_ENTROPY_INLINE Code big_endian(Code code) {
  if constexpr (std::endian::native != std::endian::little || sizeof(Code) == 1) return code;
  if constexpr (sizeof(Code) == 2) return static_cast<Code>(code << 8 | code >> 8);
  if constexpr (sizeof(Code) == 4) return __builtin_bswap32(code);
}

/// Writes codes straight to where they belong, which need not be aligned. `Scaled` is false if the factor is
/// 1: a multiplication by 1 changes no bit.
template <typename Code, bool Scaled, typename Value>
TAILRACE_ENTROPY_INLINE void pack_in(const Value* values, Index count, Coding coding, std::byte* to) {
  using Whole = std::conditional_t<sizeof(Code) < 4, std::int32_t, std::int64_t>;
  for (Index i = 0; i < count; ++i) {
    double x = static_cast<double>(values[i]);
    if constexpr (Scaled) x *= coding.factor;
    const Code code =
        big_endian(static_cast<Code>(static_cast<Whole>((x - coding.reference) * coding.divisor + 0.5)));
    std::memcpy(to + i * static_cast<Index>(sizeof code), &code, sizeof code);
  }
}

template <typename Code, typename Value>
TAILRACE_ENTROPY_INLINE void pack_any(const Value* values, Index count, const Coding& coding, std::byte* to) {
  if (coding.factor == 1)
    pack_in<Code, false>(values, count, coding, to);
  else
    pack_in<Code, true>(values, count, coding, to);
}

#if defined(__x86_64__)

template <typename Value>
[[gnu::target(TAILRACE_ENTROPY_AVX2)]] Range range_avx2(const Value* values, Index count) {
  return range_in(values, count);
}
template <typename Value>
[[gnu::target(TAILRACE_ENTROPY_AVX512)]] Range range_avx512(const Value* values, Index count) {
  return range_in(values, count);
}
template <typename Code, typename Value>
[[gnu::target(TAILRACE_ENTROPY_AVX2)]] void compute_avx2(const Value* values, Index count,
                                                         const Coding& coding, Code* codes) {
  compute_any(values, count, coding, codes);
}
template <typename Code, typename Value>
[[gnu::target(TAILRACE_ENTROPY_AVX512)]] void compute_avx512(const Value* values, Index count,
                                                             const Coding& coding, Code* codes) {
  compute_any(values, count, coding, codes);
}

template <typename Code, typename Value>
[[gnu::target(TAILRACE_ENTROPY_AVX2)]] void pack_avx2(const Value* values, Index count, const Coding& coding,
                                                      std::byte* to) {
  pack_any<Code>(values, count, coding, to);
}
template <typename Code, typename Value>
[[gnu::target(TAILRACE_ENTROPY_AVX512)]] void pack_avx512(const Value* values, Index count,
                                                          const Coding& coding, std::byte* to) {
  pack_any<Code>(values, count, coding, to);
}

#endif

}  // namespace

template <typename Value>
Range range_of(const Value* values, Index count, Way way) {
#if defined(__x86_64__)
  if (way == Way::avx512) return range_avx512(values, count);
  if (way == Way::avx2) return range_avx2(values, count);
#endif
  return range_in(values, count);
}

template <typename Value, typename Code>
void compute_codes(const Value* values, Index count, const Coding& coding, Code* codes, Way way) {
#if defined(__x86_64__)
  if (way == Way::avx512) return compute_avx512(values, count, coding, codes);
  if (way == Way::avx2) return compute_avx2(values, count, coding, codes);
#endif
  compute_any(values, count, coding, codes);
}

template <typename Code, typename Value>
void pack_codes(const Value* values, Index count, const Coding& coding, std::byte* to, Way way) {
#if defined(__x86_64__)
  if (way == Way::avx512) return pack_avx512<Code>(values, count, coding, to);
  if (way == Way::avx2) return pack_avx2<Code>(values, count, coding, to);
#endif
  pack_any<Code>(values, count, coding, to);
}

template Range range_of(const float*, Index, Way);
template Range range_of(const double*, Index, Way);
template void compute_codes(const float*, Index, const Coding&, std::uint8_t*, Way);
template void compute_codes(const float*, Index, const Coding&, std::uint16_t*, Way);
template void compute_codes(const float*, Index, const Coding&, std::uint32_t*, Way);
template void compute_codes(const double*, Index, const Coding&, std::uint8_t*, Way);
template void compute_codes(const double*, Index, const Coding&, std::uint16_t*, Way);
template void compute_codes(const double*, Index, const Coding&, std::uint32_t*, Way);
template void pack_codes<std::uint8_t>(const float*, Index, const Coding&, std::byte*, Way);
template void pack_codes<std::uint16_t>(const float*, Index, const Coding&, std::byte*, Way);
template void pack_codes<std::uint32_t>(const float*, Index, const Coding&, std::byte*, Way);
template void pack_codes<std::uint8_t>(const double*, Index, const Coding&, std::byte*, Way);
template void pack_codes<std::uint16_t>(const double*, Index, const Coding&, std::byte*, Way);
template void pack_codes<std::uint32_t>(const double*, Index, const Coding&, std::byte*, Way);

}  // namespace tailrace::grib2
