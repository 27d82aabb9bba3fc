// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <bit>
#include <span>
#include <vector>

#include "formats/cf/unpacking.hpp"
#include "formats/variables/names.hpp"
#include "ground/layout/layout.hpp"

namespace tailrace::variables {

/// Elements at regular distances, in a file or in memory.
struct Strided {
  Bytes offset = 0;            // of the first one
  std::vector<Bytes> strides;  // from one to the next, along each dimension, slowest first
  std::endian order = std::endian::big;
};

/// No read takes more bytes into memory, unless one element has more.
inline constexpr Bytes most_bytes_at_once = Bytes{16} << 20;

/// Returns Code::argument unless the box lies inside of the shape, and the values are f32 or f64.
Status check_cut(const std::vector<Index>& shape, const layout::Box& cut, ElementType type);
/// Returns the strides of a record of this shape whose elements follow one another.
[[nodiscard]] std::vector<Bytes> strides_of(const std::vector<Index>& shape, Bytes element);
/// Returns the bytes from the first to the last element of a box, both included.
[[nodiscard]] Bytes span_of(const Strided& where, std::span<const Index> extents, Bytes element);

/// Returns the most bytes that read_strided takes in Scratch for any part of a record of this shape.
[[nodiscard]] Bytes strided_bound(const Strided& record, std::span<const Index> shape, Bytes element);

/// Local. Reads the part of a record inside `cut`, which check_cut has let pass, and stores it in C order.
/// Blocks until storage has given it. Elements that lie close together are read at once. Returns how many are
/// missing. Code::corrupt if the file ends before; an error of storage is returned as it is.
Result<Index> read_strided(storage::File& file, const Strided& record, const cf::Unpacking& how,
                           const layout::Box& cut, ElementType type, std::byte* values, Scratch& scratch);
/// Does the same with elements of the host's byte order in memory. `strides` are multiples of an element.
Index unpack_strided(const cf::Unpacking& how, const std::byte* elements, std::span<const Bytes> strides,
                     std::span<const Index> extents, std::span<const Bytes> value_strides, ElementType type,
                     std::byte* values);

}  // namespace tailrace::variables
