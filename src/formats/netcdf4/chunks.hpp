// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "formats/cf/chunking.hpp"
#include "formats/cf/quantise.hpp"
#include "formats/compression/compressor.hpp"
#include "ground/base/bytes.hpp"
#include "ground/base/status.hpp"
#include "ground/base/types.hpp"

namespace tailrace::netcdf4 {

/// How a record of one field becomes bytes of a file: cut into chunks of one shape, each through the filters
/// shuffle and deflate or through none. The chunks follow one another; behind them stand the lengths of all
/// (32 bits each, little-endian) if there are several, and then, for statistics since the last output, the
/// lead at which the interval began (64 bits, little-endian).
struct RecordShape : cf::Chunking {
  compression::Compression compression{};
  bool has_interval = false;
  cf::Quantisation quantisation{};
  std::optional<double> missing{};
  ByteVector fill{};  // one element of a chunk beyond the edge, little-endian

  /// Returns the size of what stands behind the chunks.
  [[nodiscard]] Bytes trailer_bytes() const;
  [[nodiscard]] Bytes bound() const;
  [[nodiscard]] Bytes working_bytes() const;
};

/// Returns Code::format if HDF5 cannot hold chunks of this shape, and Code::argument if they are too many.
Status check(const RecordShape& record);

/// The contents of a trailer, which stands behind the chunks of a record.
struct Trailer {
  std::vector<Bytes> lengths;  // of the chunks
  std::int64_t interval_start = 0;
};
/// Returns Code::corrupt if the trailer of a record of `length` bytes contradicts it.
Result<Trailer> read_trailer(const RecordShape& record, std::span<const std::byte> trailer, Bytes length);

/// Encodes records. Each thread has one.
class ChunkEncoder {
 public:
  /// Appends a record, or nothing if it fails. `values` are of the host's byte order and are overwritten.
  Status encode(const RecordShape& record, std::byte* values, std::int64_t interval_start, ByteVector& out);

 private:
  Status append_chunk(const RecordShape& record, std::span<std::byte> elements, ByteVector& out);

  compression::Compressor compressor_;
  cf::Cutter cutter_;
  ByteVector shuffled_;
};

/// Puts the first bytes of all elements before all second ones, and so on, as HDF5's filter does.
void shuffle(std::span<const std::byte> elements, Bytes element_size, ByteVector& out);

}  // namespace tailrace::netcdf4
