// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <span>

#include "ground/base/bytes.hpp"
#include "ground/base/status.hpp"

namespace tailrace::compression {

/// The formats of compressed bytes that are read. Each one tells its end, but for LZ4: its bytes are a block
/// of LZ4 behind four with the number of bytes in it, the least first, as numcodecs writes them.
enum class Packed { zlib, gzip, zstd, blosc, lz4, bzip2 };

/// Returns Code::unsupported, naming what this build lacks, if it does not read the format.
Status check_reads(Packed how);
/// Returns an upper bound of what so many bytes stand for. A few bytes must not cost the memory of a large
/// chunk.
[[nodiscard]] Bytes most_unpacked(Packed how, Bytes packed);

struct DecompressionTables;

/// Decompresses chunks of any writer. Each thread has one. The bytes may be anything.
class Decompressor {
 public:
  Decompressor();
  ~Decompressor();
  Decompressor(Decompressor&&) noexcept;
  /// Fills `out` and returns how many bytes there were. Code::corrupt if the bytes are none of the format, or
  /// more than `out` has.
  Result<Bytes> decompress(Packed how, std::span<const std::byte> bytes, std::span<std::byte> out);

 private:
  std::unique_ptr<DecompressionTables> tables_;
};

}  // namespace tailrace::compression
