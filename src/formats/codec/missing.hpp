// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cmath>
#include <cstring>
#include <limits>

#include "ground/base/bytes.hpp"
#include "ground/base/types.hpp"

namespace tailrace::codec {

/// Returns the number by which an array of `type` marks a missing element, if the program marks it by
/// `missing` (the setting missing=). The number can differ: no float32 is 1e20, so an array of float32 holds
/// the nearest one, 100000002004087734272. Compare elements, widened to float64, with this number to find the
/// missing ones. NaN stays NaN.
[[nodiscard]] inline double missing_in(ElementType type, double missing) {
  if (type != ElementType::f32 && type != ElementType::c64) return missing;
  constexpr double most = std::numeric_limits<float>::max();
  // Numbers between `most` and `beyond` round to the largest float32. Numbers from `beyond` on have no
  // float32.
  constexpr double beyond = most + most / (1 << 24) / 2;
  const double size = std::abs(missing);
  if (size > most) return size < beyond ? std::copysign(most, missing) : missing;
  return static_cast<double>(static_cast<float>(missing));
}

/// Returns one element of `type` that holds `missing`, in the host's byte order; of a complex type both parts
/// hold it. Returns nothing if no element of the type does: integers hold whole numbers in their range.
[[nodiscard]] inline ByteVector missing_element(ElementType type, double missing) {
  ByteVector out;
  if (is_text(type)) out.resize(static_cast<std::size_t>(size_of(type)));  // an empty text
  const auto put = [&](auto value, int parts = 1) {
    out.resize(sizeof value * static_cast<std::size_t>(parts));
    for (int i = 0; i < parts; ++i)
      std::memcpy(out.data() + static_cast<std::size_t>(i) * sizeof value, &value, sizeof value);
  };
  const auto put_integer = [&]<typename T>(T) {
    // The least number is exact as a double. The one behind the greatest is 2^n, and exact as well.
    constexpr double least = static_cast<double>(std::numeric_limits<T>::min());
    constexpr double beyond = 2 * static_cast<double>(std::numeric_limits<T>::max() / 2 + 1);
    if (missing >= least && missing < beyond && std::trunc(missing) == missing) put(static_cast<T>(missing));
  };
  const double held = missing_in(type, missing);
  const bool is_float = !std::isfinite(missing) || std::abs(held) <= std::numeric_limits<float>::max();
  switch (type) {
    case ElementType::i8:
      put_integer(std::int8_t{});
      break;
    case ElementType::i16:
      put_integer(std::int16_t{});
      break;
    case ElementType::i32:
      put_integer(std::int32_t{});
      break;
    case ElementType::i64:
      put_integer(std::int64_t{});
      break;
    case ElementType::byte:
      put_integer(std::uint8_t{});
      break;
    case ElementType::u16:
      put_integer(std::uint16_t{});
      break;
    case ElementType::u32:
      put_integer(std::uint32_t{});
      break;
    case ElementType::u64:
      put_integer(std::uint64_t{});
      break;
    case ElementType::f32:
    case ElementType::c64:
      if (is_float) put(static_cast<float>(held), type == ElementType::c64 ? 2 : 1);
      break;
    case ElementType::f64:
    case ElementType::c128:
      put(missing, type == ElementType::c128 ? 2 : 1);
      break;
  }
  return out;
}

}  // namespace tailrace::codec
