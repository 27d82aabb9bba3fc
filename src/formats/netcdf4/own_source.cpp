// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause

#include <algorithm>
#include <bit>

#include "formats/netcdf4/codec.hpp"
#include "formats/netcdf4/front_end.hpp"
#include "formats/netcdf4/reader.hpp"
#include "formats/variables/chunked.hpp"
#include "formats/variables/own_records.hpp"
#include "formats/variables/strided.hpp"
#include "ground/base/byte_order.hpp"
#include "ground/base/text.hpp"

namespace tailrace::netcdf4 {

using namespace variables;

namespace {

/// How the records of a field in a file of our own are read.
struct OwnChunks {
  netcdf4::RecordShape record;
  netcdf4::Dataset chunk;  // the parameters that the filters need
  cf::Unpacking unpacking;
  Grid grid;
  Bytes values_at = 0;  // of a field without time: where its values begin in the file; otherwise 0
};

/// Returns GRIB's keys of the grid, or none if GRIB has no keys for its kind.
codec::Keys keys_of_own(const cf::Grid& grid) {
  const bool is_rotated = grid.kind == cf::Grid::Kind::rotated;
  if (grid.kind != cf::Grid::Kind::lat_lon && !is_rotated) return {};
  codec::Keys keys{{"gridType", is_rotated ? "rotated_ll" : "regular_ll"},
                   {"Ni", cat(grid.x.points)},
                   {"Nj", cat(grid.y.points)},
                   {"latitudeOfFirstGridPointInDegrees", cat(grid.y.first)},
                   {"latitudeOfLastGridPointInDegrees", cat(grid.y.last)},
                   {"longitudeOfFirstGridPointInDegrees", cat(grid.x.first)},
                   {"longitudeOfLastGridPointInDegrees", cat(grid.x.last)}};
  if (is_rotated) {
    keys.emplace_back("latitudeOfSouthernPoleInDegrees", cat(grid.south_pole_latitude));
    keys.emplace_back("longitudeOfSouthernPoleInDegrees", cat(grid.south_pole_longitude));
  }
  return keys;
}

/// Makes a whole text of the bytes along the last dimension.
void read_texts(OwnChunks& own, Bytes bytes) {
  own.unpacking.text_bytes = bytes;
  own.grid.shape.pop_back();
  own.record.shape.pop_back();
  if (!own.record.chunk.empty()) own.record.chunk.pop_back();
  own.chunk.fill.assign(static_cast<std::size_t>(bytes), std::byte{0});
  own.chunk.chunk = own.record.chunk;
  if (own.record.compression.method != compression::Method::none) own.chunk.filters = {{1, "deflate", {}}};
}

OwnChunks chunks_of(const netcdf4::RecordsOfField& field) {
  OwnChunks own;
  own.record = field.record;
  own.grid = {field.record.shape, keys_of_own(field.grid)};
  own.values_at = field.values_at;
  own.unpacking.type = cf::number_of(field.type);
  const Bytes element = std::ssize(field.record.fill);
  own.chunk.fill = field.record.fill;
  copy_ordered(own.chunk.fill.data(), own.chunk.fill.data(), element, element, std::endian::little);
  // As in a finished file: values of one byte have no default fill value, so without missing= all of them are
  // data.
  if (field.record.missing || element > 1) own.unpacking.missing = {own.chunk.fill};
  own.chunk.chunk = field.record.chunk;
  if (is_text(field.type)) {
    read_texts(own, size_of(field.type));
    return own;
  }
  if (field.record.compression.method != compression::Method::none)
    own.chunk.filters = {{2, "shuffle", {static_cast<unsigned>(element)}}, {1, "deflate", {}}};
  return own;
}

/// Returns the bytes of one level of a field without time.
Bytes level_bytes(const OwnChunks& field) {
  Bytes bytes = std::ssize(field.chunk.fill);
  for (const Index length : field.grid.shape) bytes *= length;
  return bytes;
}

/// True if the head has as many values of a field without time as the index says.
bool has_all_levels(const netcdf4::RecordsOfField& told, const OwnChunks& field, std::size_t levels) {
  if (told.values_at == 0) return true;
  const Bytes bytes = level_bytes(field);
  return bytes == 0
             ? told.values_length == 0
             : told.values_length % bytes == 0 && told.values_length / bytes == static_cast<Bytes>(levels);
}

Result<std::vector<OwnChunks>> fields_of_own(const Opening& opening) {
  const streams::IndexContents& index = *opening.index;
  ByteVector head(static_cast<std::size_t>(index.header.data_begin));
  const Result<Bytes> got = opening.file->read(head, 0);
  TR_TRY(got.status());
  head.resize(static_cast<std::size_t>(*got));
  const Result<std::vector<netcdf4::RecordsOfField>> told = netcdf4::fields_in(head);
  TR_TRY(told.status().in(opening.path));
  bool same = told->size() == index.header.fields.size();
  std::vector<OwnChunks> fields;
  for (std::size_t i = 0; same && i < told->size(); ++i) {
    same = (*told)[i].type == index.header.fields[i].type;
    fields.push_back(chunks_of((*told)[i]));
    same = same && has_all_levels((*told)[i], fields.back(), index.header.fields[i].levels.size());
  }
  if (same) return fields;
  return Status(Code::corrupt,
                cat(opening.path, ": the head of the file defines other fields than its index"));
}

class OwnNetcdf4Source final : public Source {
 public:
  OwnNetcdf4Source(const Opening& opening, std::vector<OwnChunks> fields, Inventory inventory)
      : path_(opening.path), file_(opening.file), size_(opening.size), fields_(std::move(fields)) {
    inventory_ = std::move(inventory);
    for (const streams::IndexField& each : opening.index->header.fields) names_.push_back(each.name);
  }
  Result<Index> read(const RecordPlace& place, const Grid& grid, const layout::Box& cut, ElementType type,
                     std::byte* values, Scratch& scratch) const override {
    if (place[0] < 0 || place[0] >= std::ssize(fields_))
      return Status(Code::corrupt, cat(path_, ": expected a record of one of ",
                                       counted(fields_.size(), "field"), ", got number ", place[0]));
    const auto number = static_cast<std::size_t>(place[0]);
    const std::string context = cat(path_, ": field '", names_[number], "'");
    return guarded([&]() -> Result<Index> {
      const Result<Index> missing = read_record(fields_[number], place, grid, cut, type, values, scratch);
      TR_TRY(missing.status().in(context));
      return missing;
    });
  }
  [[nodiscard]] bool holds_float32(const RecordPlace& place) const override {
    if (place[0] < 0 || place[0] >= std::ssize(fields_)) return false;
    return fields_[static_cast<std::size_t>(place[0])].unpacking.is_float32();
  }
  [[nodiscard]] std::optional<ElementType> exact_type(const RecordPlace& place) const override {
    if (place[0] < 0 || place[0] >= std::ssize(fields_)) return std::nullopt;
    return fields_[static_cast<std::size_t>(place[0])].unpacking.exact_type();
  }
  [[nodiscard]] Bytes scratch_bound(const RecordPlace& place, const Grid&) const override {
    if (place[0] < 0 || place[0] >= std::ssize(fields_)) return 0;
    const OwnChunks& field = fields_[static_cast<std::size_t>(place[0])];
    if (field.values_at > 0) return std::min({most_bytes_at_once, size_, level_bytes(field)});
    return 3 * field.chunk.chunk_bytes() + field.record.trailer_bytes() + 4096;
  }

