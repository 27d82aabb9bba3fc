// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/cdf/front_end.hpp"

#include <algorithm>
#include <optional>

#include "formats/cdf/reading.hpp"
#include "formats/variables/cf_source.hpp"
#include "formats/variables/own_records.hpp"
#include "formats/variables/strided.hpp"
#include "ground/base/byte_order.hpp"
#include "ground/base/text.hpp"

namespace tailrace::cdf {

using namespace variables;

namespace {

/// The header of a file, and the fields found in it.
struct ClassicFile {
  cdf::ReadHeader header;
  CfInventory found;
};

/// Reads all elements of a variable as float64. It is used for coordinates, which are small: one call reads
/// each record.
Result<std::vector<double>> read_numbers(storage::File& file, const cdf::ReadHeader& header,
                                         std::size_t variable) {
  const cf::FoundVariable& of = header.contents.variables[variable];
  const cdf::ReadHeader::VariablePlace& place = header.of_variables[variable];
  const Bytes element = cf::size_of(of.type);
  if (element == 0) return Status(Code::format, "expected numbers, got a text");
  const Index records = place.has_records ? header.records : 1;
  if (place.size > 0 && records > most_coordinates * element / place.size)
    return Status(Code::format,
                  cat("expected a coordinate of at most ", most_coordinates, " numbers, got more"));
  std::vector<double> numbers;
  ByteVector bytes(static_cast<std::size_t>(place.size));
  for (Index record = 0; record < records; ++record) {
    const Bytes at = place.begin + record * header.record_size;
    const Result<Bytes> got = file.read(bytes, at);
    TR_TRY(got.status());
    if (*got != place.size)
      return Status(Code::corrupt,
                    cat("expected ", counted(place.size, "byte"), " at byte ", at, ", got ", *got));
    copy_ordered(bytes.data(), bytes.data(), place.size, element, std::endian::big);
    for (Bytes i = 0; i < place.size; i += element)
      numbers.push_back(cf::value_of(of.type, bytes.data() + i));
  }
  return numbers;
}

Result<ClassicFile> look_into(const Opening& opening) {
  // A program may be writing the file. The first bytes, with the number of records, are taken from
  // `opening.head`, which was read before the size: the file then holds all records that the number counts.
  const codec::ReadBytes read = [&](std::span<std::byte> to, Bytes offset) {
    const Result<Bytes> got = opening.file->read(to, offset);
    if (got.is_ok() && offset < std::ssize(opening.head))
      std::copy_n(opening.head.begin() + offset, std::min(*got, std::ssize(opening.head) - offset),
                  to.begin());
    return got;
  };
  Result<cdf::ReadHeader> header = cdf::read_header(read, opening.size);
  TR_TRY(header.status().in(opening.path));
  ClassicFile file{std::move(*header), {}};
  const cf::ReadNumbers numbers = [&](std::size_t variable) {
    return read_numbers(*opening.file, file.header, variable);
  };
  Result<CfInventory> found = take_inventory(file.header.contents, numbers, true);
  // A file of ours is read as its index says, whatever the conventions make of its variables.
  const bool may_lack_it = opening.index != nullptr && found.status().code() != Code::io;
  if (!may_lack_it) TR_TRY(found.status().in(opening.path));
  if (found.is_ok()) file.found = std::move(*found);
  file.found.inventory.format = "NetCDF (classic)";
  return file;
}

/// Returns where the elements of a record lie: side by side along all dimensions, except for the distance
/// between NetCDF records along the first.
Strided strided_of(const cdf::ReadHeader& header, const CfField& field, std::span<const Index> begin) {
  const cf::FoundVariable& variable = header.contents.variables[field.variable];
  const cdf::ReadHeader::VariablePlace& of = header.of_variables[field.variable];
  std::vector<Index> shape;
  for (const int each : variable.dimensions)
    shape.push_back(header.contents.dimensions[static_cast<std::size_t>(each)].length);
  std::vector<Bytes> strides = strides_of(shape, variable.element_bytes());
  if (of.has_records) strides.front() = header.record_size;
  Strided record{of.begin, {}, std::endian::big};
  for (std::size_t d = 0; d < shape.size(); ++d) record.offset += begin[d] * strides[d];
  for (const int each : field.plane) record.strides.push_back(strides[static_cast<std::size_t>(each)]);
  return record;
}

class ClassicSource final : public CfSource {
 public:
  ClassicSource(const Opening& opening, ClassicFile file)
      : CfSource(opening.path, "variable", std::move(file.found)),
        file_(opening.file),
        header_(std::move(file.header)) {}

