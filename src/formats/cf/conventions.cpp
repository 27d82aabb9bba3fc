// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/cf/conventions.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "formats/cf/names.hpp"
#include "formats/cf/unicode.hpp"
#include "formats/codec/missing.hpp"
#include "ground/base/options.hpp"
#include "ground/base/text.hpp"

namespace tailrace::cf {

namespace {

using codec::FieldDefinition;
using codec::Levels;
using codec::Process;
using codec::Statistic;

constexpr int record_dimension = 0;

/// Appends the default fill value of the NetCDF library for a type (netcdf.h, NC_FILL_*).
void put_default_fill(ByteVector& out, Type type) {
  switch (type) {
    case Type::text:
      return put_number(out, type, 0);
    case Type::int8:
      return put_number(out, type, -127);
    case Type::uint8:
      return put_number(out, type, 255);
    case Type::int16:
      return put_number(out, type, -32767);
    case Type::uint16:
      return put_number(out, type, 65535);
    case Type::int32:
      return put_number(out, type, -2147483647);
    case Type::uint32:
      return put_number(out, type, 4294967295);
    case Type::int64:  // no double has this value, nor the one of uint64
      return put_big_endian(out, std::int64_t{-9223372036854775806});
    case Type::uint64:
      return put_big_endian(out, std::uint64_t{18446744073709551614U});
    case Type::float32:
    case Type::float64:
      return put_number(out, type, 9.9692099683868690e+36);
  }
}

/// Returns one element that stands for "no value".
ByteVector fill_of(const FieldDefinition& field, Type type) {
  ByteVector fill;
  if (field.missing)
    put_number(fill, type, codec::missing_in(field.type, *field.missing));
  else
    put_default_fill(fill, type);
  return fill;
}

/// Returns true if the file tells readers which value means "no value" (`_FillValue`). A field of integers
/// has this attribute only if the program sets missing=: xarray turns integers with the attribute into
/// floats, which do not hold all of them. Real fields keep their type and always have it, so that readers
/// find the records that were not put.
bool is_masked(const FieldDefinition& field) {
  return field.missing || field.type == ElementType::f32 || field.type == ElementType::f64;
}

/// Returns Code::argument if a hybrid level lacks coefficients. They belong to the half levels above and
/// below a level.
Status check_hybrid(const Levels& levels) {
  if (levels.type != "hybrid" || levels.coefficients.empty()) return {};
  const std::size_t half = levels.coefficients.size() / 2;
  for (const double level : levels.values) {
    if (level < 1 || level != std::floor(level) || level >= static_cast<double>(half))
      return {Code::argument, cat("level ", level, " has no half levels above and below it among the ", half,
                                  " of the coefficients; levels with coefficients are numbers from 1 on")};
  }
  return {};
}

/// Returns Code::argument unless the NetCDF library takes the name, and finds it again: it looks for names in
/// Unicode's normal form NFC, so the name must surely be in this form.
Status check_name(const std::string& name) {
  const auto is_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' ||
           static_cast<unsigned char>(c) >= 0x80;
  };
  if (!name.empty() && name.size() <= most_name && is_word(name.front()) && is_normal_utf8(name) &&
      name.find('/') == std::string::npos && name.back() != ' ')
    return {};
  return {Code::argument,
          cat("NetCDF takes no such name: it begins with a letter, a digit or _, has no /, is of "
              "ASCII or letters in UTF-8 without combining marks, and has at most ",
              most_name, " bytes")};
}

bool are_same(const Levels& one, const Levels& other) {
  return one.type == other.type && one.values == other.values && one.bottoms == other.bottoms &&
         one.coefficients == other.coefficients;
}

std::function<ByteVector()> big_endian(ByteVector values, Type type) {
  swap(values, size_of(type));
  return [values = std::move(values)] { return values; };
}

std::function<ByteVector()> constant(Type type, std::vector<double> values) {
  return [type, values = std::move(values)] {
    ByteVector data;
    for (const double value : values) put_number(data, type, value);
    return data;
  };
}

/// Returns the number of values of the variable that are one element of the field.
Index width_of(ElementType type) { return is_text(type) ? size_of(type) : 1; }

/// Returns the field's variable without dimensions. Texts have NetCDF's attribute for their encoding.
Variable begun(const FieldDefinition& field, Type type) {
  Variable variable;
  variable.type = type;
  if (type == Type::text && codec::find_key(field.attributes, "_Encoding") == nullptr)
    variable.attributes.push_back(Attribute::text("_Encoding", "utf-8"));
  return variable;
}

/// Returns what makes the values of a field without time: those that were put, or fill values.
std::function<ByteVector()> fixed_values(const FieldDefinition& field, const ByteVector& fill) {
  const Index count =
      field.elements() * width_of(field.type) * static_cast<Index>(field.levels.values.size());
  return [values = field.values, fill, count] {
    if (values) return *values;
    ByteVector all;
    for (Index i = 0; i < count; ++i) all.insert(all.end(), fill.begin(), fill.end());
    return all;
  };
}

void set(std::vector<Attribute>& attributes, const Attribute& attribute) {
  const auto same = std::ranges::find(attributes, attribute.name, &Attribute::name);
  if (same == attributes.end())
    attributes.push_back(attribute);
  else
    *same = attribute;
}

/// Makes an attribute from the program's text. Limits and flags of values get the variable's type; all others
/// are texts.
Result<Attribute> attribute_of(const std::string& name, const std::string& value, Type type) {
  constexpr std::array numeric{"valid_min",    "valid_max",   "valid_range",
                               "actual_range", "flag_values", "flag_masks"};
  if (std::ranges::find(numeric, name) == numeric.end()) return Attribute::text(name, value);
  const Result<std::vector<double>> numbers = parse_number_list(value);
  TR_TRY(numbers.status().in(name));
  if (type == Type::text) return Status(Code::argument, cat(name, "= is for numbers, and these are texts"));
  Attribute attribute{name, type, {}};
  for (const double number : *numbers) {
    if (!holds(type, number))
      return Status(Code::argument, cat(name, "=", number, " is beyond the field's type"));
    put_number(attribute.values, type, number);
  }
  return attribute;
}

/// Adds the attributes that the program gives the field.
Status add_attributes(const FieldDefinition& field, Type type, Variable& variable) {
  for (const auto& [name, value] : field.attributes) {
    if (name == "coordinates") continue;
    const Result<Attribute> attribute = attribute_of(name, value, type);
    TR_TRY(attribute.status());
    set(variable.attributes, *attribute);
  }
  return {};
}

/// Returns the attributes of a variable with the latitudes, or the longitudes, of single points.
std::vector<Attribute> place_attributes(bool latitude) {
  const std::string_view name = latitude ? "latitude" : "longitude";
  return {Attribute::text("standard_name", name), Attribute::text("long_name", name),
          Attribute::text("units", latitude ? "degrees_north" : "degrees_east")};
}

/// Returns true if the coordinates of both dimensions follow from the grid.
bool is_map(const Grid& grid) { return grid.kind != Grid::Kind::unknown && grid.kind != Grid::Kind::told; }

/// Returns the field as its points lie on the grid. On a map, a field that lost dimensions shares those that
/// are left with the fields that have all of them.
FieldDefinition on_grid(const FieldDefinition& field, const Grid& grid) {
  FieldDefinition whole = field;
  if (!field.reduction.is_within_level() || !is_map(grid)) return whole;
  whole.shape = field.reduction.shape;
  whole.dimensions = field.reduction.dimensions;
  return whole;
}

/// Returns true if the field on its grid has a dimension that the field's records have lost.
bool has_lost(const FieldDefinition& field, const Grid& grid, std::size_t dimension) {
  const codec::Reduction& reduction = field.reduction;
  return is_map(grid) && reduction.is_within_level() && dimension < reduction.is_lost.size() &&
         reduction.is_lost[dimension] != 0;
}

/// Returns the quantity's standard_name. Winds on a turned grid get other names, because its rows and columns
/// do not go east and north.
std::string_view standard_name(const Quantity& quantity, const Grid& grid) {
  const bool turned = grid.is_turned();
  if (turned && quantity.standard_name == "eastward_wind") return "x_wind";
  if (turned && quantity.standard_name == "northward_wind") return "y_wind";
  return quantity.standard_name;
}

}  // namespace

