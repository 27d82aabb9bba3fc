// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "zarr/codec.hpp"

#include <libdeflate.h>

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>

#include "base/text.hpp"
#include "cf/fields.hpp"
#include "codec/plain.hpp"
#include "zarr/crc32c.hpp"
#include "zarr/layout.hpp"
#include "zarr/metadata.hpp"

namespace tailrace::zarr {

namespace {

using cf::Conventions;
using codec::FieldDefinition;
using codec::FinishedStep;
using codec::Patch;
using codec::RecordKey;

/// Compresses records. Each thread has one.
class ZarrEncoder final : public codec::Encoder {
 public:
  ZarrEncoder(const cf::Fields& fields, const std::vector<codec::PlainField>& plain,
              const std::vector<FieldArray>& arrays)
      : fields_(fields), plain_(codec::plain_encoder(plain)), arrays_(arrays) {}

  Status encode(const RecordKey& key, std::byte* values, Index count, ByteVector& out) override {
    TR_TRY(fields_.check_record(key, count));
    const int level = arrays_[static_cast<std::size_t>(key.field)].deflate;
    if (level == 0) return plain_->encode(key, values, count, out);
    const Bytes size = size_of(fields_.type_of(key.field));
    const auto bytes = std::span(values, static_cast<std::size_t>(count * size));
    if constexpr (std::endian::native == std::endian::big) cf::swap(bytes, size);
    return compress(bytes, level, out);
  }

 private:
  struct Release {
    void operator()(libdeflate_compressor* each) const { libdeflate_free_compressor(each); }
  };

  Status compress(std::span<const std::byte> bytes, int level, ByteVector& out) {
    if (level_ != level) {
      compressor_.reset(libdeflate_alloc_compressor(level));
      level_ = compressor_ ? level : -1;
    }
    if (!compressor_) return {Code::memory, "no memory for the tables of deflate"};
    const std::size_t before = out.size();
    const auto most = static_cast<std::size_t>(most_compressed(std::ssize(bytes)));
    out.resize(before + most);
    const std::size_t size =
        libdeflate_gzip_compress(compressor_.get(), bytes.data(), bytes.size(), out.data() + before, most);
    out.resize(before + size);
    if (size == 0) return {Code::format, "gzip made more bytes than a chunk has room for"};
    if (before == 0 && out.size() < out.capacity() / 5 * 4) out.shrink_to_fit();
    return {};
  }

  const cf::Fields& fields_;
  std::unique_ptr<codec::Encoder> plain_;
  const std::vector<FieldArray>& arrays_;
  std::unique_ptr<libdeflate_compressor, Release> compressor_;
  int level_ = -1;  // of the compressor
};

/// A record of a field is one level of its array in one step: a chunk of a shard if the field has levels, or
/// a chunk that is an object.
class ZarrCodec final : public codec::Codec {
 public:
  explicit ZarrCodec(const codec::StreamDefinition& stream)
      : keys_(stream.keys), fields_(stream, [](const cf::Contents&) { return Status(); }) {}

  Status define(const FieldDefinition& field) override {
    return add(field, [&] { return fields_.define(field); });
  }
  [[nodiscard]] ByteVector prepared(int field) const override { return fields_.prepared(field); }
  Status adopt(const FieldDefinition& field, std::span<const std::byte> prepared) override {
    return add(field, [&] { return fields_.adopt(field, prepared); });
  }
  [[nodiscard]] bool has_coordinates() const override { return true; }
  Status check_lead(const RecordKey& key) const override {
    if (key.lead >= 0) return {};
    return {Code::argument, cat("lead ", key.lead, " s is before the base time")};
  }
  [[nodiscard]] ByteVector head() const override;
  [[nodiscard]] std::optional<codec::FixedPlaces> fixed_places() const override;
  [[nodiscard]] std::vector<Patch> rest_of_step(std::int64_t lead, std::int64_t previous_lead,
                                                std::span<const FinishedStep::Record> put) const override;
  [[nodiscard]] std::unique_ptr<codec::Encoder> encoder() const override {
    return std::make_unique<ZarrEncoder>(fields_, plain_, arrays_);
  }
  [[nodiscard]] std::optional<codec::PlainValues> plain(int field) const override {
    const auto number = static_cast<std::size_t>(field);
    if (arrays_[number].deflate > 0) return std::nullopt;
    return plain_[number].values();
  }
  [[nodiscard]] ElementType assembled_type(int field) const override { return fields_.type_of(field); }
  [[nodiscard]] double cost(int field) const override {
    const auto number = static_cast<std::size_t>(field);
    const auto bytes = static_cast<double>(plain_[number].bytes());
    // Nanoseconds for each byte: gzip at its lowest level took 8 for a smooth field with noise, a copy 0.2.
    return 500.0 + bytes * (arrays_[number].deflate == 0 ? 0.2 : 8.0);
  }
  [[nodiscard]] Bytes encoded_bound(int field) const override {
    const auto number = static_cast<std::size_t>(field);
    const Bytes raw = plain_[number].bytes();
    return arrays_[number].deflate == 0 ? raw : most_compressed(raw);
  }
  [[nodiscard]] Bytes working_bytes(int) const override { return 0; }

