// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/checkpoint/format.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <type_traits>

#include "engine/arrays/type_text.hpp"
#include "ground/base/checksum.hpp"
#include "ground/base/text.hpp"

namespace tailrace::checkpoint {

namespace {

static_assert(std::endian::native == std::endian::little,
              "the format is little-endian, and so is Packer here");

using Magic = std::array<char, 8>;
constexpr Magic header_magic = {'T', 'R', 'C', 'K', 'P', 'T', '1', '\n'};
constexpr Magic directory_magic = {'T', 'R', 'C', 'K', 'D', 'I', 'R', '1'};
constexpr Magic table_magic = {'T', 'R', 'C', 'K', 'T', 'A', 'B', '1'};
constexpr Magic footer_magic = {'T', 'R', 'C', 'K', 'E', 'N', 'D', '1'};

constexpr std::size_t most_dims = 7;

/// True if values of these types may be written byte by byte: they have no padding.
template <typename... T>
constexpr bool have_no_padding = (std::has_unique_object_representations_v<T> && ...);
static_assert(have_no_padding<SaveId, Extent, PartPlace, Block, layout::Rows>);

/// Fills with zeros up to `size` and puts the checksum of all bytes before it into the last 8 bytes.
ByteVector closed(Packer& packer, Bytes size) {
  ByteVector bytes = packer.take();
  bytes.resize(static_cast<std::size_t>(size) - sizeof(std::uint64_t));
  Packer sum;
  sum.put(checksum(bytes));
  bytes.insert(bytes.end(), sum.bytes().begin(), sum.bytes().end());
  return bytes;
}

bool is_closed(std::span<const std::byte> bytes, Bytes size) {
  if (static_cast<Bytes>(bytes.size()) < size) return false;
  const auto body = bytes.first(static_cast<std::size_t>(size) - sizeof(std::uint64_t));
  Unpacker in(bytes.subspan(body.size()));
  return checksums_match(checksum(body), in.get<std::uint64_t>());
}

Status broken(std::string_view what) { return {Code::corrupt, std::string(what)}; }

/// Reads the length of a list. Sets `good` to false if the bytes that are left cannot hold so many entries of
/// `least` bytes.
std::size_t get_count(Unpacker& in, std::size_t least, bool& good) {
  const auto count = in.get<std::int64_t>();
  good = good && in.ok() && count >= 0 && static_cast<std::size_t>(count) <= in.rest().size() / least;
  return good ? static_cast<std::size_t>(count) : 0;
}

bool are_rows(const std::vector<layout::Rows>& rows) {
  Index total = 0;
  for (const layout::Rows& each : rows) {
    constexpr Index most = std::numeric_limits<Index>::max() / 64;
    if (each.global < 0 || each.count < 1 || each.rows < 1 || each.global > most || each.count > most)
      return false;
    if (each.rows > 1 && each.stride <= each.count) return false;
    if (each.rows > 1 && each.stride > (most - each.global) / each.rows) return false;
    if (each.count > (most - total) / each.rows) return false;
    total += each.count * each.rows;
  }
  return true;
}

}  // namespace

ByteVector encode(const Header& header) {
  Packer out;
  out.put(header_magic).put(header.id).put(header.mode).put(header.parts).put(header.saved_at);
  out.put(header.directory).put(static_cast<std::int32_t>(header.committed ? 1 : 0));
  return closed(out, Header::record);
}

Result<Header> decode_header(std::span<const std::byte> bytes) {
  if (!is_closed(bytes, Header::record)) return broken("no header of a checkpoint, or a torn one");
  Unpacker in(bytes);
  if (in.get<Magic>() != header_magic) return broken("not a checkpoint of this format (TRCKPT1)");
  Header header;
  header.id = in.get<SaveId>();
  header.mode = in.get<Mode>();
  header.parts = in.get<std::int32_t>();
  header.saved_at = in.get<std::int64_t>();
  header.directory = in.get<Extent>();
  header.committed = in.get<std::int32_t>() == 1;
  const Extent& directory = header.directory;
  if ((header.mode != Mode::parallel && header.mode != Mode::local) || header.parts < 1 ||
      directory.offset < Header::size || directory.bytes < 0 || header.id.generation < 1)
    return broken("a header of a checkpoint that contradicts itself");
  if (header.id.generation > Header::most_generation || directory.bytes > Header::most_directory)
    return broken(cat("a header of generation ", header.id.generation, " with a directory of ",
                      counted(directory.bytes, "byte"), ", which no checkpoint has"));
  return header;
}

std::string ItemInfo::text() const {
  std::string text = type_text(type);
  if (shape.empty()) return text + " scalar";
  std::string extents;
  for (const Index extent : shape) extents += cat(extents.empty() ? "" : ", ", extent);
  return cat(text, " (", extents, ")");
}

Index ItemInfo::elements() const {
  Index count = 1;
  for (const Index extent : shape) count *= extent;
  return count;
}

bool PartPlace::is_possible() const {
  constexpr Bytes most = std::numeric_limits<Bytes>::max() / 4;
  return offset >= 0 && bytes >= Footer::size && offset < most && bytes < most;
}

namespace {

/// Added to the number of the type of an item that has elements in no part.
constexpr std::int32_t unowned_flag = 0x10000;

std::int32_t type_in_directory(const ItemInfo& item) {
  return static_cast<std::int32_t>(item.type) | (item.has_unowned ? unowned_flag : 0);
}

}  // namespace

ByteVector encode(const Directory& directory) {
  Packer out;
  out.put(directory_magic).put(directory.id).put(static_cast<std::int64_t>(directory.items.size()));
  for (const ItemInfo& item : directory.items)
    out.put_text(item.name).put(type_in_directory(item)).put_list(std::span<const Index>(item.shape));
  out.put(static_cast<std::int64_t>(directory.parts.size()));
  for (const PartPlace& part : directory.parts) out.put(part);
  out.put_bytes(directory.outputs);
  return out.take();
}

Result<Directory> decode_directory(std::span<const std::byte> bytes) {
  Unpacker in(bytes);
  if (in.get<Magic>() != directory_magic) return broken("no directory of a checkpoint");
  Directory directory;
  directory.id = in.get<SaveId>();
  bool good = true;
  const std::size_t items = get_count(in, 20, good);
  for (std::size_t i = 0; good && i < items; ++i) {
    ItemInfo item{in.get_text(), {}, {}};
    const auto type = in.get<std::int32_t>();
    item.type = static_cast<ElementType>(type & ~unowned_flag);
    item.has_unowned = (type & unowned_flag) != 0;
    item.shape = in.get_list<Index>();
    Index elements = 1;
    good = in.ok() && size_of(item.type) != 0 && item.shape.size() <= most_dims;
    const Index most = std::numeric_limits<Index>::max() / std::max<Bytes>(64, 4 * size_of(item.type));
    for (const Index extent : item.shape) {
      good = good && extent >= 0 && (extent == 0 || elements <= most / extent);
      if (good) elements *= extent;
    }
    directory.items.push_back(std::move(item));
  }
  const std::size_t parts = get_count(in, 16, good);
  for (std::size_t i = 0; good && i < parts; ++i) {
    directory.parts.push_back(in.get<PartPlace>());
    good = in.ok() && directory.parts.back().is_possible();
  }
  const auto outputs = in.get_bytes();
  if (!good || !in.ok()) return broken("a directory of a checkpoint that contradicts itself");
  directory.outputs.assign(outputs.begin(), outputs.end());
  return directory;
}

ByteVector encode(const Table& table) {
  Packer out;
  out.put(table_magic).put(table.id).put(table.part).put(table.parts);
  out.put(table.coding).put(std::int32_t{0}).put(table.block_bytes);
  out.put(static_cast<std::int64_t>(table.maps.size()));
  for (const auto& rows : table.maps) out.put_list(std::span<const layout::Rows>(rows));
  out.put(static_cast<std::int64_t>(table.items.size()));
  for (const PartItem& item : table.items) {
    out.put(item.item).put(item.map).put(item.offset).put(item.bytes);
    for (const Block& block : item.blocks) out.put(block);
  }
  return out.take();
}

namespace {

/// Reads an item's entry. Returns true if all of it is within its bounds.
bool get_item(Unpacker& in, const Table& table, Bytes part_bytes, PartItem& item) {
  item = {in.get<std::int32_t>(), in.get<std::int32_t>(), in.get<Bytes>(), in.get<Bytes>(), {}};
  if (!in.ok() || item.item < 0 || item.map < 0 || static_cast<std::size_t>(item.map) >= table.maps.size())
    return false;
  if (item.offset < 0 || item.bytes < 0 || item.offset > part_bytes || item.bytes > part_bytes - item.offset)
    return false;
  const Bytes blocks = align(item.bytes, table.block_bytes) / table.block_bytes;
  if (static_cast<std::size_t>(blocks) > in.rest().size() / sizeof(Block)) return false;
  Bytes left = item.bytes;
  for (Bytes b = 0; b < blocks; ++b) {
    const auto block = in.get<Block>();
    const Bytes raw = std::min(left, table.block_bytes);
    if (block.stored < 0 || block.stored > raw || (table.coding == Coding::raw && block.stored != raw))
      return false;
    left -= raw;
    item.blocks.push_back(block);
  }
  return true;
}

}  // namespace

Result<Table> decode_table(std::span<const std::byte> bytes, Bytes part_bytes) {
  Unpacker in(bytes);
  if (in.get<Magic>() != table_magic) return broken("no table of a part");
  Table table;
  table.id = in.get<SaveId>();
  table.part = in.get<std::int32_t>();
  table.parts = in.get<std::int32_t>();
  table.coding = in.get<Coding>();
  in.get<std::int32_t>();
  table.block_bytes = in.get<Bytes>();
  constexpr Bytes most_block = Bytes{1} << 30;
  bool good = in.ok() && table.block_bytes >= 16 && table.block_bytes <= most_block &&
              table.block_bytes % 16 == 0 && table.coding >= Coding::raw && table.coding <= Coding::zstd;
  const std::size_t maps = get_count(in, 8, good);
  for (std::size_t i = 0; good && i < maps; ++i) {
    table.maps.push_back(in.get_list<layout::Rows>());
    good = in.ok() && are_rows(table.maps.back());
  }
  const std::size_t items = get_count(in, 24, good);
  Bytes left = part_bytes;  // items do not lie over one another
  for (std::size_t i = 0; good && i < items; ++i) {
    PartItem item;
    good = get_item(in, table, part_bytes, item) && item.bytes <= left;
    if (good) left -= item.bytes;
    table.items.push_back(std::move(item));
  }
  if (!good || !in.ok()) return broken("a table of a part that contradicts itself");
  return table;
}

ByteVector encode(const Footer& footer) {
  Packer out;
  out.put(footer_magic).put(footer.id).put(footer.part).put(footer.parts).put(footer.table);
  return closed(out, Footer::size);
}

Result<Footer> decode_footer(std::span<const std::byte> bytes) {
  if (!is_closed(bytes, Footer::size)) return broken("no footer of a part, or a torn one");
  Unpacker in(bytes);
  if (in.get<Magic>() != footer_magic) return broken("no footer of a part");
  return Footer{in.get<SaveId>(), in.get<std::int32_t>(), in.get<std::int32_t>(), in.get<Extent>()};
}

std::uint64_t block_checksum(std::span<const std::byte> stored, const SaveId& id, std::int32_t part,
                             std::int32_t item, std::int64_t block) {
  Packer place;
  place.put(id).put(part).put(item).put(block);
  return checksum(stored, checksum(place.bytes()));
}

}  // namespace tailrace::checkpoint
