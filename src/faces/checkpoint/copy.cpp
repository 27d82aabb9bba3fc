// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/checkpoint/copy.hpp"

#include <algorithm>
#include <set>

#include "faces/checkpoint/compression.hpp"
#include "faces/checkpoint/coverage.hpp"
#include "ground/base/checksum.hpp"
#include "ground/base/text.hpp"

namespace tailrace::checkpoint {

namespace {

using FileHandle = std::unique_ptr<storage::File>;

Status corrupt(const std::string& path, std::string_view what) {
  return {Code::corrupt, cat(path, ": ", what)};
}

/// Reads a range. Returns an error unless all of its bytes are there.
Status read_whole(storage::File& file, const std::string& path, std::span<std::byte> out, Bytes offset,
                  std::string_view what) {
  const Result<Bytes> got = file.read(out, offset);
  TR_TRY(got.status());
  if (*got == static_cast<Bytes>(out.size())) return {};
  return corrupt(path, cat("ends within ", what));
}

Result<ByteVector> read_extent(storage::File& file, const std::string& path, const Extent& extent, Bytes at,
                               std::string_view what) {
  // A damaged file may name any size. Check the size before memory is allocated for it.
  const Result<Bytes> size = file.size();
  TR_TRY(size.status());
  if (extent.bytes < 0 || extent.offset < 0 || extent.bytes > *size ||
      extent.offset > *size - extent.bytes - at)
    return corrupt(path, cat("ends before its ", what));
  ByteVector bytes(static_cast<std::size_t>(extent.bytes));
  TR_TRY(read_whole(file, path, bytes, at + extent.offset, what));
  if (!checksums_match(checksum(bytes), extent.checksum))
    return corrupt(path, cat("its ", what, " is damaged"));
  return bytes;
}

Result<Header> header_in(storage::File& file, const std::string& path) {
  ByteVector bytes(Header::record);
  TR_TRY(read_whole(file, path, bytes, 0, "its header"));
  Result<Header> header = decode_header(bytes);
  if (!header.is_ok()) return header.status().in(path);
  return header;
}

Status belongs(const std::string& path, const SaveId& id, const SaveId& wanted, std::string_view what) {
  if (id == wanted) return {};
  return corrupt(path, cat("its ", what, " belongs to generation ", id.generation, " of run ", id.run.text(),
                           ", and not to generation ", wanted.generation, " of run ", wanted.run.text()));
}

/// Counts the elements that a map names. Returns -1 unless all of them are below `most`.
Index count_of(const std::vector<layout::Rows>& rows, Index most) {
  Index count = 0;
  for (const layout::Rows& each : rows) {
    const Index end = each.global + (each.rows - 1) * (each.rows > 1 ? each.stride : 0) + each.count;
    if (end > most) return -1;
    count += each.count * each.rows;
  }
  return count;
}

/// Checks that the part has only known items, and only elements that the items have.
Status check_elements(const Copy& copy, const Table& table) {
  const auto& items = copy.directory.items;
  for (const PartItem& share : table.items) {
    const auto number = static_cast<std::size_t>(share.item);
    if (number >= items.size())
      return corrupt(copy.path, cat("part ", table.part, " has an item that is unknown"));
    const Index count = count_of(table.maps[static_cast<std::size_t>(share.map)], items[number].elements());
    if (count < 0 || share.bytes != count * size_of(items[number].type))
      return corrupt(copy.path, cat("part ", table.part, " has other elements of ", items[number].name,
                                    " than there are"));
  }
  return {};
}

/// Checks that all parts together have as many elements as the items.
Status count_elements(const Copy& copy) {
  const auto& items = copy.directory.items;
  std::vector<Index> missing;
  for (const ItemInfo& item : items) missing.push_back(item.elements());
  for (const Table& table : copy.tables) {
    for (const PartItem& share : table.items) {
      const auto number = static_cast<std::size_t>(share.item);
      missing[number] -= share.bytes / size_of(items[number].type);
    }
  }
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i].has_unowned ? missing[i] < 0 : missing[i] != 0)
      return corrupt(copy.path, cat(counted(missing[i], "element"), " of ", items[i].name,
                                    " are in no part, or in two"));
  }
  return {};
}

/// A part that has elements of an item, and the number of the map in its table that names them. Items of one
/// layout have the same shares.
using Share = std::pair<std::size_t, std::int32_t>;

std::vector<std::vector<Share>> shares_of_items(const Copy& copy) {
  std::vector<std::vector<Share>> shares(copy.directory.items.size());
  for (std::size_t part = 0; part < copy.tables.size(); ++part) {
    for (const PartItem& share : copy.tables[part].items)
      shares[static_cast<std::size_t>(share.item)].emplace_back(part, share.map);
  }
  return shares;
}

