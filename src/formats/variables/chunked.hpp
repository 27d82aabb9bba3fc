// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "formats/cf/unpacking.hpp"
#include "formats/variables/names.hpp"
#include "ground/layout/layout.hpp"

namespace tailrace::variables {

/// An array that lies in chunks of one shape. Those at the edge have the whole shape, too.
struct ChunkedArray {
  std::vector<Index> shape;    // slowest dimension first; elements beyond are fill values
  std::vector<Index> chunk;    // likewise
  std::vector<Bytes> strides;  // between the elements of a decoded chunk
  ByteVector fill;             // one element of the host's byte order
};

/// Decodes the chunk with this first element into the memory of a thread. Returns its elements in the host's
/// byte order, or null if it was never written.
using DecodeChunk = std::function<Result<const std::byte*>(std::span<const Index> begin)>;

/// Returns an array whose decoded chunks have their elements in C order.
ChunkedArray chunked_array(std::vector<Index> shape, std::vector<Index> chunk, ByteVector fill);

/// Local. Reads the part inside of `cut` of one record, and blocks only in `decode`: it begins at `begin` in
/// the array, and has the dimensions `plane` of it. Stores it in C order. Returns how many values are
/// missing. Each chunk is decoded once.
Result<Index> read_chunked(const ChunkedArray& array, std::span<const Index> begin,
                           std::span<const int> plane, const cf::Unpacking& how, const layout::Box& cut,
                           ElementType type, std::byte* values, const DecodeChunk& decode);

}  // namespace tailrace::variables
