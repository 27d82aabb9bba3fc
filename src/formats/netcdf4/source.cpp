// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/netcdf4/front_end.hpp"

#include <algorithm>

#include "formats/netcdf4/reader.hpp"
#include "formats/variables/cf_source.hpp"
#include "formats/variables/chunked.hpp"
#include "formats/variables/strided.hpp"
#include "ground/base/byte_order.hpp"
#include "ground/base/text.hpp"

namespace tailrace::netcdf4 {

using namespace variables;

namespace {

/// Returns an upper bound of the bytes of a chunk, before its filters and after each of them.
Bytes most_stored(const netcdf4::Dataset& of) {
  // Bytes that do not compress grow by the tables of their compressor's blocks.
  const Bytes chunk = of.chunk_bytes() + netcdf4::Filter::most_added * std::ssize(of.filters);
  return chunk + chunk / 8 + 4096;
}

/// Reads elements of the variables of an HDF5 file, without the HDF5 library.
class Hdf5File {
 public:
  Hdf5File(std::shared_ptr<storage::File> file, Bytes size, std::shared_ptr<netcdf4::Reader> reader)
      : file_(std::move(file)), size_(size), reader_(std::move(reader)) {}

  [[nodiscard]] const cf::FoundContents& contents() const { return reader_->contents(); }
  [[nodiscard]] Index length(std::size_t variable, std::size_t d) const {
    const int dimension = contents().variables[variable].dimensions[d];
    return contents().dimensions[static_cast<std::size_t>(dimension)].length;
  }
  Result<Index> read(std::size_t variable, std::span<const Index> begin, std::span<const int> plane,
                     const cf::Unpacking& how, const layout::Box& cut, ElementType type, std::byte* values,
                     Scratch& scratch) const;
  Result<std::vector<double>> numbers(std::size_t variable) const;
  [[nodiscard]] Bytes stored_bytes(std::size_t variable) const { return reader_->stored_bytes(variable); }
  /// Returns an upper bound of the bytes that `read` uses in Scratch for a record of this shape.
  [[nodiscard]] Bytes scratch_bound(std::size_t variable, std::span<const int> plane,
                                    std::span<const Index> shape) const;

 private:
  [[nodiscard]] const netcdf4::Dataset& dataset(std::size_t variable) const {
    return reader_->datasets()[variable];
  }
  Result<const std::byte*> decode(std::size_t variable, std::span<const Index> begin, Scratch& scratch) const;
  Result<Index> read_whole(const netcdf4::Dataset& of, std::span<const Index> begin,
                           std::span<const int> plane, const cf::Unpacking& how, const layout::Box& cut,
                           ElementType type, std::byte* values, Scratch& scratch) const;