Result<Type> type_of(ElementType type) {
  if (is_text(type)) return Type::text;
  switch (type) {
    case ElementType::i8:
      return Type::int8;
    case ElementType::i16:
      return Type::int16;
    case ElementType::i32:
      return Type::int32;
    case ElementType::i64:
      return Type::int64;
    case ElementType::f32:
      return Type::float32;
    case ElementType::f64:
      return Type::float64;
    case ElementType::byte:
      return Type::uint8;
    case ElementType::u16:
      return Type::uint16;
    case ElementType::u32:
      return Type::uint32;
    case ElementType::u64:
      return Type::uint64;
    case ElementType::c64:
    case ElementType::c128:
      break;
  }
  return Status(Code::format,
                cat("NetCDF holds real numbers, not ", name_of(type), "; write the parts as two fields"));
}

Conventions::Conventions(const codec::StreamDefinition& stream, Accept accept)
    : accept_(std::move(accept)), axis_(stream.time) {
  const std::string* const conventions = codec::find_key(stream.keys, codec::conventions_key);
  names_tell_ = conventions != nullptr && *conventions == codec::weather_conventions;
  contents_.attributes.push_back(Attribute::text("Conventions", "CF-1.8"));
  for (const auto& [name, value] : stream.attributes) set(contents_.attributes, Attribute::text(name, value));
  add_dimension(axis_.name(), 0);
  add_time(stream);
  if (stream.member) add_member(stream);
}

