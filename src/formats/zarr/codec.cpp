// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/zarr/codec.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <mutex>
#include <set>

#include "formats/cf/fields.hpp"
#include "formats/cf/json.hpp"
#include "formats/codec/plain.hpp"
#include "formats/compression/compressor.hpp"
#include "formats/zarr/crc32c.hpp"
#include "formats/zarr/layout.hpp"
#include "formats/zarr/metadata.hpp"
#include "ground/base/byte_order.hpp"
#include "ground/base/text.hpp"

namespace tailrace::zarr {

namespace {

using cf::Conventions;
using codec::FieldDefinition;
using codec::FinishedStep;
using codec::Patch;
using codec::RecordKey;

using compression::Method;
/// The methods that compress= may name. The first is the default, for reasons measured in
/// docs/formats/zarr.md.
constexpr std::array<Method, 5> methods{Method::blosc_zstd, Method::blosc_lz4, Method::zstd, Method::gzip,
                                        Method::none};

/// Returns the most bytes that one level may become.
Bytes most_of_level(const FieldArray& array) {
  const Bytes chunk = array.chunking.chunk_bytes();
  return array.chunking.count() * (array.is_compressed() ? most_compressed(chunk) : chunk);
}

/// Rounds, cuts and compresses records. Each thread has an encoder of its own.
class ZarrEncoder final : public codec::Encoder {
 public:
  ZarrEncoder(const cf::Fields& fields, const std::vector<FieldArray>& arrays)
      : fields_(fields), arrays_(arrays) {}

  Status encode(const RecordKey& key, std::byte* values, Index count, ByteVector& out) override {
    parts_.clear();
    TR_TRY(fields_.check_record(key, count));
    const FieldArray& array = arrays_[static_cast<std::size_t>(key.field)];
    const ElementType type = fields_.type_of(key.field);
    const auto bytes = std::span(values, static_cast<std::size_t>(count * size_of(type)));
    if (is_text(type)) codec::end_texts(bytes, size_of(type));
    kept_bits_ = cf::quantise(bytes, type, array.quantisation, array.missing);
    if constexpr (std::endian::native == std::endian::big) cf::swap(bytes, scalar_size_of(type));
    const ByteVector fill(array.fill.rbegin(), array.fill.rend());
    const std::size_t before = out.size();
    const Index chunks = array.chunking.count();
    for (Index i = 0; i < chunks; ++i) {
      const std::size_t begin = out.size();
      const Status status = compressor_.compress(
          array.compression, cutter_.chunk(array.chunking, i, fill, bytes), scalar_size_of(type), out);
      if (!status.is_ok()) {
        out.resize(before);
        return status;
      }
      if (chunks > 1) parts_.push_back(static_cast<Bytes>(out.size() - begin));
    }
    return {};
  }
  [[nodiscard]] std::vector<Bytes> parts() const override { return parts_; }
  [[nodiscard]] std::optional<codec::KeptBits> kept_bits() const override { return kept_bits_; }

 private:
  const cf::Fields& fields_;
  const std::vector<FieldArray>& arrays_;
  compression::Compressor compressor_;
  cf::Cutter cutter_;
  std::vector<Bytes> parts_;  // of the last record
  std::optional<codec::KeptBits> kept_bits_;
};

/// The codec of Zarr. A record of a field is one level of its array in one step. If the field has one level
/// and a level is one chunk, a record is an object; otherwise it is one or several chunks of a shard.
class ZarrCodec final : public codec::Codec {
 public:
  explicit ZarrCodec(const codec::StreamDefinition& stream) : stream_(stream), fields_(without_fields()) {}

