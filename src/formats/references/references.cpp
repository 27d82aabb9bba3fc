// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/references/references.hpp"

#include <algorithm>
#include <set>

#include "formats/cf/fields.hpp"
#include "ground/base/text.hpp"
#include "ground/storage/identity.hpp"
#include "ground/storage/paths.hpp"
#include "ground/storage/replace.hpp"

#if TAILRACE_HAVE_JSON
#include "formats/cf/json.hpp"
#endif

namespace tailrace::references {

#if TAILRACE_HAVE_JSON

namespace {

using cf::base64;
using cf::Contents;
using cf::Conventions;
using cf::Json;
using cf::number_of;
using cf::text_of;
using cf::Type;
using cf::value_of;
using cf::Variable;

/// Returns NumPy's name of a type.
std::string dtype_of(Type type, bool big_endian) {
  const Bytes size = cf::size_of(type);
  if (type == Type::text) return "|S1";  // readers join the texts along the last dimension
  const std::string order = size == 1 ? "|" : big_endian ? ">" : "<";
  const bool real = type == Type::float32 || type == Type::float64;
  return cat(order, real ? "f" : cf::is_unsigned(type) ? "u" : "i", size);
}

std::vector<Index> shape_of(const Contents& contents, const Variable& variable, std::size_t steps) {
  std::vector<Index> shape;
  for (const int dimension : variable.dimensions)
    shape.push_back(dimension == 0 ? static_cast<Index>(steps)
                                   : contents.dimensions[static_cast<std::size_t>(dimension)].length);
  return shape;
}

/// Returns the name of an array's first chunk: its position in the grid of chunks.
std::string first_chunk(std::size_t dimensions) {
  std::string text = "0";
  for (std::size_t i = 1; i < dimensions; ++i) text += ".0";
  return text;
}

}  // namespace

Status available() { return {}; }

#else

Status available() {
  return {Code::unsupported,
          "references=on needs JSON, and this Tailrace was built without nlohmann-json; build with it"};
}

#endif

namespace {

/// If readers need a filter to decode records, the records are GRIB messages, whose fields have GRIB's short
/// names: use the conventions of weather, which describe a field by its short name.
codec::StreamDefinition with_names(codec::StreamDefinition stream, const codec::Decoding& decoding) {
  if (!decoding.filter.empty())
    stream.keys = {{std::string(codec::conventions_key), std::string(codec::weather_conventions)}};
  return stream;
}

}  // namespace

References::References(const codec::StreamDefinition& stream, codec::Decoding decoding)
    : decoding_(std::move(decoding)),
      conventions_(with_names(stream, decoding_), [](const cf::Contents&) { return Status(); }) {}

Result<std::unique_ptr<References>> References::make(const codec::StreamDefinition& stream,
                                                     const std::vector<codec::FieldDefinition>& fields,
                                                     codec::Decoding decoding) {
  TR_TRY(available());
  TR_TRY(cf::Conventions::check_stream(stream));
  std::unique_ptr<References> made(new References(stream, std::move(decoding)));
  for (const codec::FieldDefinition& field : fields) TR_TRY(made->add(field));
  for (const codec::GivenAttribute& each : stream.given) TR_TRY(made->add_attribute(each));
  return made;
}

Status References::add(const codec::FieldDefinition& field) {
  const std::string context = cat("references=on: field '", field.name, "'");
  const Result<cf::Grid> grid =
      cf::grid_of(field.georeference.keys, cf::shape_put(field), field.georeference.coordinates);
  TR_TRY(grid.status().in(context));
  return conventions_.add(field, *grid).in(context);
}

Status References::add_attribute(const codec::GivenAttribute& given) {
  return cf::give(conventions_, given).in("references=on");
}

#if TAILRACE_HAVE_JSON

/// One entry of the reference file: a name, and its value as JSON.
struct References::Line {
  std::string name;
  std::string value;
};

const Conventions::Field* References::field_of(std::size_t variable) const {
  const auto& fields = conventions_.fields();
  const auto found = std::ranges::find(fields, variable, &Conventions::Field::variable);
  return found == fields.end() || !found->has_time ? nullptr : &*found;
}

const Conventions::Interval* References::bounds_in(std::size_t variable) const {
  const auto& intervals = conventions_.intervals();
  const auto found = std::ranges::find(intervals, variable, &Conventions::Interval::bounds);
  return found == intervals.end() ? nullptr : &*found;
}

/// True if the begin of an interval is known for each step. It is not known for an interval since the last
/// output: the first step of a file does not say when that was.
bool References::is_told(const Conventions::Interval& interval) const {
  return interval.statistic.since != codec::Statistic::Since::last_output;
}

/// Returns the values of a variable with times or with their bounds.
ByteVector References::times_of(std::size_t variable, const std::vector<codec::FinishedStep>& steps) const {
  ByteVector values;
  const Conventions::Interval* const interval = bounds_in(variable);
  for (const codec::FinishedStep& step : steps) {
    if (interval != nullptr)
      cf::put_big_endian(values, conventions_.time_at(interval->statistic.interval_start(step.lead, 0)));
    cf::put_big_endian(values, conventions_.time_at(step.lead));
  }
  return values;
}

/// Returns the variables of the fields that have all their levels in each step.
std::set<std::size_t> whole_fields(const std::vector<Conventions::Field>& fields,
                                   const std::vector<codec::FinishedStep>& steps) {
  std::vector<Index> there(fields.size());
  for (const codec::FinishedStep& step : steps) {
    std::set<std::pair<int, Index>> levels;
    for (const codec::FinishedStep::Record& each : step.records) levels.emplace(each.field, each.level);
    for (const auto& [field, level] : levels) ++there[static_cast<std::size_t>(field)];
  }
  std::set<std::size_t> whole;
  for (std::size_t i = 0; i < fields.size(); ++i)
    if (there[i] == fields[i].levels() * std::ssize(steps)) whole.insert(fields[i].variable);
  return whole;
}

const cf::Attribute* fill_of(const Variable& variable) {
  const auto found = std::ranges::find(variable.attributes, "_FillValue", &cf::Attribute::name);
  return found == variable.attributes.end() ? nullptr : &*found;
}

/// Returns the metadata of all arrays, and the values of those that are no fields.
std::vector<References::Line> References::arrays(const std::vector<codec::FinishedStep>& steps) const {
  std::vector<Line> lines;
  const Contents& contents = conventions_.contents();
  const std::set<std::size_t> whole = whole_fields(conventions_.fields(), steps);
  for (std::size_t number = 0; number < contents.variables.size(); ++number) {
    const Variable& variable = contents.variables[number];
    const Conventions::Interval* const interval = bounds_in(number);
    if (!contents.is_in_file(variable) || (interval != nullptr && !is_told(*interval))) continue;
    const Conventions::Field* const field = field_of(number);
    const bool decoded = field != nullptr && !decoding_.filter.empty();
    const Type type = decoded ? Type::float64 : variable.type;
    Json attributes = Json::object();
    for (const cf::Attribute& attribute : variable.attributes) {
      // Zarr keeps the fill value beside the attributes.
      if (attribute.name == "_FillValue" || (decoded && attribute.name == "missing_value")) continue;
      const auto owner = std::ranges::find(conventions_.intervals(), number, &Conventions::Interval::time);
      const bool untold = owner != conventions_.intervals().end() && !is_told(*owner);
      if (untold && attribute.name == "bounds") continue;
      attributes[attribute.name] = value_of(attribute);
    }
    Json names = Json::array();
    for (const int dimension : variable.dimensions)
      names.push_back(contents.dimensions[static_cast<std::size_t>(dimension)].name);
    attributes["_ARRAY_DIMENSIONS"] = std::move(names);
    std::vector<Index> shape = shape_of(contents, variable, steps.size());
    Json array{{"zarr_format", 2}, {"shape", shape}};
    // Each record is a chunk of its field's array: one level in one step.
    const bool has_levels = field != nullptr && field->levels() > 1;
    if (field != nullptr) shape.front() = 1;
    if (has_levels) shape[1] = 1;
    array["chunks"] = shape;
    array["dtype"] = dtype_of(type, field == nullptr || decoding_.big_endian);
    array["order"] = "C";
    array["compressor"] = nullptr;
    array["filters"] = nullptr;
    // Readers of Zarr 2 take the fill value for "no value", and turn integers that have one into floats. So
    // only arrays that need it get one.
    array["fill_value"] = nullptr;
    if (decoded) {
      const auto dot = Json{{"id", decoding_.filter}, {"var", variable.name}, {"dtype", "float64"}};
      array["filters"] = Json::array({dot});
      array["fill_value"] = "NaN";
    } else if (field != nullptr && (fill_of(variable) != nullptr || !whole.contains(number))) {
      array["fill_value"] = type == Type::text ? Json("") : number_of(type, field->fill);
    } else if (const cf::Attribute* const fill = fill_of(variable)) {
      array["fill_value"] = number_of(type, fill->values);  // of a field without time
    }
    lines.push_back({cat(variable.name, "/.zarray"), text_of(text_of(array))});
    lines.push_back({cat(variable.name, "/.zattrs"), text_of(text_of(attributes))});
    if (field != nullptr) continue;
    const ByteVector values = Contents::is_record(variable) ? times_of(number, steps)
                              : variable.data               ? variable.data()
                                                            : ByteVector();
    if (!values.empty()) {
      lines.push_back(
          {cat(variable.name, "/", first_chunk(shape.size())), text_of(cat("base64:", base64(values)))});
    }
  }
  return lines;
}

std::string References::text(const std::string& data_path,
                             const std::vector<codec::FinishedStep>& steps) const {
  const Contents& contents = conventions_.contents();
  Json attributes = Json::object();
  for (const cf::Attribute& each : contents.attributes) attributes[each.name] = value_of(each);
  std::string text = cat(
      "{\"version\":1,\"templates\":{\"f\":", text_of(storage::tidy_path(storage::path_from_root(data_path))),
      "},\"refs\":{\n\".zgroup\":", text_of(text_of(Json{{"zarr_format", 2}})),
      ",\n\".zattrs\":", text_of(text_of(attributes)));
  for (const Line& line : arrays(steps)) text += cat(",\n", text_of(line.name), ":", line.value);
  // There may be millions of records: make the texts around their numbers once for each field.
  struct Around {
    std::string begin, end;
    bool has_levels = false;
  };
  std::vector<Around> around;
  for (const Conventions::Field& field : conventions_.fields()) {
    const Variable& variable = contents.variables[field.variable];
    const bool has_levels = field.levels() > 1;
    const std::string name = text_of(cat(variable.name, "/"));
    around.push_back({cat(",\n", name.substr(0, name.size() - 1)), "", has_levels});
    for (std::size_t i = has_levels ? 2 : 1; i < variable.dimensions.size(); ++i) around.back().end += ".0";
    around.back().end += "\":[\"{{f}}\",";
  }
  for (std::size_t step = 0; step < steps.size(); ++step) {
    for (const codec::FinishedStep::Record& record : steps[step].records) {
      const Around& texts = around[static_cast<std::size_t>(record.field)];
      text += texts.begin;
      text += std::to_string(step);
      if (texts.has_levels) text += cat(".", record.level);
      text += texts.end;
      text += cat(record.offset, ",", record.length, "]");
    }
  }
  return text + "\n}}\n";
}

#else

std::string References::text(const std::string&, const std::vector<codec::FinishedStep>&) const { return {}; }

#endif

Status References::write(storage::Target& target, const std::string& path, const std::string& data_path,
                         const std::vector<codec::FinishedStep>& steps) const {
  return guarded(
      [&]() -> Status { return storage::replace_file(target, path, text(data_path, steps), path + ".new"); });
}

}  // namespace tailrace::references
