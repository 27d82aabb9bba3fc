// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/netcdf4/codec.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "formats/cf/fields.hpp"
#include "formats/codec/plain.hpp"
#include "formats/netcdf4/chunks.hpp"
#include "formats/netcdf4/metadata.hpp"
#include "ground/base/text.hpp"

namespace tailrace::netcdf4 {

namespace {

using cf::Conventions;
using codec::FieldDefinition;
using codec::FinishedStep;
using codec::RecordKey;

/// Returns Code::argument if an attribute has a name that is reserved: by HDF5 for dimension scales, by
/// netCDF-C (attributes.c), or by this library for rounding.
Status check_names(const codec::Keys& attributes) {
  constexpr std::array<std::string_view, 12> reserved{"CLASS",
                                                      "NAME",
                                                      "DIMENSION_LIST",
                                                      "REFERENCE_LIST",
                                                      "DIMENSION_LABELS",
                                                      "_Netcdf4Coordinates",
                                                      "_Netcdf4Dimid",
                                                      "_NCProperties",
                                                      "_nc3_strict",
                                                      "_Format",
                                                      "_IsNetcdf4",
                                                      "_SuperblockVersion"};
  for (const auto& [name, value] : attributes) {
    if (std::ranges::find(reserved, name) != reserved.end())
      return {Code::argument, cat("attribute '", name,
                                  "' is one that NetCDF-4 files have by themselves: "
                                  "leave it out")};
  }
  return cf::check_quantisation_names(attributes);
}

class ChunkedEncoder final : public codec::Encoder {
 public:
  ChunkedEncoder(const cf::Fields& fields, const std::vector<RecordShape>& records)
      : fields_(fields), records_(records) {}

  Status encode(const RecordKey& key, std::byte* values, Index count, ByteVector& out) override {
    TR_TRY(fields_.check_record(key, count));
    if (const ElementType type = fields_.type_of(key.field); is_text(type))
      codec::end_texts(std::span(values, static_cast<std::size_t>(count * size_of(type))), size_of(type));
    return chunks_.encode(records_[static_cast<std::size_t>(key.field)], values, key.interval_start, out);
  }
  [[nodiscard]] std::optional<codec::KeptBits> kept_bits() const override { return chunks_.kept_bits(); }

 private:
  const cf::Fields& fields_;
  const std::vector<RecordShape>& records_;
  ChunkEncoder chunks_;
};

/// The codec of NetCDF-4. A record of a field is one level of its variable in one step, as one chunk of HDF5
/// or several.
class Netcdf4Codec final : public codec::Codec {
 public:
  explicit Netcdf4Codec(codec::StreamDefinition stream)
      : fields_(stream, [](const cf::Contents&) { return Status(); }) {
    definitions_.stream = std::move(stream);
    definitions_.stream.given.clear();  // they are added one by one
  }