Status Conventions::check_stream(const codec::StreamDefinition& stream) {
  TR_TRY(check_attributes(stream.attributes));
  return check_name(stream.time.name()).in(cat("time_name=", stream.time.name()));
}

Status Conventions::check_attributes(const codec::Keys& attributes, bool of_field) {
  for (const auto& [name, value] : attributes) {
    TR_TRY(check_name(name).in(cat("attribute '", name, "'")));
    if (of_field && name == "coordinates") continue;
    constexpr std::array own{"_FillValue", "missing_value", "coordinates", "grid_mapping", "bounds"};
    if (std::ranges::find(own, name) != own.end())
      return {Code::argument,
              cat("attribute '", name,
                  "' follows from the definitions (missing= sets fill values): leave it out")};
    if (name == "scale_factor" || name == "add_offset")
      return {Code::argument,
              cat("attribute '", name, "' would change the values, which are stored as they are")};
  }
  return {};
}

bool Conventions::begin_alike(const Statistic& one, const Statistic& other) {
  return one.since == other.since &&
         (one.since != Statistic::Since::duration || one.duration == other.duration);
}

Status Conventions::add(const FieldDefinition& field, const Grid& grid) {
  TR_TRY(beyond_);
  TR_TRY(check_name(field.name));
  TR_TRY(check_attributes(field.attributes, true));
  const Result<Type> type = type_of(field.type);
  TR_TRY(type.status());
  TR_TRY(check_hybrid(field.levels));
  if (field.missing && !holds(*type, *field.missing))
    return {Code::argument, cat("missing=", *field.missing, " is no ", name_of(field.type))};
  Variable variable = begun(field, *type);
  TR_TRY(check_new(field));
  const Result<std::vector<std::string>> named = named_coordinates(field, grid);
  TR_TRY(named.status());
  if (field.has_time) variable.dimensions = {record_dimension};
  // Copies the entries, because later calls add to the lists and may move them.
  const Vertical levels = vertical(field.levels);
  const FieldDefinition whole = on_grid(field, grid);
  TR_TRY(check_dimensions(whole, grid));  // behind the levels, which may have made a dimension
  Horizontal points = horizontal(grid, whole);
  TR_TRY(add_axes(field, grid));
  if (levels.dimension) variable.dimensions.push_back(*levels.dimension);
  for (std::size_t i = 0; i < points.dimensions.size(); ++i)
    if (!has_lost(field, grid, i)) variable.dimensions.push_back(points.dimensions[i]);
  if (is_text(field.type)) variable.dimensions.push_back(text_dimension(size_of(field.type)));
  const std::string methods = methods_of(field, points);
  // They are for each point, and have all dimensions of the grid.
  if (field.reduction.is_within_level()) points.mapping = points.coordinates = "";
  if (names_tell_) add_quantity(field, grid, variable);
  std::string coordinates = scalars_ + points.coordinates;
  if (!levels.dimension && !levels.coordinate.empty()) coordinates += " " + levels.coordinate;
  if (field.statistic.process != Process::instant) {
    const Interval& bounded = interval(field.statistic);
    if (bounded.time != time_) coordinates += " " + contents_.variables[bounded.time].name;
  }
  if (!methods.empty()) variable.attributes.push_back(Attribute::text("cell_methods", methods));
  for (const std::string& each : *named)
    if (cat(coordinates, " ").find(cat(" ", each, " ")) == std::string::npos) coordinates += cat(" ", each);
  if (!coordinates.empty())
    variable.attributes.push_back(Attribute::text("coordinates", std::string_view(coordinates).substr(1)));
  if (!points.mapping.empty()) variable.attributes.push_back(Attribute::text("grid_mapping", points.mapping));
  TR_TRY(add_attributes(field, *type, variable));
  add_grid_reference(grid, variable);
  const ByteVector fill = fill_of(field, *type);
  if (field.has_time ? is_masked(field) : field.missing.has_value())
    variable.attributes.push_back({"_FillValue", *type, fill});
  if (!field.has_time) variable.data = fixed_values(field, fill);

  rename_unnamed(field.name);
  // A coordinate may have the field's name already.
  variable.name = is_taken(field.name) ? free_name(cat(field.name, "_", field.levels.type)) : field.name;
  const std::string final_name = variable.name;
  const std::size_t number = add_variable(std::move(variable));
  TR_TRY(beyond_);
  by_name_.emplace(field.name, fields_.size());
  contents_.has_records = field.has_time || (contents_.has_records && !fields_.empty());
  fields_.push_back({field.name, field.levels, number, field.elements(), *type, fill,
                     levels.dimension.has_value(), field.has_time, width_of(field.type)});
  const bool is_pressure = field.name == "sp" || field.name == "ps";
  const bool is_whole = field.reduction.operation == codec::Reduction::Operation::none;
  if (!is_whole) reduced_.insert(final_name);
  if (names_tell_ && is_pressure && is_whole) complete_formulas(final_name);
  return {};
}