  std::shared_ptr<storage::File> file_;
  Bytes size_;
  std::shared_ptr<netcdf4::Reader> reader_;
};

Result<const std::byte*> Hdf5File::decode(std::size_t variable, std::span<const Index> begin,
                                          Scratch& scratch) const {
  const netcdf4::Dataset& of = dataset(variable);
  const Result<std::optional<netcdf4::StoredChunk>> stored = reader_->chunk_at(variable, begin);
  TR_TRY(stored.status());
  if (!*stored) return nullptr;
  if ((*stored)->size > most_stored(of))
    return Status(Code::corrupt, cat("expected a chunk of at most ", counted(most_stored(of), "byte"),
                                     " at byte ", (*stored)->offset, ", got ", (*stored)->size));
  // One byte of deflate expands to at most 1032 bytes: a smaller stored chunk cannot be right.
  const Bytes most = ((*stored)->size + 64) * 1100;
  const bool is_deflated = std::ranges::any_of(of.filters, [](const auto& each) { return each.id == 1; });
  if (is_deflated && of.chunk_bytes() > most)
    return Status(Code::corrupt, cat("expected a chunk of ", of.chunk_bytes(), " bytes, got ",
                                     counted((*stored)->size, "byte"), " at byte ", (*stored)->offset,
                                     ", which cannot hold them"));
  scratch.bytes.resize(static_cast<std::size_t>((*stored)->size));
  const Result<Bytes> got = file_->read(scratch.bytes, (*stored)->offset);
  TR_TRY(got.status());
  if (*got != (*stored)->size)
    return Status(Code::corrupt, cat("expected a chunk of ", counted((*stored)->size, "byte"), " at byte ",
                                     (*stored)->offset, ", got ", *got));
  TR_TRY(netcdf4::undo_filters(of, (*stored)->left_out, scratch.bytes, scratch.decoded)
             .in(cat("the chunk at byte ", (*stored)->offset)));
  copy_ordered(scratch.decoded.data(), scratch.decoded.data(), std::ssize(scratch.decoded),
               std::ssize(of.fill), of.order);
  return scratch.decoded.data();
}

Result<Index> Hdf5File::read_whole(const netcdf4::Dataset& of, std::span<const Index> begin,
                                   std::span<const int> plane, const cf::Unpacking& how,
                                   const layout::Box& cut, ElementType type, std::byte* values,
                                   Scratch& scratch) const {
  for (std::size_t i = 0; i < plane.size(); ++i) {
    const Index there = of.shape[static_cast<std::size_t>(plane[i])];
    if (cut.upper[i] > there)
      return Status(Code::corrupt,
                    cat("expected ", cut.upper[i], " elements along a dimension, got ", there));
  }
  for (std::size_t d = 0; d < begin.size(); ++d) {
    if (begin[d] >= of.shape[d] && begin[d] > 0)
      return Status(Code::corrupt,
                    cat("expected ", begin[d] + 1, " elements along a dimension, got ", of.shape[d]));
  }
  const std::vector<Bytes> strides = strides_of(of.shape, std::ssize(of.fill));
  Strided record{of.offset, {}, of.order};
  for (std::size_t d = 0; d < begin.size(); ++d) record.offset += begin[d] * strides[d];
  for (const int each : plane) record.strides.push_back(strides[static_cast<std::size_t>(each)]);
  return read_strided(*file_, record, how, cut, type, values, scratch);
}

Result<Index> Hdf5File::read(std::size_t variable, std::span<const Index> begin, std::span<const int> plane,
                             const cf::Unpacking& how, const layout::Box& cut, ElementType type,
                             std::byte* values, Scratch& scratch) const {
  const netcdf4::Dataset& of = dataset(variable);
  TR_TRY(of.refused);
  using Kind = netcdf4::Dataset::Kind;
  if (of.kind == Kind::whole) return read_whole(of, begin, plane, how, cut, type, values, scratch);
  // Elements stored within the metadata count as one chunk. If nobody has written any, that chunk is absent.
  const bool is_chunked = of.kind == Kind::chunked;
  std::vector<Index> one = of.shape;
  for (Index& each : one) each = std::max<Index>(each, 1);
  const ChunkedArray array = chunked_array(of.shape, is_chunked ? of.chunk : one, of.fill);
  return read_chunked(array, begin, plane, how, cut, type, values,
                      [&](std::span<const Index> chunk) -> Result<const std::byte*> {
                        if (is_chunked) return decode(variable, chunk, scratch);
                        return of.kind == Kind::held ? of.values.data() : nullptr;
                      });
}

/// Reads a whole coordinate.
Result<std::vector<double>> Hdf5File::numbers(std::size_t variable) const {
  const cf::FoundVariable& of = contents().variables[variable];
  std::vector<Index> shape;
  for (std::size_t d = 0; d < of.dimensions.size(); ++d) shape.push_back(length(variable, d));
  return read_coordinate(of, shape, [&](auto begin, auto plane, auto& how, auto& all, std::byte* numbers) {
    Scratch scratch;
    return read(variable, begin, plane, how, all, ElementType::f64, numbers, scratch).status();
  });
}

Bytes Hdf5File::scratch_bound(std::size_t variable, std::span<const int> plane,
                              std::span<const Index> shape) const {
  const netcdf4::Dataset& of = dataset(variable);
  if (!of.refused.is_ok()) return 0;
  if (of.kind == netcdf4::Dataset::Kind::whole) {
    const std::vector<Bytes> strides = strides_of(of.shape, std::ssize(of.fill));
    Strided record;
    for (const int each : plane) record.strides.push_back(strides[static_cast<std::size_t>(each)]);
    return strided_bound(record, shape, std::ssize(of.fill));
  }
  if (of.kind != netcdf4::Dataset::Kind::chunked) return 0;
  return std::min(size_, most_stored(of)) +
         2 * (of.chunk_bytes() + netcdf4::Filter::most_added * std::ssize(of.filters));
}

struct Netcdf4File {
  std::shared_ptr<Hdf5File> file;
  CfInventory found;
};

Result<Netcdf4File> look_into_hdf5(const Opening& opening) {
  const codec::ReadBytes read = [file = opening.file](std::span<std::byte> to, Bytes offset) {
    return file->read(to, offset);
  };
  Result<std::shared_ptr<netcdf4::Reader>> reader = netcdf4::Reader::open(read, opening.size);
  TR_TRY(reader.status().in(opening.path));
  Netcdf4File opened{std::make_shared<Hdf5File>(opening.file, opening.size, std::move(*reader)), {}};
  const cf::ReadNumbers numbers = [&](std::size_t variable) { return opened.file->numbers(variable); };
  const StoredBytes stored = [&](std::size_t variable, Bytes) { return opened.file->stored_bytes(variable); };
  Result<CfInventory> found = take_inventory(opened.file->contents(), numbers, true, stored);
  TR_TRY(found.status().in(opening.path));
  opened.found = std::move(*found);
  opened.found.inventory.format = "NetCDF-4";
  return opened;
}

class Netcdf4Source final : public CfSource {
 public:
  Netcdf4Source(const Opening& opening, Netcdf4File opened)
      : CfSource(opening.path, "variable", std::move(opened.found)), file_(std::move(opened.file)) {}

 private:
  [[nodiscard]] const cf::FoundContents& contents() const override { return file_->contents(); }
  Result<Index> read_record(const CfField& field, const std::vector<Index>& begin, const layout::Box& cut,
                            ElementType type, std::byte* values, Scratch& scratch) const override {
    return file_->read(field.variable, begin, field.plane, field.unpacking, cut, type, values, scratch);
  }
  [[nodiscard]] Bytes record_bound(const CfField& field, const std::vector<Index>&,
                                   std::span<const Index> shape) const override {
    return file_->scratch_bound(field.variable, field.plane, shape);
  }

  std::shared_ptr<Hdf5File> file_;
};

}  // namespace

Result<Inventory> scan(const Opening& opening) {
  if (opening.index != nullptr) return scan_own(opening);
  Result<Netcdf4File> opened = look_into_hdf5(opening);
  TR_TRY(opened.status());
  return std::move(opened->found.inventory);
}

Result<std::shared_ptr<const Source>> make_source(const Opening& opening, Inventory inventory) {
  if (opening.index != nullptr) return make_own_source(opening, std::move(inventory));
  Result<Netcdf4File> opened = look_into_hdf5(opening);
  TR_TRY(opened.status());
  return std::shared_ptr<const Source>(std::make_shared<Netcdf4Source>(opening, std::move(*opened)));
}

}  // namespace tailrace::netcdf4
