// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <bit>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/cf/found.hpp"
#include "formats/compression/decompressor.hpp"
#include "formats/zarr/filters.hpp"

// The metadata and chunks of Zarr stores of any writer, versions 3 and 2. Nothing here touches storage.
namespace tailrace::zarr {

/// The changes that a writer has made to a chunk, the first one first: it put its dimensions in another
/// order, filtered the elements, made bytes of them, and compressed these or added their sum.
struct Coding {
  std::vector<std::size_t> order;  // the dimensions of the bytes, slowest first; empty: those of the chunk
  std::vector<Filter> filters;
  std::endian endian = std::endian::little;
  struct Step {
    enum class Kind { packed, crc32c, shuffle };
    Kind kind = Kind::packed;
    compression::Packed packed{};
    Bytes element = 1;  // of shuffle, which puts the first bytes of all elements before all second ones
  };
  std::vector<Step> steps;

  /// Returns the bytes of an element behind all filters, or of the widest one between them.
  [[nodiscard]] Bytes stored_element(Bytes element) const {
    return filters.empty() ? element : cf::size_of(filters.back().stored);
  }
  [[nodiscard]] Bytes widest_element(Bytes element) const;
};

/// Returns the type with this name in version 3, or in version 2 without its order; none if it is no number.
[[nodiscard]] cf::Number number_named(std::string_view name);

/// The inner chunks of a shard.
struct Sharding {
  std::vector<Index> chunk;
  Coding index;
  bool index_is_at_end = true;
};

/// An array as its metadata tell it.
struct ReadArray {
  cf::FoundVariable variable;                // without the numbers of its dimensions
  std::vector<std::string> dimension_names;  // empty ones are not told
  std::vector<Index> shape;
  std::vector<Index> chunk;  // of an object: of a shard, if there are some
  std::optional<Sharding> sharding;
  Coding coding;                 // of the innermost chunks
  ByteVector fill;               // one element of the host's byte order
  bool fill_is_missing = false;  // version 2: readers take it for "no value"
  std::string prefix;            // of the names of chunks, with the separator behind it: "c/"
  std::string separator = "/";
  Status refused;  // why its elements are not read

  [[nodiscard]] const std::vector<Index>& inner_chunk() const { return sharding ? sharding->chunk : chunk; }
  /// Returns the name of the object of a chunk in the array's directory.
  [[nodiscard]] std::string object(std::span<const Index> number) const;
  /// Returns the bytes of the innermost chunk, whose elements may be wider between filters.
  [[nodiscard]] Bytes chunk_bytes() const;
  /// Returns how many inner chunks a shard has.
  [[nodiscard]] Index chunks_in_shard() const;
};

/// The most bytes of a chunk, and of an index of a shard.
inline constexpr Bytes most_read_chunk = Bytes{1} << 30;
inline constexpr Index most_in_shard = Index{1} << 20;

/// A node as zarr.json, or .zarray and .zattrs, tell it.
struct ReadNode {
  bool is_array = false;
  ReadArray array;
  std::vector<cf::FoundAttribute> attributes;  // of a group
  std::vector<std::string> members;            // arrays that a group tells of, in their order
  std::vector<std::string> texts;              // and their metadata
};

/// Parses zarr.json of version 3. Code::corrupt names what was expected and what was found.
Result<ReadNode> parse_node(const std::string& text, const std::string& name);
/// Parses .zarray and .zattrs (empty if there is none) of version 2.
Result<ReadNode> parse_array_2(const std::string& zarray, const std::string& zattrs, const std::string& name);
/// Parses .zmetadata of version 2: the members of the group are names of arrays; their texts follow as pairs.
Result<ReadNode> parse_consolidated_2(const std::string& text);

/// Decodes bytes of a chunk into `elements`, of the host's byte order and in C order of the chunk's
/// dimensions. `bytes` is overwritten. Code::corrupt if the bytes are no such chunk.
Status decode_chunk(const Coding& coding, std::span<const Index> chunk, Bytes element, ByteVector& bytes,
                    ByteVector& elements);

/// An inner chunk's place in its shard; nothing if it is not there.
struct ShardIndex {
  std::vector<std::uint64_t> numbers;  // offset and length of each
  [[nodiscard]] std::optional<std::pair<Bytes, Bytes>> at(Index chunk) const;
};
/// Returns the size of the index of a shard as it lies in the object.
Bytes shard_index_bytes(const ReadArray& array);
/// Decodes it. Code::corrupt if its sum is wrong, or if a chunk lies beyond an object of `size` bytes.
Result<ShardIndex> decode_shard_index(const ReadArray& array, ByteVector bytes, Bytes size);

}  // namespace tailrace::zarr