  Status define(const FieldDefinition& field) override {
    const Result<ByteVector> prepared = fields_.prepare(field);
    TR_TRY(prepared.status());
    TR_TRY(check_can_be_finished(field, *prepared));
    return adopt(field, *prepared);
  }
  [[nodiscard]] ByteVector prepared(int field) const override { return fields_.prepared(field); }
  Status adopt(const FieldDefinition& field, std::span<const std::byte> prepared) override {
    const Status added = add(field, prepared);
    if (!added.is_ok()) take_back();
    return added;
  }
  [[nodiscard]] bool has_coordinates() const override { return true; }
  Status add_attribute(const codec::GivenAttribute& given) override {
    TR_TRY(check_names({{given.name, ""}}));
    TR_TRY(fields_.add_attribute(given));
    definitions_.stream.given.push_back(given);
    return {};
  }
  [[nodiscard]] ByteVector head() const override { return encode_head(definitions_); }
  [[nodiscard]] Result<std::optional<codec::Ending>> ending(const codec::ReadBytes& read,
                                                            std::span<const FinishedStep> steps,
                                                            Bytes data_begin, Bytes data_end) const override;
  [[nodiscard]] std::unique_ptr<codec::Encoder> encoder() const override {
    return std::make_unique<ChunkedEncoder>(fields_, records_);
  }
  [[nodiscard]] std::optional<codec::PlainValues> plain(int field) const override {
    const RecordShape& record = at(field);
    const bool is_values = record.compression.method == compression::Method::none &&
                           record.quantisation.keeps_all() && record.count() == 1 &&
                           record.trailer_bytes() == 0 && !is_text(fields_.type_of(field));
    return is_values ? std::optional(codec::PlainValues{record.element_size}) : std::nullopt;
  }
  [[nodiscard]] ElementType assembled_type(int field) const override { return fields_.type_of(field); }
  [[nodiscard]] double cost(int field) const override {
    const RecordShape& record = at(field);
    const auto bytes = static_cast<double>(record.chunk_bytes() * record.count());
    return 1000.0 + bytes * compression::cost(record.compression.method) +
           cf::cost(record.quantisation, fields_.type_of(field), bytes);
  }
  [[nodiscard]] Bytes encoded_bound(int field) const override { return at(field).bound(); }
  [[nodiscard]] Bytes working_bytes(int field) const override { return at(field).working_bytes(); }
  /// Compares the fields of a file with those of the stream `now`. Returns the first difference that keeps
  /// records of the stream from following, or an empty text.
  [[nodiscard]] std::string difference_to(const Netcdf4Codec& now) const;
  /// Returns all attributes that must stay while a file goes on.
  [[nodiscard]] std::vector<cf::Fixed> lasting_attributes() const {
    return cf::lasting_attributes(fields_.conventions().contents());
  }
  /// The variables that are no fields and have no steps: coordinates, bounds, names of levels.
  struct Coordinates {
    std::vector<ByteVector> values;
    std::vector<cf::Fixed> variables;  // they lie in `values`
  };
  [[nodiscard]] Coordinates coordinates() const;
  [[nodiscard]] std::vector<RecordsOfField> records_of_fields() const;

 private:
  [[nodiscard]] const RecordShape& at(int field) const { return records_[static_cast<std::size_t>(field)]; }
  Status add(const FieldDefinition& field, std::span<const std::byte> prepared);
  void keep(const FieldDefinition& field);
  Status check_can_be_finished(const FieldDefinition& field, std::span<const std::byte> prepared) const;
  void take_back();
  [[nodiscard]] std::vector<Index> record_dimensions(int field) const;
  [[nodiscard]] std::string difference_to(const Netcdf4Codec& now, std::size_t number) const;
  Status describe(const codec::ReadBytes& read, std::span<const FinishedStep> steps,
                  Description& description) const;
  Status describe_record(const codec::ReadBytes& read, Index step, const FinishedStep::Record& each,
                         Description& description, std::vector<std::int64_t>& starts) const;
  void add_times(std::span<const FinishedStep> steps, const std::vector<std::vector<std::int64_t>>& starts,
                 Description& description) const;
  [[nodiscard]] std::size_t interval_of(int field) const;

