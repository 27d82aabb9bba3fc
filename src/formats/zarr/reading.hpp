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

// Parses metadata and decodes chunks of Zarr stores of any writer, versions 3 and 2. Nothing here touches
// storage.
namespace tailrace::zarr {

/// The changes that a writer has made to a chunk, in the order in which it made them: it put the dimensions
/// in another order, applied filters to the elements, turned them into bytes, and shuffled or compressed the
/// bytes or added sums.
struct Coding {
  std::vector<std::size_t> order;  // the dimensions as stored, slowest first; empty: as in the chunk
  std::vector<Filter> filters;
  std::endian endian = std::endian::little;
  struct Step {
    enum class Kind { packed, crc32c, shuffle };
    Kind kind = Kind::packed;
    compression::Packed packed{};
    Bytes element = 1;  // of shuffle: the first bytes of all elements, then all second bytes, and so on
  };
  std::vector<Step> steps;

  /// Returns the size of an element behind all filters. Before them it has `element` bytes.
  [[nodiscard]] Bytes stored_element(Bytes element) const {
    return filters.empty() ? element : cf::size_of(filters.back().stored);
  }
  /// Returns the largest size that an element has before, between or behind the filters.
  [[nodiscard]] Bytes widest_element(Bytes element) const;
};

/// Returns the type of numbers with this name: of version 3 ("float32"), or of version 2 without the byte
/// order ("f4"). Number::none if no type has this name.
[[nodiscard]] cf::Number number_named(std::string_view name);

/// The inner chunks of a shard.
struct Sharding {
  std::vector<Index> chunk;
  Coding index;
  bool index_is_at_end = true;
};

/// An array as its metadata describe it.
struct ReadArray {
  cf::FoundVariable variable;                // without the numbers of its dimensions
  std::vector<std::string> dimension_names;  // "" for a dimension without a name
  std::vector<Index> shape;
  std::vector<Index> chunk;  // the shape of an object: of a shard if there are shards
  std::optional<Sharding> sharding;
  Coding coding;                 // of the innermost chunks
  ByteVector fill;               // one element of the host's byte order
  bool fill_is_missing = false;  // version 2: readers take the fill value for "no value"
  std::string prefix;            // of the names of chunks, with the separator behind it: "c/"
  std::string separator = "/";
  Status refused;  // the reason why elements cannot be read; OK if they can

  [[nodiscard]] const std::vector<Index>& inner_chunk() const { return sharding ? sharding->chunk : chunk; }
  /// Returns the name that the object of a chunk has in the array's directory.
  [[nodiscard]] std::string object(std::span<const Index> number) const;
  /// Returns the most bytes that an innermost chunk has while its filters are undone, because elements may be
  /// wider between them.
  [[nodiscard]] Bytes chunk_bytes() const;
  /// Returns how many inner chunks a shard has.
  [[nodiscard]] Index chunks_in_shard() const;
};

/// The most bytes of a chunk that is read.
inline constexpr Bytes most_read_chunk = Bytes{1} << 30;
/// The most chunks of a shard that is read.
inline constexpr Index most_in_shard = Index{1} << 20;

/// A node of a store (an array or a group), from zarr.json or from .zarray and .zattrs.
struct ReadNode {
  bool is_array = false;
  ReadArray array;
  std::vector<cf::FoundAttribute> attributes;  // of a group
  std::vector<std::string> members;            // names of arrays in a group's consolidated metadata
  std::vector<std::string> texts;              // the metadata of these arrays
};

/// Parses zarr.json of version 3. Errors of Code::corrupt name what was expected and what was found.
Result<ReadNode> parse_node(const std::string& text, const std::string& name);
/// Parses .zarray and .zattrs of version 2. `zattrs` is empty if the array has no .zattrs.
Result<ReadNode> parse_array_2(const std::string& zarray, const std::string& zattrs, const std::string& name);
/// Parses .zmetadata of version 2. ReadNode::texts has two texts for each member: its .zarray and its
/// .zattrs.
Result<ReadNode> parse_consolidated_2(const std::string& text);

/// Decodes the bytes of a chunk into `elements`, in the host's byte order and in C order of the chunk's
/// dimensions. `bytes` is overwritten. Code::corrupt if the bytes are no chunk of this coding and shape.
Status decode_chunk(const Coding& coding, std::span<const Index> chunk, Bytes element, ByteVector& bytes,
                    ByteVector& elements);

/// The index of a shard: the places of its inner chunks.
struct ShardIndex {
  std::vector<std::uint64_t> numbers;  // offset and length of each chunk
  /// Returns offset and length of a chunk in the shard, or nothing if the chunk is not there.
  [[nodiscard]] std::optional<std::pair<Bytes, Bytes>> at(Index chunk) const;
};
/// Returns the size of a shard's index in the object, with its sums.
Bytes shard_index_bytes(const ReadArray& array);
/// Decodes the index of a shard. Code::corrupt if its sum is wrong, or if a chunk lies beyond an object of
/// `size` bytes.
Result<ShardIndex> decode_shard_index(const ReadArray& array, ByteVector bytes, Bytes size);

}  // namespace tailrace::zarr