/// Returns those dimensions of the field that the file has already.
std::vector<int> Conventions::known_dimensions(const FieldDefinition& field, const Grid& grid) const {
  std::vector<int> known;
  if (field.has_time) known.push_back(record_dimension);
  for (const Vertical& each : verticals_)
    if (each.dimension && are_same(each.levels, field.levels)) known.push_back(*each.dimension);
  const FieldDefinition whole = on_grid(field, grid);
  for (const Horizontal& each : horizontals_) {
    if (each.grid != grid || each.shape != whole.shape || each.names != whole.dimensions) continue;
    for (std::size_t i = 0; i < each.dimensions.size(); ++i)
      if (!has_lost(field, grid, i)) known.push_back(each.dimensions[i]);
  }
  for (const auto& [name, dimension] : named_)
    if (std::ranges::count(field.dimensions, name) > 0) known.push_back(dimension);
  return known;
}

/// Adds standard_name and units if the table has the field's name, otherwise the name as long_name.
void Conventions::add_quantity(const FieldDefinition& field, const Grid& grid, Variable& variable) const {
  if (const Quantity* const quantity = find_quantity(field.name)) {
    variable.attributes.push_back(Attribute::text("standard_name", standard_name(*quantity, grid)));
    variable.attributes.push_back(Attribute::text("units", quantity->units));
  } else {
    variable.attributes.push_back(Attribute::text("long_name", field.name));
  }
}

/// Adds the number and the UUID by which GRIB knows an unstructured grid, under the names that ICON's files
/// and CDI use. Those of the first grid become attributes of the file; those of another grid become
/// attributes of its fields.
void Conventions::add_grid_reference(const Grid& grid, Variable& variable) {
  if (grid.number_used == 0 && grid.uuid.empty()) return;
  std::vector<Attribute> told;
  if (grid.number_used != 0)
    told.push_back(
        Attribute::number("number_of_grid_used", Type::int32, static_cast<double>(grid.number_used)));
  if (!grid.uuid.empty()) told.push_back(Attribute::text("uuidOfHGrid", grid.uuid));
  const bool is_first = !referred_;
  if (is_first) referred_ = {grid.number_used, grid.uuid};
  if (!is_first && *referred_ == std::pair(grid.number_used, grid.uuid)) return;
  std::vector<Attribute>& to = is_first ? contents_.attributes : variable.attributes;
  for (Attribute& each : told) {
    // An attribute that the user has set is not replaced.
    if (std::ranges::find(to, each.name, &Attribute::name) == to.end()) to.push_back(std::move(each));
  }
}

/// Returns Code::argument if a field of this name has the same levels. GRIB tells fields of one name apart by
/// their levels.
Status Conventions::check_new(const FieldDefinition& field) const {
  const auto [first, last] = by_name_.equal_range(field.name);
  const bool defined = std::any_of(
      first, last, [&](const auto& each) { return are_same(fields_[each.second].levels_of, field.levels); });
  if (!defined) return {};
  return {Code::argument, "it is defined twice on the same levels; give one of them another name"};
}

void Conventions::add_time(const codec::StreamDefinition& stream) {
  Variable time{axis_.name(), {record_dimension}, Type::float64, {}};
  // CF-1.8, section 4.4: a variable with this standard_name counts from a date.
  if (axis_.has_base()) time.attributes.push_back(Attribute::text("standard_name", "time"));
  time.attributes.push_back(Attribute::text("long_name", "time"));
  time.attributes.push_back(Attribute::text("units", axis_.units(stream.base)));
  if (axis_.has_base()) time.attributes.push_back(Attribute::text("calendar", name_of(stream.calendar)));
  time.attributes.push_back(Attribute::text("axis", "T"));
  time_ = add_variable(std::move(time));
}

void Conventions::add_member(const codec::StreamDefinition& stream) {
  Variable member{"realization", {}, Type::int32, {}};
  member.attributes = {Attribute::text("standard_name", "realization"), Attribute::text("units", "1")};
  member.data = constant(Type::int32, {static_cast<double>(*stream.member)});
  add_variable(std::move(member));
  scalars_ += " realization";
}