 private:
  [[nodiscard]] const cf::FoundContents& contents() const override { return header_.contents; }
  Result<Index> read_record(const CfField& field, const std::vector<Index>& begin, const layout::Box& cut,
                            ElementType type, std::byte* values, Scratch& scratch) const override {
    return read_strided(*file_, strided_of(header_, field, begin), field.unpacking, cut, type, values,
                        scratch);
  }
  [[nodiscard]] Bytes record_bound(const CfField& field, const std::vector<Index>& begin,
                                   std::span<const Index> shape) const override {
    return strided_bound(strided_of(header_, field, begin), shape, field.unpacking.element_bytes());
  }

  std::shared_ptr<storage::File> file_;
  cdf::ReadHeader header_;
};

/// Returns the variable whose records hold this offset, or nothing.
std::optional<std::size_t> variable_at(const ClassicFile& file, Bytes offset) {
  for (std::size_t i = 0; i < file.header.of_variables.size(); ++i) {
    const cdf::ReadHeader::VariablePlace& place = file.header.of_variables[i];
    if (!place.has_records || offset < place.begin || file.header.record_size == 0) continue;
    if ((offset - place.begin) % file.header.record_size < place.size) return i;
  }
  return {};
}

/// Adds to a field of the index what the header says of its variable: how the elements are packed, and where
/// the points lie if the conventions tell it.
Status describe(const ClassicFile& file, std::size_t variable, OwnRecords::Field& field) {
  Result<cf::Unpacking> unpacking = cf::unpacking_of(file.header.contents.variables[variable], true);
  TR_TRY(unpacking.status());
  field.unpacking = std::move(*unpacking);
  field.is_described = true;
  const auto found = std::ranges::find(file.found.fields, variable, &CfField::variable);
  if (found == file.found.fields.end()) return {};
  const Grid& grid = file.found.inventory.grids[static_cast<std::size_t>(found->grid)];
  if (grid.shape == field.grid.shape) field.grid.keys = grid.keys;
  return {};
}

/// True if the variable has the values of a field without time, level by level.
bool holds_all_levels(const ClassicFile& file, std::size_t variable, const streams::IndexField& field,
                      const OwnRecords::Field& own) {
  const cdf::ReadHeader::VariablePlace& place = file.header.of_variables[variable];
  Bytes size = 0;
  return !place.has_records && file.header.contents.variables[variable].type == own.unpacking.type &&
         !__builtin_mul_overflow(own.bytes, std::ssize(field.levels), &size) && place.size == size;
}

/// Returns the variable of a field that no step has: one without records has no time. Returns nothing for a
/// field with time, which was never put. A stream names a variable after its field and, if another one has
/// the name, after the type of its levels, too. `taken` are variables of other fields.
std::optional<std::size_t> unput_variable(const ClassicFile& file, const streams::IndexField& field,
                                          const OwnRecords::Field& own, const std::vector<bool>& taken) {
  const cf::FoundContents& contents = file.header.contents;
  const int exact = contents.find(field.name);
  if (exact >= 0 && !taken[static_cast<std::size_t>(exact)]) {
    const auto number = static_cast<std::size_t>(exact);
    if (file.header.of_variables[number].has_records) return {};
    if (holds_all_levels(file, number, field, own)) return number;
  }
  const std::string longer = cat(field.name, "_", field.level_type);
  for (std::size_t i = 0; i < contents.variables.size(); ++i) {
    if (taken[i] || !contents.variables[i].name.starts_with(longer)) continue;
    if (holds_all_levels(file, i, field, own)) return i;
    if (file.header.of_variables[i].has_records) return {};
  }
  return {};
}

/// Finds the fields without time. Their values stand in the header's variables, level by level.
/// `taken` are the variables of fields with time.
Status describe_always(const Opening& opening, const ClassicFile& file, std::vector<bool> taken,
                       OwnRecords& own) {
  for (std::size_t number = 0; number < own.fields.size(); ++number) {
    OwnRecords::Field& field = own.fields[number];
    if (field.is_described) continue;
    const streams::IndexField& told = opening.index->header.fields[number];
    const std::optional<std::size_t> variable = unput_variable(file, told, field, taken);
    if (!variable) continue;
    const std::size_t at = *variable;
    taken[at] = true;
    TR_TRY(describe(file, at, field).in(opening.path));
    for (Index level = 0; level < std::ssize(told.levels); ++level)
      field.always.push_back({static_cast<std::int64_t>(number),
                              file.header.of_variables[at].begin + level * field.bytes, field.bytes, 0});
  }
  return {};
}

/// Joins index and header of a file of our own. The index says where the records lie; the header says how
/// their elements are packed, and where their points lie.
Result<OwnRecords> own_of(const Opening& opening, const ClassicFile& file) {
  Result<OwnRecords> own = own_records_of(*opening.index, std::endian::big);
  TR_TRY(own.status().in(opening.path));
  std::vector<bool> taken(file.header.contents.variables.size());
  for (const streams::IndexStep& step : opening.index->steps) {
    for (const streams::IndexRecord& record : step.records) {
      OwnRecords::Field& field = own->fields[static_cast<std::size_t>(record.field)];
      if (field.is_described) continue;
      const cf::Number expected = field.unpacking.type;
      const std::optional<std::size_t> found = variable_at(file, record.offset);
      if (found) TR_TRY(describe(file, *found, field).in(opening.path));
      if (!found || field.unpacking.type != expected)
        return Status(Code::corrupt,
                      cat(opening.path, ": the index has a record of '", field.name, "' at byte ",
                          record.offset, ": expected a variable of ", cf::name_of(expected), " there, got ",
                          found ? cf::name_of(field.unpacking.type) : "none"));
      taken[*found] = true;
    }
  }
  // Without a step there is nothing to read.
  if (!opening.index->steps.empty()) TR_TRY(describe_always(opening, file, std::move(taken), *own));
  return own;
}

bool fits(const Opening& opening) { return is_classic(opening.head); }

Result<Inventory> scan(const Opening& opening) {
  Result<ClassicFile> file = look_into(opening);
  TR_TRY(file.status());
  if (opening.index == nullptr) return std::move(file->found.inventory);
  const Result<OwnRecords> own = own_of(opening, *file);
  TR_TRY(own.status());
  return inventory_of_own(*opening.index, *own, "NetCDF (classic)");
}

Result<std::shared_ptr<const Source>> make_source(const Opening& opening, Inventory inventory) {
  Result<ClassicFile> file = look_into(opening);
  TR_TRY(file.status());
  if (opening.index == nullptr)
    return std::shared_ptr<const Source>(std::make_shared<ClassicSource>(opening, std::move(*file)));
  Result<OwnRecords> own = own_of(opening, *file);
  TR_TRY(own.status());
  return source_of_own(opening, std::move(*own), std::move(inventory));
}

}  // namespace

constinit const sources::FrontEnd front_end{
    .name = "NetCDF (classic)", .fits = fits, .scan = scan, .make = make_source};

}  // namespace tailrace::cdf
