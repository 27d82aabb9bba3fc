// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/grib2/reading/front_end.hpp"

#include <algorithm>
#include <map>
#include <string_view>

#include "formats/grib2/codec.hpp"
#include "formats/grib2/edition1/codec.hpp"
#include "formats/grib2/reading/grib_sections.hpp"
#include "ground/base/text.hpp"

#ifdef TAILRACE_HAVE_GRIB
#include "formats/grib2/handle.hpp"
#include "formats/grib2/reading/grib_header.hpp"
#include "formats/grib2/reading/grib_sections.hpp"
#include "formats/grib2/reading/grib_traits.hpp"
#include "formats/grib2/reading/grib_values.hpp"
#include "ground/layout/shape.hpp"
#endif

namespace tailrace::sources {

namespace {

std::string_view text_of(const ByteVector& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// True if a file begins as GRIB of edition 1 or 2 does, or has lines of a bulletin before it.
bool fits_grib(const Opening& opening) {
  // A file that a stream has just begun may have no message yet.
  if (opening.index != nullptr && (opening.index->header.format == grib2::format_name ||
                                   opening.index->header.format == grib2::edition1::format_name))
    return true;
  const std::string_view head = text_of(opening.head);
  if (head.starts_with("GRIB") || find_message(head, false) != head.npos) return true;
  // Lines of a bulletin may stand before the first message.
  if (opening.file == nullptr || opening.size <= head_bytes) return false;
  ByteVector more(static_cast<std::size_t>(longest_gap) + edition_octet + 1);
  const Result<Bytes> got = opening.file->read(more, 0);
  if (!got.is_ok()) return false;
  more.resize(static_cast<std::size_t>(*got));
  return find_message(text_of(more), false) != std::string_view::npos;
}

}  // namespace

#ifdef TAILRACE_HAVE_GRIB

namespace {

/// The fields of one name that ecCodes does not understand.
struct LeftOut {
  std::string name;  // "": ecCodes does not know the name
  std::int64_t count = 0;
  Status first;  // what is wrong with the first of them
};

/// Finds the records of a file, message by message or from the index.
class GribScan {
 public:
  GribScan(const Opening& opening, std::int64_t most)
      : opening_(opening), most_(most), fetch_(fetch_from(*opening.file)) {}

  Result<Inventory> all() {
    Bytes at = 0;
    while (true) {
      const Result<Bytes> next = next_message(fetch_, at, opening_.size);
      TR_TRY(next.status());
      if (*next >= opening_.size) break;
      std::vector<GribField> fields;
      const Result<Bytes> length = read_message(fetch_, *next, opening_.size, fields);
      TR_TRY(length.status());
      for (const GribField& field : fields) TR_TRY(add(field));
      at = *next + *length;
      if (opening_.progress) opening_.progress(at, opening_.size);
    }
    return taken();
  }

  /// Takes the records from the index. The file is read only for the grid: one header for each field.
  Result<Inventory> indexed() {
    streams::IndexContents index = *opening_.index;
    TR_TRY(streams::count_seconds(index));  // as the messages do
    const std::int64_t base = to_seconds(index.header.base, index.header.calendar);
    inventory_.calendar = index.header.calendar;
    std::map<std::int32_t, int> grids;  // by field
    for (const streams::IndexStep& step : index.steps) {
      for (const streams::IndexRecord& each : step.records) {
        const streams::IndexField& field = index.header.fields[static_cast<std::size_t>(each.field)];
        if (!grids.contains(each.field)) {
          const Result<int> grid = grid_of(each.offset, field);
          TR_TRY(grid.status());
          grids[each.field] = *grid;
        }
        TR_TRY(check_room(each.offset));
        inventory_.records.push_back({.field = field.name,
                                      .level_type = field.level_type,
                                      .level = field.levels[static_cast<std::size_t>(each.level)],
                                      .valid = base + step.lead,
                                      .reference = base,
                                      .member = index.header.member.value_or(-1),
                                      .grid = grids[each.field],
                                      .place = {each.offset, each.length, 0, 0}});
      }
    }
    return taken();
  }

 private:
  Status at(const GribField& field, const Status& status) const {
    return status.in(cat("GRIB message at byte ", field.message));
  }

  static std::span<const std::byte> grid_section(const GribField& field, const ByteVector& message) {
    if (field.edition == 1)
      return std::span(message).subspan(8 + static_cast<std::size_t>(field.sections[1].length),
                                        static_cast<std::size_t>(field.sections[2].length));
    std::size_t begin = 16;
    for (int number = 1; number < 3; ++number)
      begin += static_cast<std::size_t>(field.sections[static_cast<std::size_t>(number)].length);
    return std::span(message).subspan(begin, static_cast<std::size_t>(field.sections[3].length));
  }