/// Returns Code::argument if a name that the program gives to a dimension stands for something else already.
Status Conventions::check_dimensions(const FieldDefinition& field, const Grid& grid) const {
  if (is_map(grid) && !field.dimensions.empty() && field.dimensions.size() != 2)
    return {Code::argument,
            cat("the layout has the points of a map in ", counted(field.dimensions.size(), "dimension"),
                ", and names for them: give it the map's two dimensions, or no names")};
  const auto named = [&](const std::string& name) {
    return std::ranges::find(named_, name, &std::pair<std::string, int>::first);
  };
  if (named(field.name) != named_.end() || std::ranges::count(field.dimensions, field.name) > 0)
    return {Code::argument, "a dimension has its name: give the field or the dimension another one"};
  for (std::size_t i = 0; i < field.dimensions.size(); ++i) {
    const std::string& name = field.dimensions[i];
    TR_TRY(check_name(name).in("the name of a dimension"));
    const auto known = named(name);
    if (known == named_.end()) {
      if (is_taken(name))
        return {Code::argument,
                cat("dimension '", name, "' has the name of another variable or dimension of the file")};
      continue;
    }
    const Index length = contents_.dimensions[static_cast<std::size_t>(known->second)].length;
    if (length != field.shape[i])
      return {Code::argument, cat("dimension '", name, "' has ", field.shape[i], " elements here, and ",
                                  length, " in a field before: give one of them another name")};
    const auto is_same = [&](const Horizontal& each) {
      return each.grid == grid && each.names == field.dimensions && each.shape == field.shape;
    };
    if (is_map(grid) && std::ranges::none_of(horizontals_, is_same))
      return {Code::argument, cat("dimension '", name, "' belongs to another grid: give it another name")};
  }
  return {};
}

/// Adds the variables with the coordinates of named dimensions, and with their bounds.
Status Conventions::add_axes(const FieldDefinition& field, const Grid& grid) {
  if (!field.axes.empty() && is_map(grid))
    return {Code::argument,
            cat("dimension '", field.axes.front().dimension, "' has the coordinates of its grid already")};
  for (const codec::Axis& axis : field.axes) {
    const Result<Type> type = type_of(axis.type);
    TR_TRY(type.status().in(cat("dimension '", axis.dimension, "'")));
    const int dimension = named_dimension(axis.dimension, 0);
    Variable variable{axis.dimension, {dimension}, *type, {}};
    for (const auto& [name, value] : axis.attributes) {
      TR_TRY(check_name(name).in(cat("attribute '", name, "'")));
      const Result<Attribute> attribute = attribute_of(name, value, *type);
      TR_TRY(attribute.status().in(cat("dimension '", axis.dimension, "'")));
      set(variable.attributes, *attribute);
    }
    const std::string bounds = free_name(axis.dimension + "_bnds");
    if (!axis.bounds.empty()) set(variable.attributes, Attribute::text("bounds", bounds));
    variable.data = big_endian(axis.values, *type);
    add_variable(std::move(variable));
    if (axis.bounds.empty()) continue;
    Variable ends{bounds, {dimension, bounds_dimension()}, *type, {}};
    ends.data = big_endian(axis.bounds, *type);
    add_variable(std::move(ends));
  }
  return beyond_;
}

int Conventions::named_dimension(const std::string& name, Index length) {
  const auto known = std::ranges::find(named_, name, &std::pair<std::string, int>::first);
  if (known != named_.end()) return known->second;
  return named_.emplace_back(name, add_dimension(name, length)).second;
}

Conventions::Horizontal& Conventions::horizontal(const Grid& grid, const FieldDefinition& field) {
  const std::vector<Index>& shape = field.shape;
  for (Horizontal& each : horizontals_) {
    if (each.grid == grid && each.shape == shape && each.names == field.dimensions) return each;
  }
  Horizontal& added = horizontals_.emplace_back(Horizontal{grid, shape, field.dimensions, {}, {}, {}});
  if (is_map(grid)) {
    add_grid_coordinates(added);
    return added;
  }
  using Names = std::vector<std::vector<std::string>>;
  static const Names& names = *new const Names{{}, {"cell"}, {"y", "x"}, {"z", "y", "x"}};
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (!added.names.empty()) {
      added.dimensions.push_back(named_dimension(added.names[i], shape[i]));
      continue;
    }
    const std::string name = shape.size() < names.size() ? names[shape.size()][i] : cat("dim", i);
    added.dimensions.push_back(add_dimension(free_name(name), shape[i]));
  }
  if (grid.kind == Grid::Kind::told) add_told_coordinates(added);
  return added;
}

