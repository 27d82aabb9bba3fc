// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/cf/fields.hpp"

#include <algorithm>
#include <array>

#include "formats/cf/quantise.hpp"
#include "formats/grids/grids.hpp"
#include "ground/base/text.hpp"

namespace tailrace::cf {

using codec::FieldDefinition;

namespace {

ByteVector packed(const std::string& name, const Grid& grid) {
  Packer out;
  out.put_text(name);
  grid.pack(out);
  return out.take();
}

/// A name that only the library gives to attributes, and the option or call that decides their values.
struct Reserved {
  std::string_view name, decided_by;
};
constexpr std::array reserved{
    Reserved{"_FillValue", "missing= of tr_stream_define sets it"},
    Reserved{"missing_value", "missing= of tr_stream_define sets fill values"},
    Reserved{"scale_factor", "it would change the values, which are stored as they are"},
    Reserved{"add_offset", "it would change the values, which are stored as they are"},
    Reserved{"coordinates",
             "it follows from the layout of the field, and attributes= of tr_stream_define adds others"},
    Reserved{"grid_mapping", "it follows from tr_layout_georeference"},
    Reserved{"bounds", "tr_layout_axis and tr_layout_coordinates set it"},
    Reserved{"formula_terms", "it follows from vertical= and coefficients= of tr_stream_define"},
    Reserved{"computed_standard_name", "it follows from vertical= and coefficients= of tr_stream_define"},
    Reserved{"number_of_grid_used", "it follows from tr_layout_georeference"},
    Reserved{"uuidOfHGrid", "it follows from tr_layout_georeference"},
    Reserved{"cell_methods", "statistic= and operation= of tr_stream_define set it"},
    Reserved{"_ARRAY_DIMENSIONS", "tr_layout_dimensions names dimensions"},
};

/// Names the options that set what a variable has already.
std::string_view options_of(const Conventions& conventions, const codec::GivenAttribute& given) {
  if (given.of.empty()) return "attributes= of tr_stream_create sets it, or an earlier call";
  const auto& fields = conventions.fields();
  if (std::ranges::find(fields, given.of, &Conventions::Field::name) != fields.end())
    return "attributes= or conventions=weather sets it, or an earlier call";
  const bool is_time = *conventions.variable_of(given.of) == conventions.time();
  return is_time
             ? "base=, calendar=, lead_unit= and time_units= of tr_stream_create set it, or an earlier call"
             : "tr_layout_axis, the grid or levels= sets it, or an earlier call";
}

/// Returns Code::argument if the attribute of a field has to have the field's type (CF-1.8, sections 2.5.1
/// and 3.5) and has another.
Status check_type(const Conventions::Field& field, Type type, const std::string& name) {
  constexpr std::array typed{"valid_min", "valid_max", "valid_range", "flag_values", "flag_masks"};
  if (name == "flag_meanings" && type != Type::text)
    return {Code::argument, "flag_meanings is a text: give it to tr_stream_attribute_text"};
  if (std::ranges::find(typed, name) == typed.end() || type == field.type) return {};
  return {Code::argument, cat(name,
                              " has the type of its field in CF, and is of another type here: give numbers "
                              "of the type with which '",
                              field.name, "' was defined")};
}

Result<Attribute> attribute_of(const codec::GivenAttribute& given) {
  Attribute attribute{given.name, Type::text, given.values};
  if (!given.type) return attribute;
  const Result<Type> type = type_of(*given.type);
  TR_TRY(type.status());
  attribute.type = *type;
  swap(attribute.values, size_of(*type));
  return attribute;
}

Status add_given(Conventions& conventions, const codec::GivenAttribute& given) {
  codec::Keys named{{given.name, ""}};
  const auto own = std::ranges::find(reserved, given.name, &Reserved::name);
  if (own != reserved.end()) return {Code::argument, cat(own->decided_by, ": leave it out")};
  TR_TRY(Conventions::check_attributes(named));
  TR_TRY(check_quantisation_names(named));
  std::optional<std::size_t> variable;
  const Contents& contents = conventions.contents();
  if (!given.of.empty()) {
    variable = conventions.variable_of(given.of);
    if (!variable)
      return {Code::argument,
              cat("the stream has neither a field '", given.of,
                  "' nor a dimension of this name with a coordinate: define the field first, or "
                  "give the dimension its coordinate by tr_layout_axis")};
  }
  const auto& there = variable ? contents.variables[*variable].attributes : contents.attributes;
  if (std::ranges::find(there, given.name, &Attribute::name) != there.end())
    return {Code::argument,
            cat("it has an attribute of this name already: ", options_of(conventions, given))};
  Result<Attribute> attribute = attribute_of(given);
  TR_TRY(attribute.status());
  const auto& fields = conventions.fields();
  const auto field = std::ranges::find(fields, given.of, &Conventions::Field::name);
  if (variable && field != fields.end()) TR_TRY(check_type(*field, attribute->type, given.name));
  if (variable)
    conventions.add_attribute(*variable, std::move(*attribute));
  else
    conventions.add_attribute(std::move(*attribute));
  return {};
}

}  // namespace

Status give(Conventions& conventions, const codec::GivenAttribute& given) {
  const std::string of = given.of.empty() ? "the file" : cat("'", given.of, "'");
  return add_given(conventions, given).in(cat("attribute '", given.name, "' of ", of));
}

codec::FieldDefinition Fields::alone(codec::FieldDefinition field) {
  std::erase_if(field.attributes, [](const auto& each) { return each.first == "coordinates"; });
  return field;
}

Result<Grid> Fields::read_grid(const FieldDefinition& field) {
  TR_TRY(codec::check_field(field));
  const std::string context = cat("field '", field.name, "'");
  if (!georeference_ || *georeference_ != field.georeference) {
    const Result<codec::Keys> keys = grids::keys_of(field.georeference);
    TR_TRY(keys.status().in(context));
    georeference_ = field.georeference;
    keys_ = *keys;
  }
  Result<Grid> grid = grid_of(keys_, shape_put(field), field.georeference.coordinates);
  if (!grid.is_ok() && !field.section.no_grid.empty())
    return Status(Code::format, cat(context, ": section=: ", field.section.no_grid));
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
  if (!same_name || !in.rest().empty() || (known && grid->y.points * grid->x.points != field.elements_put()))
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