/// Checks that every element of every item is in exactly one part.
Status check_shares(const Copy& copy) {
  TR_TRY(count_elements(copy));
  // A limit to the work: if the file is no checkpoint, the check must not run for ever. The groups of any
  // layout interleave far less often.
  std::int64_t runs = std::int64_t{1} << 25;
  for (const Table& table : copy.tables) {
    for (const auto& map : table.maps) runs += 4 * static_cast<std::int64_t>(map.size());
  }
  const std::vector<std::vector<Share>> shares = shares_of_items(copy);
  std::set<std::pair<Index, std::vector<Share>>> good;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const ItemInfo& item = copy.directory.items[i];
    if (!good.emplace(item.elements(), shares[i]).second) continue;
    std::vector<layout::Rows> groups;
    for (const auto& [part, map] : shares[i]) {
      const auto& rows = copy.tables[part].maps[static_cast<std::size_t>(map)];
      groups.insert(groups.end(), rows.begin(), rows.end());
    }
    const std::optional<Misplaced> wrong =
        find_misplaced(std::move(groups), item.elements(), runs, item.has_unowned);
    if (wrong)
      return corrupt(copy.path, cat("element ", wrong->element, " of ", item.name,
                                    wrong->twice ? " is there twice" : " is in no part"));
  }
  return {};
}

}  // namespace

int Copy::find(std::string_view name) const {
  const auto item = std::ranges::find(directory.items, name, &ItemInfo::name);
  return item != directory.items.end() ? static_cast<int>(item - directory.items.begin()) : -1;
}

std::string part_path(const std::string& path, Mode mode, int part) {
  if (mode == Mode::parallel) return path;
  std::string number = std::to_string(part);
  if (number.size() < 5) number.insert(0, 5 - number.size(), '0');
  return cat(path, ".r", number);
}

Result<std::string> file_beginning(storage::File& file) {
  std::string bytes(static_cast<std::size_t>(mark_offset) + file_mark.size(), '\0');
  const Result<Bytes> got = file.read(std::as_writable_bytes(std::span(bytes)), 0);
  TR_TRY(got.status());
  bytes.resize(static_cast<std::size_t>(*got));
  return bytes;
}

bool has_mark(std::string_view beginning) {
  return std::ssize(beginning) > mark_offset && beginning.ends_with(file_mark);
}

Result<Header> read_header(storage::Target& target, const std::string& path) {
  Result<FileHandle> file = target.open(path, storage::OpenMode::read);
  TR_TRY(file.status());
  return header_in(**file, path);
}

namespace {

Result<Copy> directory_in(storage::File& file, const std::string& path) {
  const Result<Header> header = header_in(file, path);
  TR_TRY(header.status());
  Copy copy{path, *header, {}, {}};
  const Result<ByteVector> bytes = read_extent(file, path, header->directory, 0, "directory");
  TR_TRY(bytes.status());
  Result<Directory> directory = decode_directory(*bytes);
  if (!directory.is_ok()) return directory.status().in(path);
  copy.directory = std::move(*directory);
  TR_TRY(belongs(path, copy.directory.id, header->id, "directory"));
  if (copy.directory.parts.size() != static_cast<std::size_t>(header->parts))
    return corrupt(path, cat("its directory has ", counted(copy.directory.parts.size(), "part"),
                             " and its header ", header->parts));
  return copy;
}

}  // namespace

Result<Copy> read_directory(storage::Target& target, const std::string& path) {
  const Result<FileHandle> file = target.open(path, storage::OpenMode::read);
  TR_TRY(file.status());
  return directory_in(**file, path);
}

Result<Copy> read_copy(storage::Target& target, const std::string& path) {
  Result<FileHandle> file = target.open(path, storage::OpenMode::read);
  TR_TRY(file.status());
  Result<Copy> copy = directory_in(**file, path);
  TR_TRY(copy.status());
  CopyReader reader(target, *copy, std::move(*file));
  for (std::int32_t part = 0; part < copy->header.parts; ++part) {
    Result<Table> table = reader.table(part, copy->directory.parts[static_cast<std::size_t>(part)]);
    TR_TRY(table.status());
    copy->tables.push_back(std::move(*table));
  }
  TR_TRY(check_shares(*copy));
  return copy;
}

