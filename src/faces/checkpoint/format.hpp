// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// The contents of a checkpoint's files: docs/formats/checkpoint.md. Bytes in, bytes out; nothing here touches
// storage.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/bytes.hpp"
#include "ground/base/uuid.hpp"
#include "ground/layout/layout.hpp"

namespace tailrace::checkpoint {

/// The place of the ranks' parts.
enum class Mode : std::int32_t {
  parallel = 0,  // one after another in the copy's file
  local = 1,     // each in a file of its own, beside the copy's file
};

/// Names one save of one run. Header, directory, parts and blocks of the save carry it, so that none of
/// another save passes for them.
struct SaveId {
  Uuid run;
  std::int64_t generation = 0;
  friend bool operator==(const SaveId&, const SaveId&) = default;
};

/// A range of a file, and the checksum of its bytes.
struct Extent {
  Bytes offset = 0;
  Bytes bytes = 0;
  std::uint64_t checksum = 0;
};

/// The beginning of a copy's file. The first rank writes it twice: with `committed` false when it seals its
/// part, and with true once all parts are durable. The second write is the commit.
struct Header {
  static constexpr Bytes size = 4096;   // parts begin behind it
  static constexpr Bytes record = 128;  // the bytes in use: within one sector, so never torn
  // Far beyond any real save. A header with a higher generation is not believed: any program may have written
  // the file.
  static constexpr std::int64_t most_generation = std::int64_t{1} << 48;
  static constexpr Bytes most_directory = Bytes{1} << 30;

  SaveId id;
  Mode mode = Mode::parallel;
  bool committed = false;
  std::int32_t parts = 0;
  std::int64_t saved_at = 0;  // seconds since 1970
  Extent directory;           // in this file
};
/// The mark says that a checkpoint has written the file, even if the header is damaged: the mark lies in
/// another sector than the header, and only the first save into a file writes it.
constexpr Bytes mark_offset = 512;
constexpr std::string_view file_mark = "TRCKPT1\n";

ByteVector encode(const Header& header);
/// Returns Code::corrupt if the bytes are no header.
Result<Header> decode_header(std::span<const std::byte> bytes);

struct ItemInfo {
  std::string name;
  ElementType type = ElementType::f64;
  std::vector<Index> shape;  // empty: a scalar
  bool has_unowned = false;  // no part has the elements that no rank owned when it was saved

  [[nodiscard]] std::string text() const;  // "float64 (10, 20)"
  [[nodiscard]] Index elements() const;
  friend bool operator==(const ItemInfo&, const ItemInfo&) = default;
};

/// The place of a part: in the copy's file or, in the local mode, in a file of its own.
struct PartPlace {
  Bytes offset = 0;
  Bytes bytes = 0;

  [[nodiscard]] bool is_possible() const;
};

/// The contents of a whole copy. The first rank writes the directory behind all parts.
struct Directory {
  SaveId id;
  std::vector<ItemInfo> items;
  std::vector<PartPlace> parts;
  ByteVector outputs;  // positions of the session's streams and files
};
ByteVector encode(const Directory& directory);
Result<Directory> decode_directory(std::span<const std::byte> bytes);

/// The coding of a block in its file.
enum class Coding : std::int32_t { raw = 0, lz4 = 1, zstd = 2 };

/// At most `block_bytes` of an item's packed elements. A compressed block lies where the raw one would.
struct Block {
  std::uint64_t checksum = 0;  // of the bytes as stored
  Bytes stored = 0;
};

/// One rank's elements of one item.
struct PartItem {
  std::int32_t item = 0;  // its number in the directory
  std::int32_t map = 0;   // number in the table of the map that names its elements
  Bytes offset = 0;       // of its first block, counted from the part's beginning
  Bytes bytes = 0;        // of its elements
  std::vector<Block> blocks;
};

/// The contents of a part, written at its end.
struct Table {
  SaveId id;
  std::int32_t part = 0;
  std::int32_t parts = 0;
  Coding coding = Coding::raw;
  Bytes block_bytes = 0;
  std::vector<std::vector<layout::Rows>> maps;  // in packed order; items with equal maps share one
  std::vector<PartItem> items;
  PartPlace place;  // not in the file's table: the directory tells it
};
ByteVector encode(const Table& table);
/// Returns Code::corrupt if anything in the table is impossible for a part of `part_bytes`. Every number of
/// the result is within its bounds.
Result<Table> decode_table(std::span<const std::byte> bytes, Bytes part_bytes);

/// The last bytes of a part. The part is whole if its footer is there, and the table that the footer names.
struct Footer {
  static constexpr Bytes size = 96;
  SaveId id;
  std::int32_t part = 0;
  std::int32_t parts = 0;
  Extent table;  // from the part's beginning
};
ByteVector encode(const Footer& footer);
Result<Footer> decode_footer(std::span<const std::byte> bytes);

/// The checksum of a block also covers the block's place, so that no other block passes for it.
std::uint64_t block_checksum(std::span<const std::byte> stored, const SaveId& id, std::int32_t part,
                             std::int32_t item, std::int64_t block);

/// True if the checksums are equal. In the build of a fuzzer always true: a fuzzer would hardly ever guess a
/// checksum, and the code behind the check is to meet any bytes.
constexpr bool checksums_match([[maybe_unused]] std::uint64_t found, [[maybe_unused]] std::uint64_t written) {
#ifdef TAILRACE_FUZZING
  return true;
#else
  return found == written;
#endif
}

/// Within a part, offsets are multiples of `item_alignment`; within a file, offsets of parts are multiples of
/// `part_alignment`.
inline constexpr Bytes item_alignment = 64;
inline constexpr Bytes part_alignment = 4096;
inline constexpr Bytes default_block_bytes = Bytes{1} << 20;
constexpr Bytes align(Bytes offset, Bytes alignment) {
  return (offset + alignment - 1) / alignment * alignment;
}

}  // namespace tailrace::checkpoint