/// Adds the latitudes and longitudes of points, and of the corners of their cells, that the program has
/// given.
void Conventions::add_told_coordinates(Horizontal& added) {
  const std::shared_ptr<const codec::Coordinates> told = added.grid.coordinates;
  const Bytes size = told->points() * 8;
  std::vector<int> with_corners = added.dimensions;
  if (told->corners > 0) with_corners.push_back(add_dimension(free_name("vertices"), told->corners));
  const auto part = [&](Bytes begin, Bytes length) {
    return [told, begin, length] {
      if (told->values.empty()) return ByteVector();
      const auto at = told->values.begin() + begin;
      return ByteVector(at, at + length);
    };
  };
  for (const bool latitude : {true, false}) {
    const std::string name = free_name(latitude ? "lat" : "lon"), bounds = free_name(name + "_bnds");
    added.coordinates += " " + name;
    Variable variable{name, added.dimensions, Type::float64, place_attributes(latitude)};
    if (told->corners > 0) variable.attributes.push_back(Attribute::text("bounds", bounds));
    variable.data = part(latitude ? 0 : size, size);
    add_variable(std::move(variable));
    if (told->corners == 0) continue;
    const Bytes length = size * told->corners;
    Variable corners{bounds, with_corners, Type::float64, {}};
    corners.data = part(2 * size + (latitude ? 0 : length), length);
    add_variable(std::move(corners));
  }
}

void Conventions::add_grid_coordinates(Horizontal& added) {
  const Grid& grid = added.grid;
  const bool turned = grid.kind == Grid::Kind::rotated, projected = grid.is_projected();
  std::string north = free_name(projected ? "y" : turned ? "rlat" : "lat");
  std::string east = free_name(projected ? "x" : turned ? "rlon" : "lon");
  if (added.names.empty()) {
    added.dimensions = {add_dimension(north, grid.y.points), add_dimension(east, grid.x.points)};
  } else {
    north = added.names[0];
    east = added.names[1];
    added.dimensions = {named_dimension(north, grid.y.points), named_dimension(east, grid.x.points)};
  }
  for (const std::string_view name : {"latitude", "longitude"})
    added.standard_names.push_back(projected
                                       ? cat("projection_", name == "latitude" ? "y" : "x", "_coordinate")
                                   : turned ? cat("grid_", name)
                                            : std::string(name));
  const auto attributes = [&](bool is_y) -> std::vector<Attribute> {
    const std::string_view name = is_y ? "latitude" : "longitude", letter = is_y ? "y" : "x";
    const std::string units = projected ? "m" : turned ? "degrees" : is_y ? "degrees_north" : "degrees_east";
    const std::string& standard = added.standard_names[is_y ? 0 : 1];
    const std::string text = projected ? cat(letter, " in the projection")
                             : turned  ? cat(name, " in the rotated grid")
                                       : std::string(name);
    return {Attribute::text("standard_name", standard), Attribute::text("long_name", text),
            Attribute::text("units", units), Attribute::text("axis", is_y ? "Y" : "X")};
  };
  add_coordinate(north, {added.dimensions[0]}, grid.rows(), attributes(true));
  add_coordinate(east, {added.dimensions[1]}, grid.columns(), attributes(false));
  if (!grid.is_turned()) return;
  add_mapping(added);
  add_place_on_globe(added, true);
  add_place_on_globe(added, false);
}

/// Adds the variable that describes how a turned grid lies on the globe (CF conventions, appendix F).
void Conventions::add_mapping(Horizontal& added) {
  const Grid& grid = added.grid;
  const Projection& projection = grid.projection;
  const std::string name = grid.kind == Grid::Kind::rotated   ? "rotated_pole"
                           : grid.kind == Grid::Kind::lambert ? "lambert_conformal_conic"
                                                              : "polar_stereographic";
  added.mapping = free_name(name);
  Variable mapping{added.mapping, {}, Type::int32, {}};
  mapping.data = constant(Type::int32, {0});
  const auto add_text = [&](std::string_view attribute, std::string_view value) {
    mapping.attributes.push_back(Attribute::text(attribute, value));
  };
  const auto add = [&](std::string_view attribute, std::initializer_list<double> values) {
    Attribute added_number{std::string(attribute), Type::float64, {}};
    for (const double each : values) put_number(added_number.values, Type::float64, each);
    mapping.attributes.push_back(std::move(added_number));
  };
  if (grid.kind == Grid::Kind::rotated) {
    add_text("grid_mapping_name", "rotated_latitude_longitude");
    // The conventions have the north pole of the turned grid, and GRIB has its south pole.
    add("grid_north_pole_latitude", {-grid.south_pole_latitude});
    add("grid_north_pole_longitude", {std::remainder(grid.south_pole_longitude + 180, 360)});
  } else if (grid.kind == Grid::Kind::lambert) {
    add_text("grid_mapping_name", name);
    if (projection.is_tangent())
      add("standard_parallel", {projection.parallel_1});
    else
      add("standard_parallel", {projection.parallel_1, projection.parallel_2});
    add("longitude_of_central_meridian", {projection.central_longitude});
    add("latitude_of_projection_origin", {projection.origin_latitude});
  } else {
    add_text("grid_mapping_name", name);
    add("straight_vertical_longitude_from_pole", {projection.central_longitude});
    add("latitude_of_projection_origin", {projection.origin_latitude});
    // GRIB may state the parallel without a sign. In the conventions it has the sign of the pole.
    add("standard_parallel", {std::copysign(projection.parallel_1, projection.origin_latitude)});
  }
  if (grid.is_projected()) {
    add("false_easting", {0});
    add("false_northing", {0});
    if (projection.earth.is_sphere()) {
      add("earth_radius", {projection.earth.major});
    } else {
      add("semi_major_axis", {projection.earth.major});
      add("semi_minor_axis", {projection.earth.minor});
    }
  }
  add_variable(std::move(mapping));
}

