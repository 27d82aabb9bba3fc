// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/cf/fields.hpp"

#include "ground/base/text.hpp"
#ifdef TAILRACE_HAVE_GRIB
#include "formats/grib2/sample.hpp"
#endif

namespace tailrace::cf {

using codec::FieldDefinition;

Result<codec::Keys> grid_keys(const codec::Georeference& georeference) {
#ifdef TAILRACE_HAVE_GRIB
  return grib2::grid_keys(georeference);
#else
  return georeference.keys;
#endif
}

namespace {

ByteVector packed(const std::string& name, const Grid& grid) {
  Packer out;
  out.put_text(name);
  grid.pack(out);
  return out.take();
}

}  // namespace

Result<Grid> Fields::read_grid(const FieldDefinition& field) {
  TR_TRY(codec::check_field(field));
  const std::string context = cat("field '", field.name, "'");
  if (!georeference_ || *georeference_ != field.georeference) {
    const Result<codec::Keys> keys = grid_keys(field.georeference);
    TR_TRY(keys.status().in(context));
    georeference_ = field.georeference;
    keys_ = *keys;
  }
  Result<Grid> grid = grid_of(keys_, field.shape, field.georeference.coordinates);
  TR_TRY(grid.status().in(context));
  return grid;
}

Status Fields::define(const FieldDefinition& field) {
  const Result<Grid> grid = read_grid(field);
  TR_TRY(grid.status());
  return add(field, *grid).in(cat("field '", field.name, "'"));
}

Result<ByteVector> Fields::prepare(const FieldDefinition& field) {
  const Result<Grid> grid = read_grid(field);
  TR_TRY(grid.status());
  return packed(field.name, *grid);
}

ByteVector Fields::prepared(int field) const {
  return packed(at(field).name, grids_[static_cast<std::size_t>(field)]);
}

Status Fields::adopt(const FieldDefinition& field, std::span<const std::byte> prepared) {
  TR_TRY(codec::check_field(field));
  Unpacker in(prepared);
  const bool same_name = in.get_text() == field.name;
  Result<Grid> grid = Grid::unpack(in);
  TR_TRY(grid.status().in(cat("field '", field.name, "'")));
  const auto& told = field.georeference.coordinates;
  if (grid->coordinates && told && told->are_those_of(*grid->coordinates)) grid->coordinates = told;
  const bool known = grid->kind != Grid::Kind::unknown;
  if (!same_name || !in.rest().empty() || (known && grid->y.points * grid->x.points != field.elements()))
    return {Code::corrupt, cat("field '", field.name, "': the prepared grid belongs to another field")};
  return add(field, *grid).in(cat("field '", field.name, "'"));
}

Status Fields::add(const FieldDefinition& field, const Grid& grid) {
  TR_TRY(conventions_.add(field, grid));
  grids_.push_back(grid);
  types_.push_back(field.type);
  return {};
}

Status Fields::check_record(const codec::RecordKey& key, Index count) const {
  if (key.field < 0 || static_cast<std::size_t>(key.field) >= all().size())
    return {Code::argument, cat("field number ", key.field, " was not defined; ", all().size(), " were")};
  const Conventions::Field& field = at(key.field);
  if (count == field.elements) return {};
  return {Code::argument,
          cat("variable '", conventions_.contents().variables[field.variable].name, "': a record of ", count,
              " elements was given, ", field.elements, " were defined")};
}

}  // namespace tailrace::cf