  cf::Fields fields_;
  std::vector<RecordShape> records_;  // by field
  Definitions definitions_;
};

std::vector<RecordsOfField> Netcdf4Codec::records_of_fields() const {
  std::vector<RecordsOfField> all;
  for (int i = 0; i < static_cast<int>(records_.size()); ++i) {
    // A record that lacks a dimension of its grid is no map.
    const bool is_map =
        !definitions_.fields[static_cast<std::size_t>(i)].definition.reduction.is_within_level();
    all.push_back({at(i), fields_.type_of(i), is_map ? fields_.grid(i) : cf::Grid()});
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    const FieldDefinition& field = definitions_.fields[i].definition;
    if (field.has_time) continue;
    RecordShape& record = all[i].record;
    record.shape = field.shape;
    record.element_size = scalar_size_of(field.type);
    if (is_text(field.type)) record.shape.push_back(size_of(field.type));
    record.missing = field.missing;
    record.fill = fields_.at(static_cast<int>(i)).fill;
    std::ranges::reverse(record.fill);
  }
  return all;
}

bool is_since_last_output(const codec::Statistic& statistic) {
  return statistic.process != codec::Process::instant &&
         statistic.since == codec::Statistic::Since::last_output;
}

/// Returns an error if the HDF5 library does not take the field, so that the program learns it before it puts
/// records. Makes the ending of a file that has this field alone, no steps, and no data of coordinates. Uses
/// a second codec, so that this one does not change.
Status Netcdf4Codec::check_can_be_finished(const FieldDefinition& field,
                                           std::span<const std::byte> prepared) const {
  return guarded([&]() -> Status {
    Netcdf4Codec alone(definitions_.stream);
    TR_TRY(alone.add(cf::Fields::alone(field), prepared));
    Description description;
    description.contents = &alone.fields_.conventions().contents();
    description.data_begin = description.data_end = std::ssize(alone.head());
    description.has_data = false;
    TR_TRY(alone.describe({}, {}, description));
    return make_metadata(description).status().in(cat("field '", field.name, "'"));
  });
}

/// Sets the codec back to the fields before one that failed, since the conventions may have got a part of it.
void Netcdf4Codec::take_back() {
  Netcdf4Codec before(definitions_.stream);
  for (const Definitions::Field& each : definitions_.fields) {
    if (!before.add(each.definition, each.prepared).is_ok()) return;  // each was added before
  }
  for (const codec::GivenAttribute& each : definitions_.stream.given) {
    if (!before.add_attribute(each).is_ok()) return;  // as above
  }
  *this = std::move(before);
}

/// Returns the shape of one record in the file. It follows from the grid if the grid is known, whatever the
/// shape of the program's array is.
std::vector<Index> Netcdf4Codec::record_dimensions(int field) const {
  const cf::Contents& contents = fields_.conventions().contents();
  const std::vector<int>& all = contents.variables[fields_.at(field).variable].dimensions;
  std::vector<Index> lengths;
  for (std::size_t i = fields_.at(field).has_levels ? 2 : 1; i < all.size(); ++i)
    lengths.push_back(contents.dimensions[static_cast<std::size_t>(all[i])].length);
  return lengths;
}

/// Adds a field with what `prepared` tells. After an error a part of the field may stay: see take_back().
Status Netcdf4Codec::add(const FieldDefinition& field, std::span<const std::byte> prepared) {
  const std::string context = cat("field '", field.name, "'");
  TR_TRY(check_names(field.attributes).in(context));
  const Result<compression::Compression> compression =
      compression::asked_for(field, definitions_.stream.keys, methods);
  TR_TRY(compression.status().in(context));
  TR_TRY(fields_.adopt(field, prepared));
  if (!field.has_time) {
    records_.emplace_back();
    keep(field);
    return {};
  }
  const int number = static_cast<int>(records_.size());
  std::vector<Index> shape = record_dimensions(number);
  if (is_text(field.type)) shape.pop_back();
  Result<std::vector<Index>> chunk = cf::chunk_of(field, shape);
  TR_TRY(chunk.status().in(context));
  if (is_text(field.type)) {  // no chunk ends within a text
    shape.push_back(size_of(field.type));
    chunk->push_back(shape.back());
  }
  RecordShape record{
      {shape, *chunk, scalar_size_of(field.type)}, *compression, is_since_last_output(field.statistic)};
  record.quantisation = cf::quantisation_of(field);
  record.missing = field.missing;
  TR_TRY(check(record).in(context));
  for (cf::Attribute& each : cf::attributes_of(record.quantisation, field))
    fields_.add_attribute(number, std::move(each));
  record.fill = fields_.at(number).fill;
  std::ranges::reverse(record.fill);
  records_.push_back(std::move(record));
  keep(field);
  return {};
}

/// Adds the field to the definitions that heads have.
void Netcdf4Codec::keep(const FieldDefinition& field) {
  FieldDefinition kept = field;
  // Keeps only the coordinates of the georeference: the prepared bytes hold the grid, but not the
  // coordinates' values.
  kept.georeference = {{}, {}, field.georeference.coordinates};
  // A file is the same whether its values were cut out here or by the program.
  kept.section = {};
  const int number = static_cast<int>(definitions_.fields.size());
  definitions_.fields.push_back({std::move(kept), fields_.prepared(number)});
}

/// Returns the index of the field's interval in conventions().intervals().
std::size_t Netcdf4Codec::interval_of(int field) const {
  const codec::Statistic& statistic =
      definitions_.fields[static_cast<std::size_t>(field)].definition.statistic;
  const auto& intervals = fields_.conventions().intervals();
  const auto found = std::ranges::find_if(intervals, [&](const Conventions::Interval& each) {
    return Conventions::begin_alike(each.statistic, statistic);
  });
  return static_cast<std::size_t>(found - intervals.begin());
}

Status Netcdf4Codec::describe_record(const codec::ReadBytes& read, Index step,
                                     const FinishedStep::Record& each, Description& description,
                                     std::vector<std::int64_t>& starts) const {
  const auto number = static_cast<std::size_t>(each.field);
  if (each.field < 0 || number >= records_.size() || each.level < 0 ||
      each.level >= fields_.at(each.field).levels())
    return {Code::corrupt, "the index has records of fields that the head of the file does not define"};
  const RecordShape& record = records_[number];
  if (each.offset < description.data_begin || each.length < record.trailer_bytes() ||
      each.offset > description.data_end - each.length)
    return {Code::corrupt,
            cat("the index has a record of ", counted(each.length, "byte"), " at ", each.offset,
                ", which does not lie between the head of the file and the end of its last step")};
  ByteVector bytes(static_cast<std::size_t>(record.trailer_bytes()));
  if (!bytes.empty()) {
    const Result<Bytes> got = read(bytes, each.offset + each.length - std::ssize(bytes));
    TR_TRY(got.status());
    bytes.resize(static_cast<std::size_t>(*got));
  }
  const Result<Trailer> trailer = read_trailer(record, bytes, each.length);
  TR_TRY(trailer.status());
  Bytes offset = each.offset;
  for (std::size_t i = 0; i < trailer->lengths.size(); ++i) {
    description.fields[number].chunks.push_back(
        {step, each.level, static_cast<Index>(i), offset, trailer->lengths[i]});
    offset += trailer->lengths[i];
  }
  if (record.has_interval) starts[interval_of(each.field)] = trailer->interval_start;
  return {};
}

Status Netcdf4Codec::describe(const codec::ReadBytes& read, std::span<const FinishedStep> steps,
                              Description& description) const {
  for (std::size_t i = 0; i < records_.size(); ++i) {
    const Conventions::Field& field = fields_.all()[i];
    const RecordShape* const record = field.has_time ? &records_[i] : nullptr;
    description.fields.push_back({field.variable, record, field.has_levels, field.fill, {}});
  }
  std::vector<std::vector<std::int64_t>> starts;
  std::int64_t previous = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    std::vector<std::int64_t>& of_step = starts.emplace_back();
    // Begins with the leads that follow from the steps before, because a step may lack the records whose
    // trailers tell when an interval began.
    for (const Conventions::Interval& each : fields_.conventions().intervals())
      of_step.push_back(each.statistic.interval_start(steps[i].lead, previous));
    // If a record was put twice, the last one counts.
    std::map<std::pair<int, Index>, const FinishedStep::Record*> last;
    for (const FinishedStep::Record& each : steps[i].records) last[{each.field, each.level}] = &each;
    for (const auto& [key, record] : last)
      TR_TRY(describe_record(read, static_cast<Index>(i), *record, description, of_step));
    previous = steps[i].lead;
  }
  add_times(steps, starts, description);
  return {};
}

void Netcdf4Codec::add_times(std::span<const FinishedStep> steps,
                             const std::vector<std::vector<std::int64_t>>& starts,
                             Description& description) const {
  const Conventions& conventions = fields_.conventions();
  if (!conventions.contents().has_records) return;
  std::vector<double> times;
  for (const FinishedStep& each : steps) times.push_back(conventions.time_at(each.lead));
  description.times.push_back({conventions.time(), times});
  for (std::size_t k = 0; k < conventions.intervals().size(); ++k) {
    const Conventions::Interval& interval = conventions.intervals()[k];
    if (interval.time != conventions.time()) description.times.push_back({interval.time, times});
    std::vector<double> bounds;
    for (std::size_t i = 0; i < steps.size(); ++i)
      bounds.insert(bounds.end(), {conventions.time_at(starts[i][k]), times[i]});
    description.times.push_back({interval.bounds, std::move(bounds)});
  }
}

Result<std::optional<codec::Ending>> Netcdf4Codec::ending(const codec::ReadBytes& read,
                                                          std::span<const FinishedStep> steps,
                                                          Bytes data_begin, Bytes data_end) const {
  return guarded([&]() -> Result<std::optional<codec::Ending>> {
    Description description;
    description.contents = &fields_.conventions().contents();
    description.steps = static_cast<Index>(steps.size());
    description.data_begin = data_begin;
    description.data_end = data_end;
    TR_TRY(describe(read, steps, description));
    Result<codec::Ending> made = make_metadata(description);
    TR_TRY(made.status());
    return std::optional(std::move(*made));
  });
}

/// Compares two missing values. NaN equals NaN here.
bool is_same(const std::optional<double>& one, const std::optional<double>& other) {
  if (!one || !other) return one.has_value() == other.has_value();
  return *one == *other || (std::isnan(*one) && std::isnan(*other));
}

bool has_same_values(const FieldDefinition& one, const FieldDefinition& other) {
  if (!one.values || !other.values) return one.values == other.values;
  return *one.values == *other.values;
}

Netcdf4Codec::Coordinates Netcdf4Codec::coordinates() const {
  Coordinates found;
  std::set<std::string_view> fields;
  for (const Conventions::Field& each : fields_.all()) fields.insert(each.name);
  for (const cf::Variable& each : fields_.conventions().contents().variables) {
    // A single integer is the member, which is no coordinate: check_same_stream compares it by the index.
    const bool is_member =
        each.dimensions.empty() && each.type != cf::Type::float64 && each.type != cf::Type::text;
    if (fields.contains(each.name) || !each.data || cf::Contents::is_record(each) || is_member) continue;
    found.values.push_back(each.data());
    found.variables.push_back({each.name, each.type, found.values.back()});
  }
  return found;
}

std::string Netcdf4Codec::difference_to(const Netcdf4Codec& now, std::size_t number) const {
  const RecordShape &record = records_[number], &other = now.records_[number];
  const FieldDefinition& field = definitions_.fields[number].definition;
  const FieldDefinition& field_now = now.definitions_.fields[number].definition;
  if (field.has_time != field_now.has_time) return "another time= (none or not)";
  if (record.shape != other.shape || record.element_size != other.element_size)
    return "another shape or type";
  if (record.chunk != other.chunk) return "other chunks";
  if (record.compression.method != other.compression.method) return "other filters (compress=none or not)";
  // Steps of two grids in one file would share one set of coordinates.
  const int i = static_cast<int>(number);
  if (!are_close(fields_.grid(i), now.fields_.grid(i))) return "another grid";
  if (field.levels.bottoms != field_now.levels.bottoms ||
      field.levels.coefficients != field_now.levels.coefficients)
    return "other levels";
  const bool same_process = field.statistic.process == field_now.statistic.process;
  const bool is_instant = field.statistic.process == codec::Process::instant;
  if (!same_process || (!is_instant && !Conventions::begin_alike(field.statistic, field_now.statistic)))
    return "another statistic";
  if (!is_same(field.missing, field_now.missing)) return "another missing value";
  if (!field.has_time && (field.type != field_now.type || !has_same_values(field, field_now)))
    return "other values";
  const cf::Quantisation &how = record.quantisation, &how_now = other.quantisation;
  if (how.step != how_now.step || how.kept != how_now.kept || how.information != how_now.information ||
      (how.step > 0 && field.accuracy != field_now.accuracy))
    return "another accuracy";
  return "";
}

std::string Netcdf4Codec::difference_to(const Netcdf4Codec& now) const {
  if (records_.size() != now.records_.size())
    return cat("the file has ", counted(records_.size(), "field"), ", and the stream ", now.records_.size());
  for (std::size_t i = 0; i < records_.size(); ++i) {
    const std::string &name = fields_.all()[i].name, &name_now = now.fields_.all()[i].name;
    if (name != name_now)
      return cat("field ", i + 1, " of the file is '", name, "', and of the stream '", name_now, "'");
    if (const std::string what = difference_to(now, i); !what.empty())
      return cat("the variable of field '", name, "' has ", what, " in the file");
  }
  return "";
}

Result<std::unique_ptr<Netcdf4Codec>> codec_of(const Definitions& definitions) {
  auto codec = std::make_unique<Netcdf4Codec>(definitions.stream);
  for (const Definitions::Field& each : definitions.fields)
    TR_TRY(codec->adopt(each.definition, each.prepared));
  for (const codec::GivenAttribute& each : definitions.stream.given) TR_TRY(codec->add_attribute(each));
  return codec;
}

Result<std::unique_ptr<Netcdf4Codec>> codec_of(std::span<const std::byte> head) {
  const Result<Definitions> definitions = decode_head(head);
  TR_TRY(definitions.status());
  return codec_of(*definitions);
}

}  // namespace