  Status define(const FieldDefinition& field) override {
    const Result<ByteVector> prepared = fields_.prepare(field);
    TR_TRY(prepared.status());
    return adopt(field, *prepared);
  }
  [[nodiscard]] ByteVector prepared(int field) const override { return fields_.prepared(field); }
  Status adopt(const FieldDefinition& field, std::span<const std::byte> prepared) override;
  Status add_attribute(const codec::GivenAttribute& given) override {
    TR_TRY(fields_.add_attribute(given));
    layout_.reset();
    return {};
  }
  [[nodiscard]] bool has_coordinates() const override { return true; }
  [[nodiscard]] ByteVector head() const override;
  [[nodiscard]] std::optional<codec::FixedPlaces> fixed_places() const override;
  [[nodiscard]] std::vector<Patch> rest_of_step(std::int64_t lead, std::int64_t previous_lead,
                                                std::span<const FinishedStep::Record> put) const override;
  [[nodiscard]] std::unique_ptr<codec::Encoder> encoder() const override {
    return std::make_unique<ZarrEncoder>(fields_, arrays_);
  }
  [[nodiscard]] std::optional<codec::PlainValues> plain(int field) const override {
    const FieldArray& array = at(field);
    if (array.is_compressed() || array.chunking.count() > 1 || !array.quantisation.keeps_all() ||
        is_text(fields_.type_of(field)))
      return std::nullopt;
    return codec::PlainValues{array.chunking.element_size, std::endian::little, false};
  }
  [[nodiscard]] ElementType assembled_type(int field) const override { return fields_.type_of(field); }
  [[nodiscard]] double cost(int field) const override {
    const FieldArray& array = at(field);
    const auto bytes = static_cast<double>(array.chunking.count() * array.chunking.chunk_bytes());
    return 500.0 + bytes * compression::cost(array.compression.method) +
           cf::cost(array.quantisation, fields_.type_of(field), bytes);
  }
  [[nodiscard]] Bytes encoded_bound(int field) const override { return most_of_level(at(field)); }
  [[nodiscard]] Bytes working_bytes(int field) const override {
    return at(field).chunking.count() > 1 ? at(field).chunking.chunk_bytes() : 0;
  }

 private:
  [[nodiscard]] const FieldArray& at(int field) const { return arrays_[static_cast<std::size_t>(field)]; }
  [[nodiscard]] cf::Fields without_fields() const {
    return {stream_, [](const cf::Contents&) { return Status(); }};
  }
  Result<FieldArray> array_of(const FieldDefinition& field, const cf::Fields& alone) const;
  Result<Bytes> most_of_step(const FieldArray& array) const;
  [[nodiscard]] std::string text() const;
  [[nodiscard]] const Layout& layout() const;
  [[nodiscard]] const Layout::Array& place_of(std::size_t variable) const {
    return layout().array(fields_.conventions().contents().variables[variable].name);
  }
  [[nodiscard]] Patch index_of(int field, std::span<const FinishedStep::Record> put) const;