/// Adds the variable with the latitude, or the longitude, of each point of a turned grid. Its values are
/// computed when a file begins.
void Conventions::add_place_on_globe(Horizontal& added, bool latitude) {
  const std::string name = free_name(latitude ? "lat" : "lon");
  added.coordinates += " " + name;
  Variable variable{name, added.dimensions, Type::float64, place_attributes(latitude)};
  variable.data = [grid = added.grid, latitude] {
    ByteVector data;
    for (Index j = 0; j < grid.y.points; ++j) {
      for (Index i = 0; i < grid.x.points; ++i) {
        const Grid::Point point = grid.on_globe(grid.y.at(j), grid.x.at(i));
        put_number(data, Type::float64, latitude ? point.latitude : point.longitude);
      }
    }
    return data;
  };
  add_variable(std::move(variable));
}

Conventions::Vertical& Conventions::vertical(const Levels& levels) {
  for (Vertical& each : verticals_) {
    if (are_same(each.levels, levels)) return each;
  }
  Vertical& added = verticals_.emplace_back(Vertical{levels, {}, {}});
  const bool one = levels.values.size() == 1;
  // A single level of a type without values, such as the surface, has no coordinate.
  if (one && find_level_type(levels.type) == nullptr && levels.values.front() == 0) return added;
  add_level_coordinate(added);
  return added;
}

void Conventions::add_level_coordinate(Vertical& added) {
  const Levels& levels = added.levels;
  const LevelType* const type = find_level_type(levels.type);
  added.coordinate = free_name(type != nullptr ? std::string(type->dimension) : levels.type);
  std::vector<int> dimensions;
  if (levels.values.size() > 1) {
    added.dimension = add_dimension(added.coordinate, static_cast<Index>(levels.values.size()));
    dimensions = {*added.dimension};
  }
  std::vector<Attribute> attributes;
  if (type != nullptr && !type->standard_name.empty() &&
      (levels.type != "hybrid" || !levels.coefficients.empty()))
    attributes.push_back(Attribute::text("standard_name", type->standard_name));
  attributes.push_back(Attribute::text("long_name", levels.type));
  attributes.push_back(Attribute::text("units", type != nullptr ? type->units : "1"));
  if (type != nullptr) attributes.push_back(Attribute::text("positive", type->positive));
  attributes.push_back(Attribute::text("axis", "Z"));
  const std::string bounds = free_name(added.coordinate + "_bnds");
  if (!levels.bottoms.empty()) attributes.push_back(Attribute::text("bounds", bounds));
  const std::size_t coordinate =
      add_coordinate(added.coordinate, dimensions, levels.values, std::move(attributes));
  if (!levels.bottoms.empty()) {
    std::vector<double> pairs;
    for (std::size_t i = 0; i < levels.values.size(); ++i) {
      pairs.push_back(levels.values[i]);
      pairs.push_back(levels.bottoms[i]);
    }
    dimensions.push_back(bounds_dimension());
    add_coordinate(bounds, dimensions, pairs, {});
  }
  if (levels.type == "hybrid" && !levels.coefficients.empty()) add_hybrid(added, coordinate);
}

