// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "checkpoint/format.hpp"

namespace tailrace::checkpoint {

/// What the option compress= says: "none", "lz4", "zstd" or "zstd:LEVEL".
struct Compression {
  Coding coding = Coding::raw;
  int level = 0;  // of zstd
};
/// Code::settings for what is no such word, Code::unsupported for what this build has not.
Result<Compression> parse_compression(std::string_view text);

/// Makes blocks smaller. Before that the bytes of the elements are grouped by significance, as neighbouring
/// values differ in the low ones. One thread at a time.
class Compressor {
 public:
  explicit Compressor(Compression compression);
  ~Compressor();
  /// The block, smaller, valid until the next call; empty if it would not be smaller.
  std::span<const std::byte> compress(std::span<const std::byte> raw, Bytes element);

 private:
  struct Zstd;
  Compression compression_;
  std::unique_ptr<Zstd> zstd_;
  ByteVector grouped_;
  ByteVector out_;
};

/// The way back: fills `raw`, whose size is the block's. `scratch` is reused. Code::corrupt if the bytes are
/// no such block.
Status decompress(Coding coding, std::span<const std::byte> stored, Bytes element, std::span<std::byte> raw,
                  ByteVector& scratch);

}  // namespace tailrace::checkpoint