  const codec::StreamDefinition stream_;
  cf::Fields fields_;
  std::vector<FieldArray> arrays_;  // by field
  Bytes total_ = 0;                 // an upper bound of the size of a step
  // Made when it is first needed after the last definition. Threads share it.
  mutable std::mutex mutex_;
  mutable std::optional<Layout> layout_;
};

/// Returns Code::argument if an array must not have this name. Zarr's core specification forbids slashes, and
/// "__" at the beginning. zarr-python takes a backslash for a slash, and then reads no array of the store.
/// Names that begin with a dot or zarr.json are kept for other objects of the store. File systems take up to
/// 255 bytes.
Status check_name(const std::string& name) {
  const bool forbidden = name.find_first_of("/\\") != std::string::npos || name.starts_with("__") ||
                         name.starts_with(".") || name.starts_with("zarr.json") || name.size() > 255;
  return forbidden
             ? Status(Code::argument,
                      "no array of Zarr can have this name: it has no / or \\, begins with neither __ nor a "
                      "dot nor zarr.json, and has at most 255 bytes; choose another one")
             : Status();
}

/// Returns Code::argument if a shard of the field would have too many chunks. The root of the stream keeps
/// some 40 bytes for each chunk of a step. At the end of the step it writes 16 of them, as the shard's index.
/// Readers fetch the whole index of a shard first.
Status check_shard(const FieldArray& array) {
  constexpr Index most = Index{1} << 20;
  if (array.levels <= most / array.chunking.count()) return {};
  return {Code::argument,
          cat(counted(array.levels, "level"), " of ", counted(array.chunking.count(), "chunk"),
              " each would be one shard, and a shard has at most ", most,
              " chunks: say chunks= with larger ones, or make fields of fewer levels")};
}

/// Returns how a field's records become chunks, or an error if the field cannot be an array. `alone` has this
/// field and no other.
Result<FieldArray> ZarrCodec::array_of(const FieldDefinition& field, const cf::Fields& alone) const {
  const Result<compression::Compression> compression = compression::asked_for(field, stream_.keys, methods);
  TR_TRY(compression.status());
  const Conventions::Field& added = alone.at(0);
  // The shape follows from the grid if the grid is known, whatever the shape of the program's array is.
  const cf::Contents& contents = alone.conventions().contents();
  const std::vector<int>& dimensions = contents.variables[added.variable].dimensions;
  std::vector<Index> shape;
  for (std::size_t i = added.has_levels ? 2 : 1; i < dimensions.size(); ++i)
    shape.push_back(contents.dimensions[static_cast<std::size_t>(dimensions[i])].length);
  if (is_text(field.type)) shape.pop_back();  // an element of the array is a whole text
  const Result<std::vector<Index>> chunk = cf::chunk_of(field, shape);
  TR_TRY(chunk.status());
  FieldArray array{
      added.levels(), {shape, *chunk, size_of(field.type)},
      *compression,   cf::quantisation_of(field),
      field.missing,  is_text(field.type) ? ByteVector(static_cast<std::size_t>(added.width)) : added.fill};
  TR_TRY(cf::check_count(array.chunking));
  TR_TRY(check_shard(array));
  const Bytes raw = array.chunking.chunk_bytes();
  TR_TRY(compression::check(array.compression, raw));
  if (array.is_compressed() && compression::bound(array.compression, raw) > most_compressed(raw))
    return Status(
        Code::unsupported,
        "this library of the compression may make a chunk larger than its place; say compress=none");
  return array;
}

/// Returns an upper bound of the size of a step with one more field.
Result<Bytes> ZarrCodec::most_of_step(const FieldArray& array) const {
  const Index chunks = array.chunking.count();
  Bytes level = 0, total = 0;
  if (__builtin_mul_overflow(chunks, most_compressed(array.chunking.chunk_bytes()) + 16, &level) ||
      __builtin_mul_overflow(array.levels, level, &total) ||
      __builtin_add_overflow(total, total_ + index_bytes(0), &total) || total > (Bytes{1} << 60))
    return Status(Code::argument, "with it a step has more than 2^60 bytes");
  return total;
}

/// Tries the field alone first, so that a field that is refused leaves nothing behind.
Status ZarrCodec::adopt(const FieldDefinition& field, std::span<const std::byte> prepared) {
  TR_TRY(codec::check_field(field));
  const std::string context = cat("field '", field.name, "'");
  TR_TRY(check_name(field.name).in(context));
  TR_TRY(cf::check_quantisation_names(field.attributes).in(context));
  Bytes raw = 0;
  if (__builtin_mul_overflow(field.elements(), size_of(field.type), &raw) || raw > (Bytes{1} << 60))
    return {Code::argument, cat(context, ": with it a step has more than 2^60 bytes")};
  cf::Fields alone = without_fields();
  TR_TRY(alone.adopt(cf::Fields::alone(field), prepared));
  if (!field.has_time) {
    TR_TRY(fields_.adopt(field, prepared));
    arrays_.emplace_back();
    layout_.reset();
    return {};
  }
  Result<FieldArray> array = array_of(field, alone);
  TR_TRY(array.status().in(context));
  const Result<Bytes> total = most_of_step(*array);
  TR_TRY(total.status().in(context));
  TR_TRY(fields_.adopt(field, prepared));
  const int number = static_cast<int>(arrays_.size());
  for (cf::Attribute& each : cf::attributes_of(array->quantisation, field))
    fields_.add_attribute(number, std::move(each));
  arrays_.push_back(std::move(*array));
  total_ = *total;
  layout_.reset();
  return {};
}

std::string ZarrCodec::text() const {
  const cf::Contents& contents = fields_.conventions().contents();
  std::vector<const FieldArray*> of_variables(contents.variables.size(), nullptr);
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    const Conventions::Field& field = fields_.all()[i];
    if (field.has_time) of_variables[field.variable] = &arrays_[i];
  }
  return group_text(contents, [&](std::size_t variable) { return of_variables[variable]; });
}

const Layout& ZarrCodec::layout() const {
  const std::lock_guard guard(mutex_);
  if (!layout_) layout_ = *Layout::of(text());
  return *layout_;
}

ByteVector ZarrCodec::head() const {
  ByteVector out = layout().head_begin(0);
  const cf::Contents& contents = fields_.conventions().contents();
  for (const cf::Variable& each : contents.variables) {
    if (!contents.is_in_file(each)) continue;
    const Layout::Array& place = layout().array(each.name);
    if (place.has_steps) continue;
    const ByteVector data = each.data ? each.data() : ByteVector();
    out.insert(out.end(), data.begin(), data.end());
    out.resize(static_cast<std::size_t>(place.begin + place.size));
  }
  return out;
}

std::optional<codec::FixedPlaces> ZarrCodec::fixed_places() const {
  codec::FixedPlaces places;
  places.are_packed = true;
  places.step = layout().step();
  for (const Conventions::Field& each : fields_.all())
    places.places.emplace_back(static_cast<std::size_t>(each.levels()), place_of(each.variable).begin);
  return places;
}

/// Returns the index of a shard, and its place. The index has for each chunk its offset in the shard and its
/// length, or all ones if the chunk is not there (Zarr extension proposal 2, binary shard format).
Patch ZarrCodec::index_of(int field, std::span<const FinishedStep::Record> put) const {
  const Bytes begin = place_of(fields_.at(field).variable).begin;
  constexpr auto none = ~std::uint64_t{0};
  const Index chunks = at(field).chunking.count();
  std::vector<std::uint64_t> numbers(static_cast<std::size_t>(2 * at(field).levels * chunks), none);
  Bytes end = begin;
  for (const FinishedStep::Record& each : put) {
    auto number = numbers.begin() + 2 * each.level * chunks;
    auto offset = static_cast<std::uint64_t>(each.offset - begin);
    const std::span<const Bytes> whole(&each.length, 1);
    for (const Bytes length : chunks == 1 ? whole : std::span(each.parts)) {
      *number++ = offset;
      *number++ = static_cast<std::uint64_t>(length);
      offset += static_cast<std::uint64_t>(length);
    }
    end = std::max(end, each.offset + each.length);
  }
  const auto bytes = std::as_bytes(std::span(numbers));
  Patch index{end, ByteVector(static_cast<std::size_t>(index_bytes(at(field).levels * chunks))), 1};
  copy_ordered(index.bytes.data(), bytes.data(), std::ssize(bytes), 8, std::endian::little);
  const std::uint32_t sum = crc32c(std::span(index.bytes).first(bytes.size()));
  copy_ordered(index.bytes.data() + bytes.size(), std::as_bytes(std::span(&sum, 1)).data(), sizeof sum, 4,
               std::endian::little);
  return index;
}

std::vector<Patch> ZarrCodec::rest_of_step(std::int64_t lead, std::int64_t previous_lead,
                                           std::span<const FinishedStep::Record> put) const {
  std::vector<Patch> patches;
  const Conventions& conventions = fields_.conventions();
  if (!conventions.contents().has_records) return patches;
  const auto add_times = [&](std::size_t variable, std::initializer_list<std::int64_t> leads) {
    Patch& patch = patches.emplace_back(Patch{place_of(variable).begin, {}, 1});
    for (const std::int64_t each : leads)
      cf::put_number(patch.bytes, cf::Type::float64, conventions.time_at(each));
  };
  add_times(conventions.time(), {lead});
  for (const Conventions::Interval& each : conventions.intervals()) {
    if (each.time != conventions.time()) add_times(each.time, {lead});
    add_times(each.bounds, {each.statistic.interval_start(lead, previous_lead), lead});
  }
  std::map<int, std::vector<FinishedStep::Record>> by_field;
  for (const FinishedStep::Record& each : put) by_field[each.field].push_back(each);
  for (const auto& [field, records] : by_field) {
    if (at(field).is_sharded()) patches.push_back(index_of(field, records));
  }
  return patches;
}

}  // namespace

