// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <array>
#include <span>
#include <vector>

#include "formats/codec/codec.hpp"
#include "formats/compression/compression.hpp"
#include "ground/base/bytes.hpp"
#include "ground/base/status.hpp"

// The head of a file stands before its first step. It begins with room for the superblock of HDF5. Then
// follow the definitions of the stream, from which a later run or another program can make the ending of the
// file (docs/formats/netcdf4.md).
namespace tailrace::netcdf4 {

/// The methods that compress= may name, the default first.
inline constexpr std::array<compression::Method, 2> methods{compression::Method::deflate,
                                                            compression::Method::none};
/// The room for the superblock. Until the file is finished, the room holds a text that says so.
inline constexpr Bytes superblock_room = 64;

/// The definitions of a stream. Georeferences have only their coordinates, because `prepared` holds the
/// grids.
struct Definitions {
  codec::StreamDefinition stream;
  struct Field {
    codec::FieldDefinition definition;
    ByteVector prepared;
    /// The place of the values of a field without time, in bytes from the begin of the head. decode_head sets
    /// it; 0: the head has no values of the field.
    Bytes values_at = 0;
  };
  std::vector<Field> fields;
};

[[nodiscard]] ByteVector encode_head(const Definitions& definitions);
/// Returns the definitions in a head. Code::corrupt if the bytes are no head or a damaged one, and
/// Code::unsupported if another version of Tailrace wrote it.
Result<Definitions> decode_head(std::span<const std::byte> head);
/// Returns the bytes that the room for the superblock holds until the file is finished.
[[nodiscard]] codec::Patch unfinished();

}  // namespace tailrace::netcdf4
