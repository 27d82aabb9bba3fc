// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.hpp"
#include "base/status.hpp"
#include "base/types.hpp"
#include "netcdf4/quantise.hpp"

struct libdeflate_compressor;

namespace tailrace::netcdf4 {

/// How a record of one field becomes bytes of a file: cut into chunks of one shape, each through the filters
/// shuffle and deflate or through none. The chunks follow one another; behind them stand the lengths of all
/// (32 bits each, little-endian) if there are several, and then, for statistics since the last output, the
/// lead at which the interval began (64 bits, little-endian).
struct RecordShape {
  std::vector<Index> shape;  // of one record, slowest dimension first
  std::vector<Index> chunk;  // likewise
  Bytes element_size = 0;
  int level = 0;  // of deflate; 0 = no filter
  bool has_interval = false;
  Quantisation quantisation{};
  std::optional<double> missing{};
  ByteVector fill{};  // one element of a chunk beyond the edge, little-endian

  [[nodiscard]] std::vector<Index> chunks() const;  // Returns their number along each dimension.
  [[nodiscard]] Index count() const;
  [[nodiscard]] Bytes chunk_bytes() const;  // Returns the size of one chunk before the filters.
  /// Returns the size of what stands behind the chunks.
  [[nodiscard]] Bytes trailer_bytes() const;
  [[nodiscard]] Bytes bound() const;
  [[nodiscard]] Bytes working_bytes() const;
};

/// The most chunks of one record. The root server keeps 40 bytes of each while it finishes a file.
inline constexpr Index most_chunks = 1 << 16;

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
  ChunkEncoder();
  ~ChunkEncoder();
  ChunkEncoder(ChunkEncoder&&) noexcept;
  /// Appends a record, or nothing if it fails. `values` are of the host's byte order and are overwritten.
  Status encode(const RecordShape& record, std::byte* values, std::int64_t interval_start, ByteVector& out);

 private:
  Status append_chunk(const RecordShape& record, std::span<std::byte> elements, ByteVector& out);
  Status compress(std::span<const std::byte> bytes, int level, ByteVector& out);
  std::span<std::byte> cut_out(const RecordShape& record, const std::vector<Index>& number,
                               const std::byte* values);

  struct Release {
    void operator()(libdeflate_compressor* each) const;
  };
  std::unique_ptr<libdeflate_compressor, Release> compressor_;
  int level_ = -1;  // of the compressor
  ByteVector chunk_, shuffled_;
};

/// Puts the first bytes of all elements before all second ones, and so on, as HDF5's filter does.
void shuffle(std::span<const std::byte> elements, Bytes element_size, ByteVector& out);

}  // namespace tailrace::netcdf4
