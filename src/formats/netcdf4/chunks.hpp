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

/// How a record of one field becomes bytes of a file. The record is cut into chunks of one shape, and each
/// chunk goes through the filters shuffle and deflate, or through none. The chunks follow one another. A
/// trailer follows them: if there are several chunks, the lengths of all (32 bits each, little-endian); for
/// statistics since the last output, also the lead at which the interval began (64 bits, little-endian).
struct RecordShape : cf::Chunking {
  compression::Compression compression{};
  bool has_interval = false;
  cf::Quantisation quantisation{};
  std::optional<double> missing{};
  ByteVector fill{};  // one element of a chunk beyond the edge, little-endian

  /// Returns the size of the trailer.
  [[nodiscard]] Bytes trailer_bytes() const;
  /// Returns an upper bound of the size of an encoded record.
  [[nodiscard]] Bytes bound() const;
  /// Returns the memory that a ChunkEncoder needs beside its input and output.
  [[nodiscard]] Bytes working_bytes() const;
};

/// Returns Code::format if HDF5 cannot hold chunks of this shape, and Code::argument if a record has too many
/// chunks.
Status check(const RecordShape& record);

/// The contents of a record's trailer.
struct Trailer {
  std::vector<Bytes> lengths;  // of the chunks
  std::int64_t interval_start = 0;
};
/// Reads the trailer of a record of `length` bytes. If there is one chunk, its length follows from `length`.
/// Returns Code::corrupt if the trailer contradicts `length`.
Result<Trailer> read_trailer(const RecordShape& record, std::span<const std::byte> trailer, Bytes length);

/// Encodes records. Each thread has an encoder of its own.
class ChunkEncoder {
 public:
  /// Appends a record to `out`, or nothing if it fails. `values` are in the host's byte order, and are
  /// overwritten.
  Status encode(const RecordShape& record, std::byte* values, std::int64_t interval_start, ByteVector& out);
  /// Returns the bits that the last record has kept, if they depend on its values.
  [[nodiscard]] std::optional<codec::KeptBits> kept_bits() const { return kept_bits_; }

 private:
  Status append_chunk(const RecordShape& record, std::span<std::byte> elements, ByteVector& out);

  compression::Compressor compressor_;
  cf::Cutter cutter_;
  ByteVector shuffled_;
  std::optional<codec::KeptBits> kept_bits_;
};

}  // namespace tailrace::netcdf4