 private:
  Result<Index> read_record(const OwnChunks& field, const RecordPlace& place, const Grid& grid,
                            const layout::Box& cut, ElementType type, std::byte* values,
                            Scratch& scratch) const {
    if (field.values_at > 0) return read_fixed(field, place, grid, cut, type, values, scratch);
    const Bytes offset = place[1], length = place[2], trailer = field.record.trailer_bytes();
    if (grid.shape != field.grid.shape || offset < 0 || length < trailer || length > size_ ||
        offset > size_ - length)
      return Status(Code::corrupt, "there is no such record: the inventory is that of another file");
    TR_TRY(check_cut(grid.shape, cut, type));
    scratch.bytes.resize(static_cast<std::size_t>(trailer));
    TR_TRY(read_bytes(scratch.bytes, offset + length - trailer));
    const Result<netcdf4::Trailer> lengths = netcdf4::read_trailer(field.record, scratch.bytes, length);
    TR_TRY(lengths.status());
    const ChunkedArray array = chunked_array(field.record.shape, field.record.chunk, field.chunk.fill);
    std::vector<int> plane;
    for (std::size_t d = 0; d < grid.shape.size(); ++d) plane.push_back(static_cast<int>(d));
    const std::vector<Index> begin(grid.shape.size(), 0);
    const std::vector<Index> many = field.record.chunks();
    return read_chunked(array, begin, plane, field.unpacking, cut, type, values,
                        [&](std::span<const Index> at) -> Result<const std::byte*> {
                          Index chunk = 0;
                          for (std::size_t d = 0; d < at.size(); ++d)
                            chunk = chunk * many[d] + at[d] / field.record.chunk[d];
                          Bytes from = offset;
                          for (Index i = 0; i < chunk; ++i)
                            from += lengths->lengths[static_cast<std::size_t>(i)];
                          return decode(field, from, lengths->lengths[static_cast<std::size_t>(chunk)],
                                        scratch);
                        });
  }
  /// Reads a level of a field without time, which lies in the head of the file as it is.
  Result<Index> read_fixed(const OwnChunks& field, const RecordPlace& place, const Grid& grid,
                           const layout::Box& cut, ElementType type, std::byte* values,
                           Scratch& scratch) const {
    const Bytes offset = place[1], bytes = level_bytes(field);
    if (grid.shape != field.grid.shape || offset < field.values_at || bytes > size_ || offset > size_ - bytes)
      return Status(Code::corrupt, "there is no such record: the inventory is that of another file");
    TR_TRY(check_cut(grid.shape, cut, type));
    const Strided record{offset, strides_of(grid.shape, std::ssize(field.chunk.fill)), std::endian::big};
    return read_strided(*file_, record, field.unpacking, cut, type, values, scratch);
  }
  Result<const std::byte*> decode(const OwnChunks& field, Bytes offset, Bytes length,
                                  Scratch& scratch) const {
    scratch.bytes.resize(static_cast<std::size_t>(length));
    TR_TRY(read_bytes(scratch.bytes, offset));
    TR_TRY(netcdf4::undo_filters(field.chunk, 0, scratch.bytes, scratch.decoded)
               .in(cat("the chunk at byte ", offset)));
    const Bytes size = std::ssize(scratch.decoded);
    copy_ordered(scratch.decoded.data(), scratch.decoded.data(), size, field.unpacking.scalar_bytes(),
                 std::endian::little);
    return scratch.decoded.data();
  }
  [[nodiscard]] Status read_bytes(std::span<std::byte> to, Bytes offset) const {
    const Result<Bytes> got = file_->read(to, offset);
    TR_TRY(got.status());
    if (*got == std::ssize(to)) return {};
    return {Code::corrupt,
            cat("expected ", counted(to.size(), "byte"), " of a record at byte ", offset, ", got ", *got)};
  }

