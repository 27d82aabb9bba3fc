// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "faces/checkpoint/format.hpp"

namespace tailrace::checkpoint {

/// The option compress=: "none", "lz4", "zstd" or "zstd:LEVEL".
struct Compression {
  Coding coding = Coding::raw;
  int level = 0;  // of zstd
};
/// Returns Code::settings for any other word, and Code::unsupported for one that this build lacks.
Result<Compression> parse_compression(std::string_view text);

/// Makes blocks smaller. It first groups the bytes of the elements by significance, because neighbouring
/// values differ in the low ones. One thread at a time.
class Compressor {
 public:
  explicit Compressor(Compression compression);
  ~Compressor();
  /// Returns the compressed block, valid until the next call, or nothing if it would not be smaller.
  std::span<const std::byte> compress(std::span<const std::byte> raw, Bytes element);

 private:
  struct Zstd;
  Compression compression_;
  std::unique_ptr<Zstd> zstd_;
  ByteVector grouped_;
  ByteVector out_;
};

/// Undoes compress(): fills `raw`, whose size is the block's. `scratch` is reused. Returns Code::corrupt if
/// the bytes are no such block.
Status decompress(Coding coding, std::span<const std::byte> stored, Bytes element, std::span<std::byte> raw,
                  ByteVector& scratch);

}  // namespace tailrace::checkpoint