Result<std::unique_ptr<codec::Codec>> make(const codec::StreamDefinition& stream) {
  TR_TRY(check_library());
  TR_TRY(Conventions::check_stream(stream));
  TR_TRY(check_names(stream.attributes));
  TR_TRY(compression::check_asked(stream.keys, methods));
  return std::unique_ptr<codec::Codec>(std::make_unique<Netcdf4Codec>(stream));
}

Result<std::unique_ptr<codec::Codec>> reopen(std::span<const std::byte> head) {
  TR_TRY(check_library());
  return guarded([&]() -> Result<std::unique_ptr<codec::Codec>> {
    Result<std::unique_ptr<Netcdf4Codec>> codec = codec_of(head);
    TR_TRY(codec.status());
    return std::unique_ptr<codec::Codec>(std::move(*codec));
  });
}

Result<std::vector<RecordsOfField>> fields_in(std::span<const std::byte> head) {
  return guarded([&]() -> Result<std::vector<RecordsOfField>> {
    const Result<Definitions> definitions = decode_head(head);
    TR_TRY(definitions.status());
    const Result<std::unique_ptr<Netcdf4Codec>> codec = codec_of(*definitions);
    TR_TRY(codec.status());
    std::vector<RecordsOfField> fields = (*codec)->records_of_fields();
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const Definitions::Field& told = definitions->fields[i];
      if (told.values_at == 0) continue;
      fields[i].values_at = told.values_at;
      fields[i].values_length = std::ssize(*told.definition.values);
    }
    return fields;
  });
}

Status check_goes_on(std::span<const std::byte> own, std::span<const std::byte> now) {
  return guarded([&]() -> Status {
    const Result<std::unique_ptr<Netcdf4Codec>> before = codec_of(own);
    TR_TRY(before.status());
    const Result<std::unique_ptr<Netcdf4Codec>> after = codec_of(now);
    TR_TRY(after.status());
    const std::string difference = (*before)->difference_to(**after);
    if (difference.empty()) {
      TR_TRY(cf::check_same((*before)->coordinates().variables, (*after)->coordinates().variables));
      return cf::check_same((*before)->lasting_attributes(), (*after)->lasting_attributes(), "attribute",
                            true);
    }
    return {Code::state, cat(difference, "; a run that continues defines the same stream as before")};
  });
}

}  // namespace tailrace::netcdf4
