// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <cstdint>
#include <cstring>

#include "ground/base/byte_order.hpp"
#include "ground/layout/copy_runs.hpp"
#include "ground/layout/memory.hpp"

namespace tailrace::layout {
namespace {

template <typename Element>
void widen(std::span<const Rows> rows, const std::byte* bytes, double* record) {
  for (const Rows& entry : rows)
    for (Index r = 0; r < entry.rows; ++r) {
      double* __restrict to = record + entry.global + r * entry.stride;
      for (Index i = 0; i < entry.count; ++i, bytes += sizeof(Element)) {
        // A piece lies in memory as it was packed, not aligned for its type.
        Element element;
        std::memcpy(&element, bytes, sizeof element);
        to[i] = static_cast<double>(element);
      }
    }
}

}  // namespace

void place_rows(std::span<const Rows> all, const std::byte* piece, Bytes element, std::byte* record) {
  for (const Rows& rows : all) {
    std::byte* const at = record + rows.global * element;
    const Bytes stride = rows.stride * element;
    if (rows.count == 1 &&
        is_size_of_number(element)) {  // scattered elements: unstructured grids, sections with a stride
      with_size(element, [&](auto size) {
        for (Index r = 0; r < rows.rows; ++r) std::memcpy(at + r * stride, piece + r * size, size);
      });
      piece += rows.rows * element;
      continue;
    }
    const Bytes length = rows.count * element;
    for (Index r = 0; r < rows.rows; ++r, piece += length) copy_run(at + r * stride, piece, length);
  }
}

void fill_rows(std::span<const Rows> all, std::span<const std::byte> value, std::byte* record) {
  const auto element = static_cast<Bytes>(value.size());
  const auto fill = [&](auto size) {
    for (const Rows& rows : all)
      for (Index r = 0; r < rows.rows; ++r) {
        std::byte* const at = record + (rows.global + r * rows.stride) * size;
        for (Index i = 0; i < rows.count; ++i)
          std::memcpy(at + i * size, value.data(), static_cast<std::size_t>(size));
      }
  };
  if (is_size_of_number(element))
    with_size(element, fill);
  else  // most texts
    fill(element);
}

void place_rows_reversed(std::span<const Rows> all, const std::byte* piece, Bytes element, Bytes scalar,
                         std::byte* record) {
  for (const Rows& rows : all) {
    const Bytes length = rows.count * element;
    for (Index r = 0; r < rows.rows; ++r, piece += length)
      copy_reversed(record + (rows.global + r * rows.stride) * element, piece, length, scalar);
  }
}

void place_rows_as_f64(std::span<const Rows> rows, const std::byte* piece, ElementType type, double* record) {
  switch (type) {
    case ElementType::i8:
      return widen<std::int8_t>(rows, piece, record);
    case ElementType::i16:
      return widen<std::int16_t>(rows, piece, record);
    case ElementType::i32:
      return widen<std::int32_t>(rows, piece, record);
    case ElementType::i64:
      return widen<std::int64_t>(rows, piece, record);
    case ElementType::byte:
      return widen<std::uint8_t>(rows, piece, record);
    case ElementType::u16:
      return widen<std::uint16_t>(rows, piece, record);
    case ElementType::u32:
      return widen<std::uint32_t>(rows, piece, record);
    case ElementType::u64:
      return widen<std::uint64_t>(rows, piece, record);
    case ElementType::f32:
      return widen<float>(rows, piece, record);
    default:
      return place_rows(rows, piece, sizeof(double), reinterpret_cast<std::byte*>(record));
  }
}

}  // namespace tailrace::layout