/// Adds the coefficients of hybrid levels. They are given for half levels, which are the bounds of levels. A
/// level itself gets the mean of its two half levels.
void Conventions::add_hybrid(Vertical& added, std::size_t coordinate) {
  const Levels& levels = added.levels;
  const std::size_t half = levels.coefficients.size() / 2;
  std::vector<int> dimensions, with_bounds;
  if (added.dimension) dimensions = {*added.dimension};
  with_bounds = dimensions;
  with_bounds.push_back(bounds_dimension());
  const std::string bounds = added.coordinate + "_bnds";
  contents_.variables[coordinate].attributes.push_back(Attribute::text("bounds", bounds));
  std::vector<double> edges;
  for (const double level : levels.values) edges.insert(edges.end(), {level - 0.5, level + 0.5});
  added.formula_of = {{coordinate, ""}, {add_coordinate(bounds, with_bounds, edges, {}), "_bnds"}};
  for (const bool pressure : {true, false}) {
    std::vector<double> middle;
    edges.clear();
    for (const double level : levels.values) {
      const std::size_t at = (pressure ? 0 : half) + static_cast<std::size_t>(level);
      const double above = levels.coefficients[at - 1], below = levels.coefficients[at];
      middle.push_back((above + below) / 2);
      edges.insert(edges.end(), {above, below});
    }
    const std::string name = cat(added.coordinate, pressure ? "_ap" : "_b");
    const std::vector<Attribute> attributes{
        Attribute::text("long_name", cat(pressure ? "pressure" : "sigma", " part of the hybrid coordinate")),
        Attribute::text("units", pressure ? "Pa" : "1")};
    add_coordinate(name, dimensions, middle, attributes);
    add_coordinate(name + "_bnds", with_bounds, edges, attributes);
  }
  for (const std::string pressure : {"sp", "ps"}) {
    if (names_tell_ && is_taken(pressure) && !reduced_.contains(pressure)) complete_formulas(pressure);
  }
}

/// Adds formula_terms to the coordinates of hybrid levels. The formula names the field of surface pressure,
/// which the program may define before or after the levels; so both places call this.
void Conventions::complete_formulas(const std::string& pressure) {
  for (Vertical& each : verticals_) {
    for (const auto& [variable, ending] : std::exchange(each.formula_of, {})) {
      std::vector<Attribute>& attributes = contents_.variables[variable].attributes;
      const auto term = [&, &end = ending](std::string_view name) {
        return cat(each.coordinate, "_", name, end);
      };
      if (ending.empty()) attributes.push_back(Attribute::text("computed_standard_name", "air_pressure"));
      attributes.push_back(
          Attribute::text("formula_terms", cat("ap: ", term("ap"), " b: ", term("b"), " ps: ", pressure)));
    }
  }
}

const Conventions::Interval& Conventions::interval(const Statistic& statistic) {
  for (const Interval& each : intervals_) {
    if (begin_alike(each.statistic, statistic)) return each;
  }
  Interval added{statistic, time_, 0};
  if (!intervals_.empty()) {
    // A variable of time has one set of bounds, so other intervals need a variable of their own.
    Variable time = contents_.variables[time_];
    time.name = free_name(axis_.name());
    std::erase_if(time.attributes,
                  [](const Attribute& each) { return each.name == "axis" || each.name == "bounds"; });
    added.time = add_variable(std::move(time));
  }
  const std::string name = free_name(contents_.variables[added.time].name + "_bnds");
  contents_.variables[added.time].attributes.push_back(Attribute::text("bounds", name));
  added.bounds = add_variable({name, {record_dimension, bounds_dimension()}, Type::float64, {}});
  return intervals_.emplace_back(std::move(added));
}

int Conventions::add_dimension(const std::string& name, Index length) {
  contents_.dimensions.push_back({name, length});
  return static_cast<int>(contents_.dimensions.size()) - 1;
}

int Conventions::bounds_dimension() {
  if (!bounds_) bounds_ = add_dimension(free_name("bnds"), 2);
  return *bounds_;
}

/// Returns the last dimension of texts of so many bytes.
int Conventions::text_dimension(Index bytes) {
  const auto known = std::ranges::find(of_texts_, bytes, &std::pair<Index, int>::first);
  if (known != of_texts_.end()) return known->second;
  return of_texts_.emplace_back(bytes, add_dimension(free_name(cat("string", bytes)), bytes)).second;
}

std::size_t Conventions::add_variable(Variable variable) {
  if (beyond_.is_ok()) beyond_ = contents_.add(std::move(variable));
  if (beyond_.is_ok()) beyond_ = accept_(contents_);
  return std::max<std::size_t>(contents_.variables.size(), 1) - 1;
}

std::size_t Conventions::add_coordinate(const std::string& name, std::vector<int> dimensions,
                                        const std::vector<double>& values,
                                        std::vector<Attribute> attributes) {
  Variable variable{name, std::move(dimensions), Type::float64, std::move(attributes)};
  variable.data = constant(Type::float64, values);
  return add_variable(std::move(variable));
}

}  // namespace tailrace::cf
