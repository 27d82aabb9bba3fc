// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "formats/codec/definition.hpp"
#include "ground/base/types.hpp"

namespace tailrace::compression {

/// How a chunk is compressed. The two of blosc put the first bytes of all elements before all second ones,
/// and so on, and compress each of them (c-blosc); the others take the bytes as they are.
enum class Method { none, deflate /* zlib's format */, gzip, zstd, blosc_lz4, blosc_zstd };

struct Compression {
  Method method = Method::none;
  int level = 0;
  friend bool operator==(const Compression&, const Compression&) = default;
};

/// Returns what a field, or else its stream, asks for by compress=: one of these methods, with its level or
/// without, as "gzip:4". Nothing asked for is the first of the methods.
Result<Compression> asked_for(const codec::FieldDefinition& field, const codec::Keys& stream,
                              std::span<const Method> methods);
/// Returns the words that ask for it.
[[nodiscard]] std::string text_of(const Compression& how);
/// Returns an error if the compress= of a stream is none of these methods.
Status check_asked(const codec::Keys& stream, std::span<const Method> methods);
/// Returns Code::unsupported if this build has no such method, and Code::argument if it takes no chunk of
/// `raw` bytes.
Status check(const Compression& how, Bytes raw);
/// Returns the most bytes that a chunk of `raw` bytes may become.
[[nodiscard]] Bytes bound(const Compression& how, Bytes raw);
/// Returns the bytes that blosc compresses together, or 0 where c-blosc chooses. Its choice for the low
/// levels of zstd, 32 KiB, takes twice the time of a megabyte and compresses less (docs/formats/zarr.md);
/// from level 4 on its blocks are larger, and zstd's search takes longer in still larger ones.
[[nodiscard]] Bytes blosc_block(const Compression& how);
/// Returns the nanoseconds that a byte takes, about.
[[nodiscard]] double cost(Method method);

}  // namespace tailrace::compression
