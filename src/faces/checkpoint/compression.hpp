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
  /// The level of zstd. Level 1 is faster than most storage; higher ones gain little on floating-point
  /// numbers.
  int level = 1;
  friend bool operator==(const Compression&, const Compression&) = default;
};
/// Reads the value of compress=. Returns Code::settings for any other word, and Code::unsupported for a
/// method that this build lacks.
Result<Compression> parse_compression(std::string_view text);

/// Returns the size of the elements by which the bytes of a block are grouped: a block may end within a text.
inline Bytes grouped_size_of(ElementType type) { return is_text(type) ? 1 : size_of(type); }

/// Compresses blocks. Before that it groups the bytes of the elements by significance, because neighbouring
/// values differ in their low bytes. One thread at a time.
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

/// Undoes compress(): fills `raw`, which has the size of the raw block. `scratch` is working memory, used
/// again by the next call. Returns Code::corrupt if `stored` is no block of this coding, and
/// Code::unsupported if this build lacks the coding.
Status decompress(Coding coding, std::span<const std::byte> stored, Bytes element, std::span<std::byte> raw,
                  ByteVector& scratch);

}  // namespace tailrace::checkpoint
