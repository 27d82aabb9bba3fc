// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <span>
#include <string>

#include "formats/codec/definition.hpp"
#include "ground/base/types.hpp"

namespace tailrace::compression {

/// The methods of compression. The two of blosc (c-blosc) shuffle first: the first bytes of all elements,
/// then all second bytes, and so on. The others take the bytes as they are.
enum class Method { none, deflate /* zlib's format */, gzip, zstd, blosc_lz4, blosc_zstd };

struct Compression {
  Method method = Method::none;
  int level = 0;
  friend bool operator==(const Compression&, const Compression&) = default;
};

/// Returns the compression that a field, or else its stream, asks for by compress=: one of `methods`, with a
/// level or without, such as "gzip:4". Without compress= it is the first of `methods`, at its usual level.
Result<Compression> asked_for(const codec::FieldDefinition& field, const codec::Keys& stream,
                              std::span<const Method> methods);
/// Returns the value of compress= that asks for this compression.
[[nodiscard]] std::string text_of(const Compression& how);
/// Returns Code::settings if the compress= of a stream is none of `methods`.
Status check_asked(const codec::Keys& stream, std::span<const Method> methods);
/// Returns Code::unsupported if this build lacks the method, and Code::argument if the method takes no chunk
/// of `raw` bytes.
Status check(const Compression& how, Bytes raw);
/// Returns the most bytes that a chunk of `raw` bytes may become.
[[nodiscard]] Bytes bound(const Compression& how, Bytes raw);
/// Returns the size of blosc's blocks, or 0 if c-blosc chooses it. For the low levels of zstd c-blosc would
/// choose 32 KiB, which takes twice the time of 1 MiB and compresses less (docs/formats/zarr.md). From level
/// 4 on it chooses larger blocks, and in still larger ones zstd would search longer.
[[nodiscard]] Bytes blosc_block(const Compression& how);
/// Returns roughly how many nanoseconds the compression of a byte takes.
[[nodiscard]] double cost(Method method);

}  // namespace tailrace::compression