Status commit_copy(storage::Target& target, Copy& copy) {
  for (std::int32_t part = 0; copy.header.mode == Mode::local && part < copy.header.parts; ++part)
    TR_TRY(storage::sync_file(target, part_path(copy.path, copy.header.mode, part)));
  TR_TRY(storage::sync_file(target, copy.path));
  TR_TRY(target.sync_directory_of(copy.path));
  Header header = copy.header;
  header.committed = true;
  const Result<FileHandle> file = target.open(copy.path, storage::OpenMode::existing);
  TR_TRY(file.status());
  TR_TRY((*file)->write(encode(header), 0));
  TR_TRY((*file)->sync());
  copy.header = header;
  return (*file)->close();
}

ByteVector pack(const Copy& copy) {
  Packer out;
  out.put_text(copy.path).put_bytes(encode(copy.header)).put_bytes(encode(copy.directory));
  for (const journal::UndoName& undo : copy.undo)
    out.put_text(undo.path).put(undo.generation).put(undo.key).put(undo.number);
  return out.take();
}

Result<Copy> unpack_copy(std::span<const std::byte> bytes) {
  Unpacker in(bytes);
  Copy copy;
  copy.path = in.get_text();
  const Result<Header> header = decode_header(in.get_bytes());
  TR_TRY(header.status());
  copy.header = *header;
  Result<Directory> directory = decode_directory(in.get_bytes());
  TR_TRY(directory.status());
  copy.directory = std::move(*directory);
  while (in.ok() && !in.rest().empty()) {
    copy.undo.push_back(
        {in.get_text(), in.get<std::int64_t>(), in.get<std::uint64_t>(), in.get<std::int64_t>()});
  }
  return copy;
}

Result<storage::File*> CopyReader::open(const std::string& path) {
  if (const auto held = files_.find(path); held != files_.end()) return held->second.get();
  Result<FileHandle> file = target_.open(path, storage::OpenMode::read);
  TR_TRY(file.status());
  // In the local mode each part has a file of its own. The files may be too many to keep all of them open.
  if (files_.size() == 8) files_.clear();
  return (files_[path] = std::move(*file)).get();
}

/// Reads the places alone. They stand one after another in the directory; only the outputs follow them. The
/// directory's checksum is not checked again: the footer of each part shows whether its place is right.
Result<std::vector<PartPlace>> CopyReader::places(std::int32_t first, std::int32_t count) {
  std::vector<PartPlace> places(static_cast<std::size_t>(count));
  if (count == 0) return places;
  const Result<storage::File*> file = open(copy_.path);
  TR_TRY(file.status());
  constexpr auto size = static_cast<Bytes>(sizeof(PartPlace));
  const Extent& directory = copy_.header.directory;
  const Bytes behind = static_cast<Bytes>(sizeof(std::int64_t) + copy_.directory.outputs.size());
  const Bytes begin = directory.offset + directory.bytes - behind - size * copy_.header.parts;
  TR_TRY(read_whole(**file, copy_.path, std::as_writable_bytes(std::span(places)), begin + size * first,
                    "its directory"));
  if (std::ranges::all_of(places, &PartPlace::is_possible)) return places;
  return corrupt(copy_.path, "its directory has changed while it was read");
}

Result<Table> CopyReader::table(std::int32_t part, const PartPlace& place) {
  const std::string path = part_path(copy_.path, copy_.header.mode, part);
  const Result<storage::File*> file = open(path);
  TR_TRY(file.status());
  ByteVector end(Footer::size);
  TR_TRY(read_whole(**file, path, end, place.offset + place.bytes - Footer::size,
                    cat("the footer of part ", part)));
  const Result<Footer> footer = decode_footer(end);
  if (!footer.is_ok()) return footer.status().in(cat(path, ": part ", part));
  TR_TRY(belongs(path, footer->id, copy_.header.id, cat("part ", part)));
  if (footer->part != part || footer->parts != copy_.header.parts) {
    return corrupt(path, cat("part ", footer->part, " of ", footer->parts, " in the place of part ", part,
                             " of ", copy_.header.parts));
  }
  const Result<ByteVector> bytes =
      read_extent(**file, path, footer->table, place.offset, cat("table of part ", part));
  TR_TRY(bytes.status());
  Result<Table> table = decode_table(*bytes, place.bytes);
  if (!table.is_ok()) return table.status().in(path);
  if (table->part != part || table->parts != copy_.header.parts || table->id != copy_.header.id)
    return corrupt(path, cat("the table of part ", part, " is another one's"));
  table->place = place;
  TR_TRY(check_elements(copy_, *table));
  return table;
}

