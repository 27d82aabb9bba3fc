// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/sources/inventory_file.hpp"

#include <bit>
#include <cstring>
#include <map>

#include "ground/base/checksum.hpp"
#include "ground/base/text.hpp"
#include "ground/layout/shape.hpp"

namespace tailrace::sources {

namespace {

constexpr std::string_view mark = "TRINVENT";
/// Raise it when the layout of the bytes changes, and also when a scan of the same file finds other records
/// than before: kept inventories are then made again.
constexpr std::uint32_t version = 5;
constexpr std::size_t checksum_bytes = 8;
constexpr std::size_t length_at = 16;

static_assert(std::endian::native == std::endian::little,
              "the format is little-endian, and so is Packer here");

void put_text(Packer& out, std::string_view text) {
  out.put(static_cast<std::uint32_t>(text.size()));
  for (const char c : text) out.put(c);
}

std::string get_text(Unpacker& in) {
  const auto length = in.get<std::uint32_t>();
  if (!in.ok() || length > in.rest().size()) {
    in = Unpacker({});
    in.get<char>();  // fails, as will every later get
    return {};
  }
  std::string text(reinterpret_cast<const char*>(in.rest().data()), length);
  in = Unpacker(in.rest().subspan(length));
  return text;
}

/// Gives each different text a number, in the order of first use.
class Texts {
 public:
  std::uint32_t number(const std::string& text) {
    const auto [found, is_new] = numbers_.try_emplace(text, static_cast<std::uint32_t>(texts_.size()));
    if (is_new) texts_.push_back(&found->first);
    return found->second;
  }
  void put(Packer& out) const {
    out.put(static_cast<std::uint32_t>(texts_.size()));
    for (const std::string* text : texts_) put_text(out, *text);
  }

