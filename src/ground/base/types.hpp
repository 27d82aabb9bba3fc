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

/// The type of an array's elements. The values are part of the file formats: append only. The value
/// text_types + n, up to n = most_text, stands for texts of n bytes each (text_type_of()).
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

inline constexpr std::int32_t text_types = 4096, most_text = 4096;

constexpr bool is_text(ElementType type) noexcept {
  const auto bytes = static_cast<std::int64_t>(type) - text_types;
  return bytes > 0 && bytes <= most_text;
}

/// Returns the type of texts of so many bytes, from 1 to most_text.
constexpr ElementType text_type_of(Bytes bytes) noexcept {
  return static_cast<ElementType>(text_types + static_cast<std::int32_t>(bytes));
}

/// Returns the size of one element in bytes, or 0 for a value that is no element type.
constexpr Bytes size_of(ElementType type) noexcept {
  return is_text(type) ? static_cast<Bytes>(type) - text_types : info_of(type).size;
}

/// Returns the size of the numbers of which an element consists, which a byte order concerns: a complex
/// number has two, and a text has one byte for each.
constexpr Bytes scalar_size_of(ElementType type) noexcept {
  if (is_text(type)) return 1;
  return type == ElementType::c64 || type == ElementType::c128 ? size_of(type) / 2 : size_of(type);
}

constexpr std::string_view name_of(ElementType type) noexcept {
  return is_text(type) ? "text" : info_of(type).name;
}

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
