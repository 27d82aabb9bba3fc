// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <span>
#include <vector>

#include "formats/codec/definition.hpp"
#include "ground/base/bytes.hpp"
#include "ground/base/status.hpp"
#include "ground/base/types.hpp"

namespace tailrace::cf {

/// How a record is cut into chunks of one shape. If the shape does not divide the record, the last chunks
/// reach beyond its edge.
struct Chunking {
  std::vector<Index> shape;  // of one record, slowest dimension first
  std::vector<Index> chunk;  // shape of one chunk
  Bytes element_size = 0;

  [[nodiscard]] std::vector<Index> chunks() const;  // Returns the number of chunks along each dimension.
  [[nodiscard]] Index count() const;                // Returns the number of all chunks.
  [[nodiscard]] Bytes chunk_bytes() const;          // Returns the size of one chunk.
};

/// The most chunks of one record. The root of a stream keeps some 40 bytes for each chunk.
inline constexpr Index most_chunks = 1 << 16;

/// Returns the shape of chunks that a field asks for by chunks=, such as "100x200": one number for each
/// dimension of `shape`, a record in the file. Without chunks= a record is one chunk.
Result<std::vector<Index>> chunk_of(const codec::FieldDefinition& field, const std::vector<Index>& shape);
/// Returns Code::argument if a record has more than most_chunks chunks.
Status check_count(const Chunking& record);

/// Cuts records into their chunks. Each thread has a cutter of its own.
class Cutter {
 public:
  /// Returns chunk `number` (in C order) of the record `values`. Beyond the record's edge the chunk is filled
  /// with the element `fill`. The result is valid until the next call. If the record is one chunk, the result
  /// is `values` itself.
  std::span<std::byte> chunk(const Chunking& record, Index number, std::span<const std::byte> fill,
                             std::span<std::byte> values);

 private:
  ByteVector chunk_;
};

}  // namespace tailrace::cf