Result<std::unique_ptr<codec::Codec>> make(const codec::StreamDefinition& stream) {
  TR_TRY(Conventions::check_stream(stream));
  TR_TRY(compression::check_asked(stream.keys, methods));
  return std::unique_ptr<codec::Codec>(std::make_unique<ZarrCodec>(stream));
}

namespace {

using cf::Json;

/// Removes levels of compression, because readers do not need them.
void without_levels(Json& codec) {
  if (!codec.is_structured()) return;
  if (codec.is_object()) {
    codec.erase("level");
    codec.erase("clevel");
  }
  for (Json& each : codec) without_levels(each);
}

/// Returns the metadata that readers need to decode the array's chunks, each with the option that chooses it.
std::vector<std::pair<std::string, std::string>> reading_of(const Layout& layout,
                                                            const Layout::Array& array) {
  Json all = Json::parse(layout.array_text(array, 0));
  without_levels(all["codecs"]);
  Json rounding = Json::object();
  for (const auto& [name, value] : all["attributes"].items()) {
    if (name.starts_with("quantization_") || name.starts_with("_Quantize")) rounding[name] = value;
  }
  return {{"type", all["data_type"].dump()},
          {"compress= or chunks=", all["codecs"].dump()},
          {"shape or chunks=", all["chunk_grid"].dump()},
          {"missing=", all["fill_value"].dump()},
          {"accuracy=, relative_accuracy= or bits=", rounding.dump()}};
}

/// Returns Code::state if an array with steps differs between a store and a stream in metadata that readers
/// need.
Status check_read_alike(const Layout& own, const Layout& now) {
  for (const Layout::Array& each : now.arrays()) {
    const Layout::Array* const same = own.find(each.name);
    if (!each.has_steps || same == nullptr) continue;
    const auto before = reading_of(own, *same), after = reading_of(now, each);
    for (std::size_t i = 0; i < before.size(); ++i) {
      if (before[i].second == after[i].second) continue;
      return {Code::state, cat("the store has '", each.name, "' with another ", before[i].first, ": ",
                               before[i].second, " where the stream has ", after[i].second,
                               "; define it as it was, or write to another store")};
    }
  }
  return {};
}

Result<Layout> layout_in(std::span<const std::byte> head) {
  Unpacker in(head);
  Bytes text = 0;
  for (std::size_t i = 0; i < sizeof text; ++i) text = text << 8 | static_cast<Bytes>(in.get<std::byte>());
  const Status damaged(Code::corrupt, "the head of the store is damaged");
  if (!in.ok() || text < 0 || text > std::ssize(head) - frame_bytes) return damaged;
  const auto group = head.subspan(static_cast<std::size_t>(frame_bytes), static_cast<std::size_t>(text));
  Result<Layout> layout = Layout::of(std::string(reinterpret_cast<const char*>(group.data()), group.size()));
  TR_TRY(layout.status());
  if (layout->head() > std::ssize(head)) return damaged;
  return layout;
}

/// Returns the arrays without steps from a head.
std::vector<cf::Fixed> fixed_in(const Layout& layout, std::span<const std::byte> head) {
  std::vector<cf::Fixed> fixed;
  for (const Layout::Array& each : layout.arrays()) {
    // A single integer has the member, or nothing but attributes that describe a grid.
    const bool is_kept = each.dimensions > 0 || each.type == cf::Type::float64 || each.type == cf::Type::text;
    if (each.has_steps || !is_kept) continue;
    fixed.push_back(
        {each.name, each.type,
         head.subspan(static_cast<std::size_t>(each.begin), static_cast<std::size_t>(each.size))});
  }
  return fixed;
}

/// Returns the attributes that must stay while a store goes on, each as array:name. Those of grid mappings
/// are computed, and their last bits may differ.
std::map<std::string, std::string> lasting_attributes(const Layout& layout) {
  std::map<std::string, std::string> lasting;
  const auto add = [&](const std::string& owner, const std::string& text) {
    const Json all = Json::parse(text);
    const Json attributes = all.value("attributes", Json::object());  // the store may be damaged
    if (attributes.contains(cf::grid_mapping_name)) return;
    for (const auto& [name, value] : attributes.items()) {
      const bool is_number =
          !value.is_string() || value == "NaN" || value == "Infinity" || value == "-Infinity";
      if (cf::must_stay(name, !is_number)) lasting[cat(owner, ":", name)] = value.dump();
    }
  };
  for (const Layout::Array& each : layout.arrays()) add(each.name, layout.array_text(each, 0));
  return lasting;
}

Status check_same_attributes(const Layout& own, const Layout& now) {
  const auto before = lasting_attributes(own), after = lasting_attributes(now);
  if (before == after) return {};
  std::set<std::string> names;
  for (const auto* each : {&before, &after})
    for (const auto& [name, value] : *each) names.insert(name);
  const auto in = [](const auto& all, const std::string& name) {
    const auto found = all.find(name);
    return found == all.end() ? std::string("none") : found->second;
  };
  const auto other = std::ranges::find_if(
      names, [&](const std::string& name) { return in(before, name) != in(after, name); });
  return {Code::state,
          cat("the attribute '", *other, "' is ", in(before, *other), " in the store and ", in(after, *other),
              " in the stream; a run that continues defines the same stream as before")};
}

}  // namespace

Status check_goes_on(std::span<const std::byte> own, std::span<const std::byte> now) {
  const Result<Layout> before = layout_in(own);
  TR_TRY(before.status());
  const Result<Layout> after = layout_in(now);
  TR_TRY(after.status());
  TR_TRY(cf::check_same(fixed_in(*before, own), fixed_in(*after, now)));
  return guarded([&]() -> Status {
    TR_TRY(check_read_alike(*before, *after));
    return check_same_attributes(*before, *after);
  });
}

std::optional<codec::Patch> step_count(std::int64_t steps) {
  codec::Patch count{steps_offset, {}, 1};
  cf::put_big_endian(count.bytes, steps);
  return count;
}

}  // namespace tailrace::zarr
