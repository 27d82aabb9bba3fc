// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "ground/base/types.hpp"

namespace tailrace::operations {

/// Calls body with a zero of the C++ type of `type`, one of the real types.
template <typename Body>
void with_type(ElementType type, const Body& body) {
  switch (type) {
    case ElementType::i8:
      return body(std::int8_t{});
    case ElementType::i16:
      return body(std::int16_t{});
    case ElementType::i32:
      return body(std::int32_t{});
    case ElementType::i64:
      return body(std::int64_t{});
    case ElementType::byte:
      return body(std::uint8_t{});
    case ElementType::u16:
      return body(std::uint16_t{});
    case ElementType::u32:
      return body(std::uint32_t{});
    case ElementType::u64:
      return body(std::uint64_t{});
    case ElementType::f32:
      return body(float{});
    default:
      return body(double{});
  }
}

template <typename T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// Returns true if the type can hold the value once it is rounded.
template <typename T>
bool holds(double value) {
  if constexpr (std::is_floating_point_v<T>) {
    return true;
  } else {
    // The largest float64 below 2^63 is an int64. 2^63 itself is not.
    constexpr double most = static_cast<double>(std::numeric_limits<T>::max() / 2 + 1) * 2;
    return value >= static_cast<double>(std::numeric_limits<T>::min()) && value < most;
  }
}

}  // namespace tailrace::operations