 private:
  template <typename Add>
  Status add(const FieldDefinition& field, Add add_to_fields);
  [[nodiscard]] std::string text() const;
  [[nodiscard]] const Layout& layout() const;
  [[nodiscard]] const Layout::Array& place_of(std::size_t variable) const {
    return layout().array(fields_.conventions().contents().variables[variable].name);
  }
  [[nodiscard]] Patch index_of(int field, std::span<const FinishedStep::Record> put) const;

  const codec::Keys keys_;
  cf::Fields fields_;
  std::vector<codec::PlainField> plain_;  // by field
  std::vector<FieldArray> arrays_;        // by field
  Bytes total_ = 0;                       // no step has more
  // Made when all fields are defined. Threads share it.
  mutable std::mutex mutex_;
  mutable std::optional<Layout> layout_;
};

/// Zarr's core specification forbids names of nodes with slashes, and those that begin with "__". The store
/// has objects of its own beside the arrays, and file systems take up to 255 bytes.
Status check_name(const std::string& name) {
  const bool forbidden = name.find('/') != std::string::npos || name.starts_with("__") ||
                         name.starts_with(".") || name.starts_with("zarr.json") || name.size() > 255;
  return forbidden ? Status(Code::argument, "no array of Zarr can have this name; choose another one")
                   : Status();
}

template <typename Add>
Status ZarrCodec::add(const FieldDefinition& field, Add add_to_fields) {
  TR_TRY(codec::check_field(field));
  const std::string context = cat("field '", field.name, "'");
  TR_TRY(check_name(field.name).in(context));
  const Result<int> level = codec::deflate_level(field, keys_);
  TR_TRY(level.status().in(context));
  constexpr Bytes most_of_step = Bytes{1} << 60;
  const auto levels = static_cast<Index>(field.levels.values.size());
  Bytes raw = 0, total = 0;
  if (__builtin_mul_overflow(field.elements(), size_of(field.type), &raw) || raw > most_of_step ||
      __builtin_mul_overflow(most_compressed(raw) + index_bytes(1), levels, &total) ||
      total > most_of_step - total_)
    return {Code::argument, cat(context, ": with it a step has more than 2^60 bytes")};
  const auto most =
      static_cast<Bytes>(libdeflate_gzip_compress_bound(nullptr, static_cast<std::size_t>(raw)));
  if (*level > 0 && most > most_compressed(raw))
    return {Code::unsupported,
            cat(context, ": this libdeflate may make a chunk larger than its place; say deflate=0")};
  TR_TRY(add_to_fields());
  const Conventions::Field& added = fields_.all().back();
  plain_.push_back({field.name, field.type, field.elements(), std::endian::little});
  arrays_.push_back({added.levels(), *level, added.fill});
  total_ += total;
  layout_.reset();
  return {};
}

std::string ZarrCodec::text() const {
  return group_text(fields_.conventions().contents(), [this](std::size_t variable) -> const FieldArray* {
    const auto found = std::ranges::find(fields_.all(), variable, &Conventions::Field::variable);
    return found == fields_.all().end() ? nullptr
                                        : &arrays_[static_cast<std::size_t>(found - fields_.all().begin())];
  });
}

const Layout& ZarrCodec::layout() const {
  const std::lock_guard guard(mutex_);
  if (!layout_) layout_ = *Layout::of(text());
  return *layout_;
}

ByteVector ZarrCodec::head() const {
  ByteVector out = layout().head_begin(0);
  for (const cf::Variable& each : fields_.conventions().contents().variables) {
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

/// The index of a shard: for each chunk its offset in the shard and its length, or all ones if it is not
/// there (Zarr extension proposal 2, binary shard format).
Patch ZarrCodec::index_of(int field, std::span<const FinishedStep::Record> put) const {
  const Bytes begin = place_of(fields_.at(field).variable).begin;
  constexpr std::pair<std::uint64_t, std::uint64_t> none{~std::uint64_t{0}, ~std::uint64_t{0}};
  std::vector<std::pair<std::uint64_t, std::uint64_t>> entries(
      static_cast<std::size_t>(fields_.at(field).levels()), none);
  Bytes end = begin;
  for (const FinishedStep::Record& each : put) {
    entries[static_cast<std::size_t>(each.level)] = {static_cast<std::uint64_t>(each.offset - begin),
                                                     static_cast<std::uint64_t>(each.length)};
    end = std::max(end, each.offset + each.length);
  }
  Patch index{end, {}, 1};
  const auto put_little_endian = [&](auto value) {
    for (std::size_t i = 0; i < sizeof value; ++i)
      index.bytes.push_back(static_cast<std::byte>(value >> (8 * i) & 0xff));
  };
  for (const auto& [offset, length] : entries) {
    put_little_endian(offset);
    put_little_endian(length);
  }
  put_little_endian(crc32c(index.bytes));
  return index;
}

std::vector<Patch> ZarrCodec::rest_of_step(std::int64_t lead, std::int64_t previous_lead,
                                           std::span<const FinishedStep::Record> put) const {
  std::vector<Patch> patches;
  const auto add_times = [&](std::size_t variable, std::initializer_list<std::int64_t> leads) {
    Patch& patch = patches.emplace_back(Patch{place_of(variable).begin, {}, 1});
    for (const std::int64_t each : leads)
      cf::put_number(patch.bytes, cf::Type::float64, static_cast<double>(each));
  };
  const Conventions& conventions = fields_.conventions();
  add_times(conventions.time(), {lead});
  for (const Conventions::Interval& each : conventions.intervals()) {
    if (each.time != conventions.time()) add_times(each.time, {lead});
    add_times(each.bounds, {each.statistic.interval_start(lead, previous_lead), lead});
  }
  std::map<int, std::vector<FinishedStep::Record>> by_field;
  for (const FinishedStep::Record& each : put) by_field[each.field].push_back(each);
  for (const auto& [field, records] : by_field) {
    if (arrays_[static_cast<std::size_t>(field)].levels > 1) patches.push_back(index_of(field, records));
  }
  return patches;
}

}  // namespace

Result<std::unique_ptr<codec::Codec>> make(const codec::StreamDefinition& stream) {
  TR_TRY(Conventions::check_attributes(stream.attributes));
  return std::unique_ptr<codec::Codec>(std::make_unique<ZarrCodec>(stream));
}

namespace {

/// Returns the arrays of float64 without steps in a head.
Result<std::vector<cf::Fixed>> fixed_in(std::span<const std::byte> head) {
  Unpacker in(head);
  Bytes text = 0;
  for (std::size_t i = 0; i < sizeof text; ++i) text = text << 8 | static_cast<Bytes>(in.get<std::byte>());
  const Status damaged(Code::corrupt, "the head of the store is damaged");
  if (!in.ok() || text < 0 || text > std::ssize(head) - frame_bytes) return damaged;
  const auto group = head.subspan(static_cast<std::size_t>(frame_bytes), static_cast<std::size_t>(text));
  const Result<Layout> layout =
      Layout::of(std::string(reinterpret_cast<const char*>(group.data()), group.size()));
  TR_TRY(layout.status());
  if (layout->head() > std::ssize(head)) return damaged;
  std::vector<cf::Fixed> fixed;
  for (const Layout::Array& each : layout->arrays()) {
    // Arrays of one int32 stand for the member and for mappings.
    if (each.has_steps || each.size % 8 != 0) continue;
    fixed.push_back(
        {each.name, head.subspan(static_cast<std::size_t>(each.begin), static_cast<std::size_t>(each.size))});
  }
  return fixed;
}

}  // namespace

Status check_goes_on(std::span<const std::byte> own, std::span<const std::byte> now) {
  const Result<std::vector<cf::Fixed>> before = fixed_in(own);
  TR_TRY(before.status());
  const Result<std::vector<cf::Fixed>> after = fixed_in(now);
  TR_TRY(after.status());
  return cf::check_same(*before, *after);
}

std::optional<codec::Patch> step_count(std::int64_t steps) {
  codec::Patch count{steps_offset, {}, 1};
  cf::put_big_endian(count.bytes, steps);
  return count;
}

}  // namespace tailrace::zarr
