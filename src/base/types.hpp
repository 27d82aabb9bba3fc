// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tailrace {

/// A count of, or a position among, the elements of a global array.
using Index = std::int64_t;
/// A count of, or a position among, bytes (file offsets included).
using Bytes = std::int64_t;

/// The type of an array's elements. The values are part of the file formats: append only.
enum class ElementType : std::int32_t {
  i8 = 1,
  i16 = 2,
  i32 = 3,
  i64 = 4,
  f32 = 5,
  f64 = 6,
  c64 = 7,
  c128 = 8,
  byte = 9,
};

/// Returns the size of one element in bytes, or 0 for a value that is no element type.
constexpr Bytes size_of(ElementType type) noexcept {
  switch (type) {
    case ElementType::i8:
    case ElementType::byte:
      return 1;
    case ElementType::i16:
      return 2;
    case ElementType::i32:
    case ElementType::f32:
      return 4;
    case ElementType::i64:
    case ElementType::f64:
    case ElementType::c64:
      return 8;
    case ElementType::c128:
      return 16;
  }
  return 0;
}

constexpr std::string_view name_of(ElementType type) noexcept {
  switch (type) {
    case ElementType::i8:
      return "int8";
    case ElementType::i16:
      return "int16";
    case ElementType::i32:
      return "int32";
    case ElementType::i64:
      return "int64";
    case ElementType::f32:
      return "float32";
    case ElementType::f64:
      return "float64";
    case ElementType::c64:
      return "complex64";
    case ElementType::c128:
      return "complex128";
    case ElementType::byte:
      return "byte";
  }
  return "unknown";
}

}  // namespace tailrace