  Status check_room(Bytes offset) const {
    if (std::ssize(inventory_.records) < most_) return {};
    return {Code::corrupt, cat("GRIB message at byte ", offset, ": expected at most ", most_,
                               " records in a file, got more; the file is damaged, or has to be split")};
  }

  /// Code::corrupt if the headers so far are far longer than the file. All fields of a message share its
  /// headers, but each field reads a copy of its own: a small damaged file could ask for endless work.
  Status check_headers(const GribField& field, Bytes bytes) {
    constexpr Bytes usual = Bytes{256} << 20, of_each_byte = 16;
    headers_bytes_ += bytes;
    if ((headers_bytes_ - usual) / of_each_byte <= opening_.size) return {};
    return {Code::corrupt, cat("GRIB message at byte ", field.message, ", field ", field.number + 1,
                               ": expected headers of at most 256 MiB and ", of_each_byte,
                               " times the file, got more; the file is damaged there")};
  }

  Status add(const GribField& field) {
    TR_TRY(check_room(field.message));
    const Result<ByteVector> message = header_message(fetch_, field);
    TR_TRY(message.status());
    TR_TRY(check_headers(field, std::ssize(*message)));
    Result<Record> record = headers_.describe(*message, grid_section(field, *message));
    if (!record.is_ok()) return leave_out(at(field, record.status()), *message);
    record->place = {field.message, field.length, field.number, 0};
    inventory_.records.push_back(std::move(*record));
    return {};
  }

  /// Notes a field that ecCodes does not understand, and goes on: the other fields stay readable. Errors of
  /// memory and storage are returned.
  Status leave_out(const Status& why, const ByteVector& message) {
    if (why.code() == Code::memory || why.code() == Code::io) return why;
    const std::string name = GribHeaders::name(message);
    const auto known = std::ranges::find(left_out_, name, &LeftOut::name);
    if (known != left_out_.end())
      ++known->count;
    else
      left_out_.push_back({name, 1, why});
    return {};
  }

  Result<int> grid_of(Bytes offset, const streams::IndexField& indexed) {
    std::vector<GribField> fields;
    TR_TRY(read_message(fetch_, offset, opening_.size, fields).status());
    const GribField& field = fields.front();
    const Result<ByteVector> message = header_message(fetch_, field);
    TR_TRY(message.status());
    const Result<int> told = headers_.grid_of(*message, grid_section(field, *message));
    TR_TRY(at(field, told.status()));
    Grid grid = headers_.grids[static_cast<std::size_t>(*told)];
    if (grid.shape == indexed.shape) return *told;
    if (layout::product(grid.shape) != layout::product(indexed.shape))
      return Status(Code::corrupt, cat("GRIB message at byte ", offset, ": expected the grid of '",
                                       indexed.name, "', ", layout::extents(indexed.shape),
                                       ", as the index says, got ", layout::extents(grid.shape)));
    // The program wrote the same points with other dimensions.
    grid.shape = indexed.shape;
    for (std::size_t i = 0; i < headers_.grids.size(); ++i) {
      if (headers_.grids[i].shape == grid.shape && headers_.grids[i].keys == grid.keys)
        return static_cast<int>(i);
    }
    headers_.grids.push_back(std::move(grid));
    return static_cast<int>(headers_.grids.size()) - 1;
  }

  Result<Inventory> taken() {
    if (!left_out_.empty() && inventory_.records.empty()) return left_out_.front().first;
    for (const LeftOut& each : left_out_) {
      const std::string text =
          each.count == 1 ? each.first.text() : cat(each.count, " fields, the first: ", each.first.text());
      inventory_.unread.push_back({each.name, {each.first.code(), text}});
    }
    inventory_.format = "GRIB";
    inventory_.grids = std::move(headers_.grids);
    return std::move(inventory_);
  }

  const Opening& opening_;
  const std::int64_t most_;
  Bytes headers_bytes_ = 0;
  const Fetch fetch_;
  GribHeaders headers_;
  Inventory inventory_;
  std::vector<LeftOut> left_out_;
};

class GribSource final : public Source {
 public:
  GribSource(const Opening& opening, Inventory inventory)
      : path_(opening.path), file_(opening.file), size_(opening.size) {
    for (const Record& record : inventory.records) longest_ = std::max(longest_, record.place[1]);
    inventory_ = std::move(inventory);
  }

