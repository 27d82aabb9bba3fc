// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <span>

#include "ground/base/bytes.hpp"
#include "ground/base/status.hpp"

namespace tailrace::compression {

/// The formats of compressed bytes that are read. lz4 is the format of numcodecs: the number of decompressed
/// bytes (4 bytes, little-endian), and then a block of LZ4, which does not tell its own end.
enum class Packed { zlib, gzip, zstd, blosc, lz4, bzip2 };

/// Returns Code::unsupported if this build does not read the format. The error names the library to install.
Status check_reads(Packed how);
/// Returns an upper bound of the decompressed size of `packed` bytes. With it callers need not allocate a
/// large chunk for a few damaged bytes.
[[nodiscard]] Bytes most_unpacked(Packed how, Bytes packed);

struct DecompressionTables;

/// Decompresses chunks of any writer, which may be damaged. Each thread has a decompressor of its own.
class Decompressor {
 public:
  Decompressor();
  ~Decompressor();
  Decompressor(Decompressor&&) noexcept;
  /// Decompresses `bytes` into the front of `out`, and returns the number of decompressed bytes.
  /// Code::corrupt if `bytes` are not of this format, or hold more than `out` has room for.
  Result<Bytes> decompress(Packed how, std::span<const std::byte> bytes, std::span<std::byte> out);

 private:
  std::unique_ptr<DecompressionTables> tables_;
};

}  // namespace tailrace::compression
