// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "formats/entropy/libaec.hpp"

namespace tailrace::entropy::test {

using Codes = std::vector<std::uint32_t>;

inline constexpr Way all_ways[] = {Way::portable, Way::avx2, Way::avx512};

/// The ways that this processor has.
inline std::vector<Way> ways() {
  std::vector<Way> found;
  std::copy_if(std::begin(all_ways), std::end(all_ways), std::back_inserter(found),
               [](Way way) { return has(way); });
  return found;
}

inline std::uint32_t largest_code(int bits) { return 0xffffffffU >> (32 - bits); }

enum class Kind { walk, noise, seldom_changes, few_changes, ramp, extremes, small_numbers, at_the_edge };
inline constexpr Kind all_kinds[] = {Kind::walk, Kind::noise,    Kind::seldom_changes, Kind::few_changes,
                                     Kind::ramp, Kind::extremes, Kind::small_numbers,  Kind::at_the_edge};

/// Returns codes of a kind; `noise` is the number of bits in which a walk changes.
inline Codes codes_of(Kind kind, int bits, int noise, Index count, std::mt19937_64& random) {
  const std::uint64_t largest = largest_code(bits);
  std::uint64_t code = random() & largest;
  Codes codes;
  for (Index i = 0; i < count; ++i) {
    const std::uint64_t draw = random();
    const std::uint64_t step = draw >> (63 - noise) >> 1, half = (std::uint64_t{1} << noise) / 2;
    switch (kind) {
      case Kind::walk:
        code = (code + step - half) & largest;
        break;
      case Kind::noise:
        code = draw & largest;
        break;
      case Kind::seldom_changes:
        code = draw % 3000 == 0 ? draw >> 20 & largest : code;
        break;
      case Kind::few_changes:
        code = draw % 40 == 0 ? (code + (draw >> 20 & 3)) & largest : code;
        break;
      case Kind::ramp:
        code = (code + 1 + (draw & 1)) & largest;
        break;
      case Kind::extremes:
        code = draw % 2 == 0 ? 0 : largest;
        break;
      case Kind::small_numbers:
        code = std::min<std::uint64_t>(draw & 3 & draw >> 8, largest);
        break;
      case Kind::at_the_edge:
        code = std::min(step, largest);
        break;
    }
    codes.push_back(static_cast<std::uint32_t>(code));
  }
  return codes;
}

template <typename To>
std::vector<To> as(const Codes& codes) {
  return {codes.begin(), codes.end()};
}

/// Returns what libaec makes of the codes.
inline ByteVector by_libaec(const Parameters& parameters, const Codes& codes) {
  const auto width = static_cast<std::size_t>(libaec_width(parameters.bits));
  ByteVector octets(codes.size() * width);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const auto narrow = static_cast<std::uint8_t>(codes[i]);
    const auto middle = static_cast<std::uint16_t>(codes[i]);
    std::memcpy(&octets[i * width],
                width == 1   ? static_cast<const void*>(&narrow)
                : width == 2 ? &middle
                             : static_cast<const void*>(&codes[i]),
                width);
  }
  const auto count = static_cast<Index>(codes.size());
  ByteVector out(static_cast<std::size_t>(bound(parameters, count) + libaec_spare));
  LibaecEncoder encoder({usual_flags, static_cast<unsigned>(parameters.block),
                         static_cast<unsigned>(parameters.interval), parameters.bits});
  const Result<Bytes> length = encoder.encode(octets, true, out);
  EXPECT_TRUE(length.is_ok()) << length.status().text();
  out.resize(length.is_ok() ? static_cast<std::size_t>(*length) : 0);
  return out;
}

/// Encodes, and checks that nothing is written behind the room that bound() asks for.
template <typename Number>
ByteVector encoded_as(const Parameters& parameters, const Codes& codes, Way way) {
  const std::vector<Number> numbers = as<Number>(codes);
  const auto count = static_cast<Index>(codes.size());
  const auto room = static_cast<std::size_t>(bound(parameters, count) + encoder_spare);
  constexpr std::byte untouched{0xa5};
  ByteVector out(room + 64, untouched);
  const Bytes length = Encoder(parameters, way).encode(numbers.data(), count, true, out.data());
  EXPECT_LE(length, bound(parameters, count));
  EXPECT_TRUE(std::all_of(out.begin() + static_cast<std::ptrdiff_t>(room), out.end(),
                          [&](std::byte each) { return each == untouched; }));
  out.resize(static_cast<std::size_t>(length));
  return out;
}

inline ByteVector encoded(const Parameters& parameters, const Codes& codes, Way way) {
  return parameters.bits <= most_narrow_bits ? encoded_as<std::uint16_t>(parameters, codes, way)
                                             : encoded_as<std::uint32_t>(parameters, codes, way);
}

}  // namespace tailrace::entropy::test
