// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace tailrace {

/// A number of elements of a global array, or the position of one element.
using Index = std::int64_t;
/// A number of bytes, or the position of one byte; also an offset in a file.
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
  byte = 9,  // also uint8
  u16 = 10,
  u32 = 11,
  u64 = 12,
};

struct ElementInfo {
  std::string_view name;
  Bytes size = 0;
};

/// One row for each value of ElementType. Row 0 is for values that are no element type.
inline constexpr ElementInfo element_infos[] = {
    {"unknown", 0}, {"int8", 1},    {"int16", 2},     {"int32", 4},       {"int64", 8},
    {"float32", 4}, {"float64", 8}, {"complex64", 8}, {"complex128", 16}, {"byte", 1},
    {"uint16", 2},  {"uint32", 4},  {"uint64", 8}};

constexpr const ElementInfo& info_of(ElementType type) noexcept {
  const auto row = static_cast<std::size_t>(type);
  return element_infos[row < std::size(element_infos) ? row : 0];
}

/// Returns the size of one element in bytes, or 0 for a value that is no element type.
constexpr Bytes size_of(ElementType type) noexcept { return info_of(type).size; }

constexpr std::string_view name_of(ElementType type) noexcept { return info_of(type).name; }

constexpr bool is_complex(ElementType type) noexcept {
  return type == ElementType::c64 || type == ElementType::c128;
}

constexpr bool is_unsigned(ElementType type) noexcept {
  return type >= ElementType::byte && type <= ElementType::u64;
}

constexpr bool is_integer(ElementType type) noexcept {
  return (type >= ElementType::i8 && type <= ElementType::i64) || is_unsigned(type);
}

/// Returns true if `wide`, a type of integers, has every value that `narrow`, another one, has.
constexpr bool has_all_of(ElementType wide, ElementType narrow) noexcept {
  if (is_unsigned(wide) == is_unsigned(narrow)) return size_of(wide) >= size_of(narrow);
  return !is_unsigned(wide) && size_of(wide) > size_of(narrow);
}

}  // namespace tailrace