  std::string path_;
  std::shared_ptr<storage::File> file_;
  Bytes size_;
  std::vector<OwnChunks> fields_;
  std::vector<std::string> names_;
};

}  // namespace

Result<Inventory> scan_own(const Opening& opening) {
  return guarded([&]() -> Result<Inventory> {
    const Result<std::vector<OwnChunks>> fields = fields_of_own(opening);
    TR_TRY(fields.status());
    OwnRecords records;
    for (std::size_t i = 0; i < fields->size(); ++i) {
      const OwnChunks& field = (*fields)[i];
      const streams::IndexField& told = opening.index->header.fields[i];
      records.fields.push_back({told.name, {}, field.grid, {}, {}, {}});
      if (field.values_at == 0) continue;
      const Bytes bytes = level_bytes(field);
      for (Index level = 0; level < std::ssize(told.levels); ++level)
        records.fields.back().always.push_back(
            {static_cast<std::int64_t>(i), field.values_at + level * bytes, bytes, 0});
    }
    Result<Inventory> inventory = inventory_of_own(*opening.index, records, "NetCDF-4");
    TR_TRY(inventory.status().in(opening.path));
    return inventory;
  });
}

Result<std::shared_ptr<const Source>> make_own_source(const Opening& opening, Inventory inventory) {
  return guarded([&]() -> Result<std::shared_ptr<const Source>> {
    Result<std::vector<OwnChunks>> fields = fields_of_own(opening);
    TR_TRY(fields.status());
    return std::shared_ptr<const Source>(
        std::make_shared<OwnNetcdf4Source>(opening, std::move(*fields), std::move(inventory)));
  });
}

}  // namespace tailrace::netcdf4
