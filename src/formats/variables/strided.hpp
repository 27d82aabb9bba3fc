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
  Bytes offset = 0;            // of the first element
  std::vector<Bytes> strides;  // distance from one element to the next, for each dimension, slowest first
  std::endian order = std::endian::big;
};

/// The most bytes that one call reads into memory, unless a single element is larger.
inline constexpr Bytes most_bytes_at_once = Bytes{16} << 20;

/// Returns success if the box lies inside the shape and the type is not complex; otherwise Code::argument.
Status check_cut(const std::vector<Index>& shape, const layout::Box& cut, ElementType type);
/// Returns the strides of a record of this shape whose elements lie side by side.
[[nodiscard]] std::vector<Bytes> strides_of(const std::vector<Index>& shape, Bytes element);
/// Returns the number of bytes from the first to the last element of a box, both included.
[[nodiscard]] Bytes span_of(const Strided& where, std::span<const Index> extents, Bytes element);

/// Returns an upper bound of the bytes that read_strided uses in Scratch, for any part of a record of this
/// shape.
[[nodiscard]] Bytes strided_bound(const Strided& record, std::span<const Index> shape, Bytes element);

/// Local. Blocks on storage. Reads the part of a record inside `cut`, and stores it in C order at `values`.
/// The caller has checked `cut` with check_cut. Elements that lie close together are read in one call.
/// Returns the number of missing values. Code::corrupt if the file is too short; an error of storage is
/// returned as it is.
Result<Index> read_strided(storage::File& file, const Strided& record, const cf::Unpacking& how,
                           const layout::Box& cut, ElementType type, std::byte* values, Scratch& scratch);
/// Local. As read_strided, for elements in memory, in the host's byte order. `strides` are multiples of the
/// size of an element.
Index unpack_strided(const cf::Unpacking& how, const std::byte* elements, std::span<const Bytes> strides,
                     std::span<const Index> extents, std::span<const Bytes> value_strides, ElementType type,
                     std::byte* values);

}  // namespace tailrace::variables