std::string CopyReader::name_of_block(const Table& table, const PartItem& item, std::size_t block) const {
  return cat(part_path(copy_.path, copy_.header.mode, table.part), ": block ", block, " of ",
             copy_.directory.items[static_cast<std::size_t>(item.item)].name, " in part ", table.part);
}

/// Reads a block into `raw`, which may be the caller's own array. Returns an error unless the bytes in `raw`
/// are right.
Status CopyReader::read_block(const Table& table, const PartItem& item, std::size_t block,
                              std::span<std::byte> raw) {
  const Result<storage::File*> file = open(part_path(copy_.path, copy_.header.mode, table.part));
  TR_TRY(file.status());
  const Block& expected = item.blocks[block];
  const bool is_raw = expected.stored == static_cast<Bytes>(raw.size());
  if (!is_raw) stored_.resize(static_cast<std::size_t>(expected.stored));
  const std::span<std::byte> stored = is_raw ? raw : std::span<std::byte>(stored_);
  const Bytes at = table.place.offset + item.offset + static_cast<Bytes>(block) * table.block_bytes;
  const Result<Bytes> got = (*file)->read(stored, at);
  TR_TRY(got.status());
  if (*got != static_cast<Bytes>(stored.size()) ||
      !checksums_match(
          block_checksum(stored, table.id, table.part, item.item, static_cast<std::int64_t>(block)),
          expected.checksum))
    return {Code::corrupt, cat(name_of_block(table, item, block), " is damaged")};
  if (is_raw) return {};
  const ElementType type = copy_.directory.items[static_cast<std::size_t>(item.item)].type;
  return decompress(table.coding, stored, grouped_size_of(type), raw, scratch_)
      .in(name_of_block(table, item, block));
}

Status CopyReader::read(int item, const layout::TransferMap& wanted, std::byte* base) {
  if (wanted.is_empty()) return {};
  for (const Table& table : copy_.tables) {
    for (const PartItem& share : table.items) {
      if (share.item == item) TR_TRY(read_part_item(table, share, wanted, base));
    }
  }
  return {};
}

Status CopyReader::read_part_item(const Table& table, const PartItem& item, const layout::TransferMap& wanted,
                                  std::byte* base) {
  const Bytes element = size_of(copy_.directory.items[static_cast<std::size_t>(item.item)].type);
  Bytes packed = 0;  // of the next piece
  std::size_t block = 0;
  bool meets = false;
  pieces_.clear();
  const auto deliver = [&]() -> Status {
    const Bytes begin = static_cast<Bytes>(block) * table.block_bytes;
    const Bytes bytes = std::min(table.block_bytes, item.bytes - begin);
    if (meets) {
      const Piece& first = pieces_.front();
      const std::optional<Bytes> memory =
          pieces_.size() == 1 ? wanted.contiguous(first.global, first.global + first.bytes) : std::nullopt;
      if (!memory) block_.resize(static_cast<std::size_t>(bytes));
      std::byte* const raw = memory ? base + *memory : block_.data();
      TR_TRY(read_block(table, item, block, {raw, static_cast<std::size_t>(bytes)}));
      if (!memory) {
        for (const Piece& piece : pieces_)
          wanted.scatter(base, piece.global, piece.global + piece.bytes, raw + (piece.packed - begin));
      }
    }
    pieces_.clear();
    meets = false;
    ++block;
    return {};
  };
  for (const layout::Rows& rows : table.maps[static_cast<std::size_t>(item.map)]) {
    for (Index row = 0; row < rows.rows; ++row) {
      Bytes global = (rows.global + row * rows.stride) * element;
      for (Bytes left = rows.count * element; left > 0;) {
        const Bytes room = static_cast<Bytes>(block + 1) * table.block_bytes - packed;
        const Bytes bytes = std::min(left, room);
        pieces_.push_back({global, bytes, packed});
        meets = meets || (global < wanted.end() && global + bytes > wanted.begin() &&
                          wanted.bytes_in(global, global + bytes) > 0);
        packed += bytes;
        global += bytes;
        left -= bytes;
        if (bytes == room) TR_TRY(deliver());
      }
    }
  }
  if (!pieces_.empty()) TR_TRY(deliver());
  return {};
}

Status CopyReader::check(int part) {
  const Table& table = copy_.tables[static_cast<std::size_t>(part)];
  for (const PartItem& item : table.items) {
    for (std::size_t b = 0; b < item.blocks.size(); ++b) {
      block_.resize(static_cast<std::size_t>(
          std::min(table.block_bytes, item.bytes - static_cast<Bytes>(b) * table.block_bytes)));
      TR_TRY(read_block(table, item, b, block_));
    }
  }
  return {};
}

}  // namespace tailrace::checkpoint