  Result<Index> read(const RecordPlace& place, const Grid& grid, const layout::Box& cut, ElementType type,
                     std::byte* values, Scratch& scratch) const override {
    const Bytes offset = place[0], length = place[1];
    const std::int64_t number = place[2];
    Result<Index> missing = guarded([&]() -> Result<Index> {
      if (offset < 0 || length < 0 || offset > size_ - length)
        return Status(Code::corrupt, cat("GRIB message at byte ", offset, ": expected ",
                                         counted(length, "byte"), ", got a file of ", size_));
      scratch.bytes.resize(static_cast<std::size_t>(length + spare_bytes));
      const auto message = std::span(scratch.bytes).first(static_cast<std::size_t>(length));
      const Result<Bytes> got = file_->read(message, offset);
      TR_TRY(got.status());
      if (*got != length)
        return Status(Code::corrupt,
                      cat("GRIB message at byte ", offset, ": expected ", counted(length, "byte"), ", got ",
                          *got, " up to the end of the file; it was cut"));
      std::vector<GribField> fields;
      TR_TRY(read_message(fetch_from(message, offset), offset, offset + length, fields).status());
      if (number < 0 || number >= static_cast<std::int64_t>(fields.size()) || fields[0].length != length)
        return Status(Code::corrupt,
                      cat("GRIB message at byte ", offset, ": expected field ", number + 1, " in ",
                          counted(length, "byte"), ", got ", counted(fields.size(), "field"), " in ",
                          fields[0].length, "; the file has changed since its inventory was made"));
      const Result<Index> decoded = decode_grib(message, fields[static_cast<std::size_t>(number)], grid, cut,
                                                type, values, scratch.decoded);
      TR_TRY(decoded.status().in(cat("GRIB message at byte ", offset)));
      return decoded;
    });
    TR_TRY(missing.status().in(path_));
    return missing;
  }

  /// Packed values are offsets from the record's least value, and both that value and a constant field are a
  /// float32 in the header. (IEEE packing may be float64.)
  [[nodiscard]] bool holds_float32(const RecordPlace&) const override { return true; }
  Result<std::optional<Traits>> traits(const Record& record, const codec::Keys& asked) const override {
    Result<std::optional<Traits>> traits = guarded([&]() -> Result<std::optional<Traits>> {
      const Fetch fetch = fetch_from(*file_);
      std::vector<GribField> fields;
      TR_TRY(read_message(fetch, record.place[0], size_, fields).status());
      const std::int64_t number = record.place[2];
      if (number < 0 || number >= static_cast<std::int64_t>(fields.size()))
        return Status(Code::corrupt, cat("GRIB message at byte ", record.place[0], ": expected field ",
                                         number + 1, ", got ", counted(fields.size(), "field"),
                                         "; the file has changed since its inventory was made"));
      const Result<ByteVector> message = header_message(fetch, fields[static_cast<std::size_t>(number)]);
      TR_TRY(message.status());
      Result<Traits> told = grib_traits(*message, record, asked);
      TR_TRY(told.status().in(cat("GRIB message at byte ", record.place[0])));
      return std::optional(std::move(*told));
    });
    TR_TRY(traits.status().in(path_));
    return traits;
  }

  [[nodiscard]] Bytes scratch_bound(const RecordPlace&, const Grid& grid) const override {
    return longest_ + spare_bytes + decoding_bytes(grid);
  }

 private:
  const std::string path_;
  const std::shared_ptr<storage::File> file_;
  const Bytes size_;
  Bytes longest_ = 0;
};

}  // namespace

Result<Inventory> scan_grib_of(const Opening& opening, std::int64_t most) {
  GribScan scan(opening, most);
  Result<Inventory> inventory = opening.index == nullptr ? scan.all() : scan.indexed();
  TR_TRY(inventory.status().in(opening.path));
  return inventory;
}

namespace {

Result<Inventory> scan_grib(const Opening& opening) { return scan_grib_of(opening, most_records); }

Result<std::shared_ptr<const Source>> make_grib(const Opening& opening, Inventory inventory) {
  return std::shared_ptr<const Source>(std::make_shared<const GribSource>(opening, std::move(inventory)));
}

}  // namespace

#endif

}  // namespace tailrace::sources

namespace tailrace::grib2 {

constinit const sources::FrontEnd front_end{.name = "GRIB",
                                            .sign = sources::Sign::word,
                                            .fits = sources::fits_grib,
#ifdef TAILRACE_HAVE_GRIB
                                            .scan = sources::scan_grib,
                                            .make = sources::make_grib,
                                            .maker = library_text
#endif
};

}  // namespace tailrace::grib2
