// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <span>
#include <vector>

#include "formats/codec/definition.hpp"
#include "ground/base/bytes.hpp"
#include "ground/base/status.hpp"
#include "ground/base/types.hpp"

namespace tailrace::cf {

/// How a record is cut into chunks of one shape. Chunks at an edge reach beyond it if the shape does not fit.
struct Chunking {
  std::vector<Index> shape;  // of one record, slowest dimension first
  std::vector<Index> chunk;  // likewise
  Bytes element_size = 0;

  [[nodiscard]] std::vector<Index> chunks() const;  // Returns their number along each dimension.
  [[nodiscard]] Index count() const;
  [[nodiscard]] Bytes chunk_bytes() const;  // Returns the size of one chunk.
};

/// The most chunks of one record. The root of a stream keeps some 40 bytes of each.
inline constexpr Index most_chunks = 1 << 16;

/// Returns the shape of the chunks that a field asks for by chunks=, as "100x200": one number for each
/// dimension of a record in the file. Without it a record is one chunk.
Result<std::vector<Index>> chunk_of(const codec::FieldDefinition& field, const std::vector<Index>& shape);
/// Returns Code::argument if there are more than most_chunks.
Status check_count(const Chunking& record);

/// Cuts records into their chunks. Each thread has one.
class Cutter {
 public:
  /// Returns a chunk, numbered in C order, of a record. Beyond the edge it is filled with the element `fill`.
  /// It is valid until the next call; a chunk that is the whole record is the record itself.
  std::span<std::byte> chunk(const Chunking& record, Index number, std::span<const std::byte> fill,
                             std::span<std::byte> values);

 private:
  ByteVector chunk_;
};

}  // namespace tailrace::cf