 private:
  std::map<std::string, std::uint32_t> numbers_;
  std::vector<const std::string*> texts_;
};

void put_grid(Packer& out, const Grid& grid) {
  out.put(static_cast<std::uint32_t>(grid.shape.size()));
  for (const Index extent : grid.shape) out.put(extent);
  out.put(static_cast<std::uint32_t>(grid.keys.size()));
  for (const auto& [key, value] : grid.keys) {
    put_text(out, key);
    put_text(out, value);
  }
}

Grid get_grid(Unpacker& in) {
  Grid grid;
  const auto dimensions = in.get<std::uint32_t>();
  for (std::uint32_t i = 0; i < dimensions && in.ok(); ++i) grid.shape.push_back(in.get<Index>());
  const auto keys = in.get<std::uint32_t>();
  for (std::uint32_t i = 0; i < keys && in.ok(); ++i) {
    std::string key = get_text(in);
    grid.keys.emplace_back(std::move(key), get_text(in));
  }
  return grid;
}

void put_record(Packer& out, const Record& record, Texts& texts) {
  out.put(texts.number(record.field)).put(texts.number(record.level_type));
  out.put(record.level).put(record.valid).put(record.reference);
  out.put(static_cast<std::int32_t>(record.member)).put(static_cast<std::int32_t>(record.grid));
  for (const std::int64_t part : record.place) out.put(part);
}

Status corrupt(std::string_view what) { return {Code::corrupt, cat("inventory: ", what)}; }

Status get_records(Unpacker& in, Inventory& inventory) {
  std::vector<std::string> texts;
  const auto count = in.get<std::uint32_t>();
  for (std::uint32_t i = 0; i < count && in.ok(); ++i) texts.push_back(get_text(in));
  const auto records = in.get<std::uint64_t>();
  for (std::uint64_t i = 0; i < records && in.ok(); ++i) {
    const auto field = in.get<std::uint32_t>(), level_type = in.get<std::uint32_t>();
    Record record;
    record.level = in.get<double>();
    record.valid = in.get<std::int64_t>();
    record.reference = in.get<std::int64_t>();
    record.member = in.get<std::int32_t>();
    record.grid = in.get<std::int32_t>();
    for (std::int64_t& part : record.place) part = in.get<std::int64_t>();
    if (!in.ok()) break;
    if (field >= texts.size() || level_type >= texts.size() || record.grid < 0 ||
        static_cast<std::size_t>(record.grid) >= inventory.grids.size())
      return corrupt(cat("record ", i, " names a text or a grid that is not there"));
    record.field = texts[field];
    record.level_type = texts[level_type];
    inventory.records.push_back(std::move(record));
  }
  return {};
}

void put_unread(Packer& out, const std::vector<Unread>& unread) {
  out.put(static_cast<std::uint32_t>(unread.size()));
  for (const Unread& each : unread) {
    put_text(out, each.field);
    out.put(static_cast<std::int32_t>(each.why.code()));
    put_text(out, each.why.text());
  }
}

Status get_unread(Unpacker& in, Inventory& inventory) {
  const auto count = in.get<std::uint32_t>();
  for (std::uint32_t i = 0; i < count && in.ok(); ++i) {
    std::string field = get_text(in);
    const auto code = in.get<std::int32_t>();
    if (in.ok() &&
        (code <= static_cast<std::int32_t>(Code::ok) || code > static_cast<std::int32_t>(Code::corrupt)))
      return corrupt(cat("code number ", code, " of an error does not exist"));
    inventory.unread.push_back({std::move(field), {static_cast<Code>(code), get_text(in)}});
  }
  return {};
}

}  // namespace

ByteVector encode_inventory(const KeptInventory& kept) {
  Packer out;
  for (const char c : mark) out.put(c);
  out.put(version).put(std::uint32_t{0}).put(std::uint64_t{0});
  out.put(kept.identity.size).put(kept.identity.modified).put(kept.identity.changed).put(kept.identity.inode);
  put_text(out, kept.path);
  put_text(out, kept.inventory.format);
  put_text(out, kept.maker);
  out.put(static_cast<std::int32_t>(kept.inventory.calendar));
  out.put(static_cast<std::uint32_t>(kept.inventory.grids.size()));
  for (const Grid& grid : kept.inventory.grids) put_grid(out, grid);
  Texts texts;
  Packer records;
  for (const Record& record : kept.inventory.records) put_record(records, record, texts);
  texts.put(out);
  out.put(static_cast<std::uint64_t>(kept.inventory.records.size()));
  ByteVector bytes = out.take();
  bytes.insert(bytes.end(), records.bytes().begin(), records.bytes().end());
  Packer unread;
  put_unread(unread, kept.inventory.unread);
  bytes.insert(bytes.end(), unread.bytes().begin(), unread.bytes().end());
  const std::uint64_t length = bytes.size() + checksum_bytes;
  std::memcpy(bytes.data() + length_at, &length, sizeof length);
  const std::uint64_t sum = checksum(bytes);
  bytes.resize(length);
  std::memcpy(bytes.data() + length - checksum_bytes, &sum, sizeof sum);
  return bytes;
}

Result<KeptInventory> decode_inventory(std::span<const std::byte> bytes) {
  constexpr std::size_t least = length_at + 8 + checksum_bytes;
  if (bytes.size() < least || std::memcmp(bytes.data(), mark.data(), mark.size()) != 0)
    return corrupt("the bytes do not begin as one");
  if (const auto length = Unpacker(bytes.subspan(length_at)).get<std::uint64_t>(); length != bytes.size())
    return corrupt(cat("expected ", length, " bytes, got ", bytes.size()));
#ifndef TAILRACE_FUZZING
  if (checksum(bytes.first(bytes.size() - checksum_bytes)) !=
      Unpacker(bytes.last(checksum_bytes)).get<std::uint64_t>())
    return corrupt("its checksum is wrong");
#endif
  if (const auto stated = Unpacker(bytes.subspan(mark.size())).get<std::uint32_t>(); stated != version)
    return Status(Code::unsupported,
                  cat("inventory: version ", stated, "; this Tailrace reads version ", version));
  Unpacker in(bytes.subspan(length_at + 8, bytes.size() - length_at - 8 - checksum_bytes));
  KeptInventory kept;
  kept.identity.size = in.get<Bytes>();
  kept.identity.modified = in.get<std::int64_t>();
  kept.identity.changed = in.get<std::int64_t>();
  kept.identity.inode = in.get<std::uint64_t>();
  kept.path = get_text(in);
  kept.inventory.format = get_text(in);
  kept.maker = get_text(in);
  const auto calendar = in.get<std::int32_t>();
  if (!is_calendar(calendar)) return corrupt(cat("calendar number ", calendar, " does not exist"));
  kept.inventory.calendar = static_cast<Calendar>(calendar);
  const auto grids = in.get<std::uint32_t>();
  for (std::uint32_t i = 0; i < grids && in.ok(); ++i) {
    kept.inventory.grids.push_back(get_grid(in));
    const Status shape = layout::check_shape(kept.inventory.grids.back().shape);
    if (in.ok() && !shape.is_ok()) return corrupt(shape.text());
  }
  TR_TRY(get_records(in, kept.inventory));
  TR_TRY(get_unread(in, kept.inventory));
  if (!in.ok() || !in.rest().empty()) return corrupt("its parts do not add up to its length");
  return kept;
}

}  // namespace tailrace::sources
