// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "formats/cf/unpacking.hpp"
#include "formats/variables/names.hpp"
#include "ground/layout/layout.hpp"

namespace tailrace::variables {

/// An array that is stored in chunks of one shape. Chunks at the edge have the whole shape, too.
struct ChunkedArray {
  std::vector<Index> shape;    // slowest dimension first; elements beyond it are fill values
  std::vector<Index> chunk;    // shape of a chunk
  std::vector<Bytes> strides;  // between the elements of a decoded chunk
  ByteVector fill;             // the fill value, in the host's byte order
};

/// Decodes the chunk that begins at element `begin`, into memory of the calling thread. Returns the chunk's
/// elements in the host's byte order, or null if the chunk was never written.
using DecodeChunk = std::function<Result<const std::byte*>(std::span<const Index> begin)>;

/// Returns an array whose decoded chunks hold their elements in C order.
ChunkedArray chunked_array(std::vector<Index> shape, std::vector<Index> chunk, ByteVector fill);

/// Local. Reads the part inside `cut` of one record and stores it in C order at `values`. The record begins
/// at `begin` in the array and extends along the dimensions `plane`. Blocks only in `decode`, which it calls
/// once for each chunk. Returns the number of missing values.
Result<Index> read_chunked(const ChunkedArray& array, std::span<const Index> begin,
                           std::span<const int> plane, const cf::Unpacking& how, const layout::Box& cut,
                           ElementType type, std::byte* values, const DecodeChunk& decode);

}  // namespace tailrace::variables
