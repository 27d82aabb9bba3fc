// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/cdf/codec.hpp"

#include <set>

#include "formats/cdf/classic.hpp"
#include "formats/cf/fields.hpp"
#include "formats/codec/plain.hpp"
#include "ground/base/text.hpp"

namespace tailrace::cdf {

namespace {

using cf::Conventions;
using cf::Type;
using codec::FieldDefinition;
using codec::Patch;
using codec::RecordKey;

/// The codec of classic NetCDF. A record of a field is one level of its variable in one record of the file,
/// which is a step.
class CdfCodec final : public codec::Codec {
 public:
  CdfCodec(Version version, const codec::StreamDefinition& stream)
      : places_{version, {}},
        fields_(stream, [this](const cf::Contents& contents) { return places_.add_last(contents); }) {}

  Status define(const FieldDefinition& field) override {
    TR_TRY(fields_.define(field));
    return add_plain(field);
  }
  [[nodiscard]] ByteVector prepared(int field) const override { return fields_.prepared(field); }
  Status adopt(const FieldDefinition& field, std::span<const std::byte> prepared) override {
    TR_TRY(fields_.adopt(field, prepared));
    return add_plain(field);
  }
  [[nodiscard]] bool has_coordinates() const override { return true; }
  Status add_attribute(const codec::GivenAttribute& given) override;
  [[nodiscard]] ByteVector head() const override { return encode(conventions().contents(), places_); }
  [[nodiscard]] std::optional<codec::FixedPlaces> fixed_places() const override;
  [[nodiscard]] std::vector<Patch> rest_of_step(
      std::int64_t lead, std::int64_t previous_lead,
      std::span<const codec::FinishedStep::Record> put) const override;
  [[nodiscard]] std::optional<codec::Decoding> decoding() const override { return codec::Decoding{true, ""}; }
  [[nodiscard]] std::unique_ptr<codec::Encoder> encoder() const override {
    return codec::plain_encoder(plain_);
  }
  [[nodiscard]] std::optional<codec::PlainValues> plain(int field) const override {
    return plain_[static_cast<std::size_t>(field)].plain();
  }
  [[nodiscard]] ElementType assembled_type(int field) const override { return fields_.type_of(field); }
  [[nodiscard]] double cost(int field) const override {
    return 500.0 + 0.2 * static_cast<double>(encoded_bound(field));
  }
  [[nodiscard]] Bytes encoded_bound(int field) const override { return slab(fields_.at(field)); }
  [[nodiscard]] Bytes working_bytes(int) const override { return 0; }

 private:
  Status add_plain(const FieldDefinition& field) {
    plain_.push_back({field.name, field.type, field.elements(), std::endian::big});
    return {};
  }
  [[nodiscard]] const Conventions& conventions() const { return fields_.conventions(); }
  /// Returns the offset of a variable within a record.
  [[nodiscard]] Bytes offset_of(std::size_t variable) const { return places_.of_variables[variable].offset; }
  [[nodiscard]] static Bytes slab(const Conventions::Field& field) {
    return field.values() * cf::size_of(field.type);
  }

  Places places_;  // constructed before fields_, because its constructor places the variable of time
  cf::Fields fields_;
  std::vector<codec::PlainField> plain_;
};

/// Checks a copy of the metadata first, since an attribute that is added stays.
Status CdfCodec::add_attribute(const codec::GivenAttribute& given) {
  const bool is_new_type = given.type && (given.type == ElementType::i64 || is_unsigned(*given.type));
  if (places_.version != Version::cdf5 && is_new_type)
    return {Code::format,
            cat("attribute '", given.name, "' is of ", tailrace::name_of(*given.type),
                ", which files of format=cdf1 and cdf2 cannot hold: give it as TR_I32, TR_I16 or "
                "TR_F64, or choose format=cdf5")};
  Conventions copy = conventions();
  TR_TRY(cf::give(copy, given));
  TR_TRY(places_.check(copy.contents()));
  return fields_.add_attribute(given);
}

std::optional<codec::FixedPlaces> CdfCodec::fixed_places() const {
  codec::FixedPlaces places;
  places.step = conventions().contents().has_records ? places_.record_size : 0;
  for (const Conventions::Field& field : fields_.all()) {
    std::vector<Bytes>& of_levels = places.places.emplace_back();
    for (Index level = 0; level < field.levels(); ++level)
      of_levels.push_back(offset_of(field.variable) + level * slab(field));
  }
  return places;
}

std::vector<Patch> CdfCodec::rest_of_step(std::int64_t lead, std::int64_t previous_lead,
                                          std::span<const codec::FinishedStep::Record> put) const {
  std::vector<Patch> patches;
  if (!conventions().contents().has_records) return patches;
  const auto add_times = [&](std::size_t variable, std::initializer_list<std::int64_t> leads) {
    Patch& patch = patches.emplace_back(Patch{offset_of(variable), {}, 1});
    for (const std::int64_t each : leads)
      cf::put_number(patch.bytes, Type::float64, conventions().time_at(each));
  };
  add_times(conventions().time(), {lead});
  for (const Conventions::Interval& each : conventions().intervals()) {
    if (each.time != conventions().time()) add_times(each.time, {lead});
    add_times(each.bounds, {each.statistic.interval_start(lead, previous_lead), lead});
  }
  std::set<std::pair<int, Index>> there;
  for (const codec::FinishedStep::Record& each : put) there.emplace(each.field, each.level);
  for (std::size_t number = 0; number < fields_.all().size(); ++number) {
    const Conventions::Field& field = fields_.all()[number];
    if (!field.has_time) continue;
    const Bytes begin = offset_of(field.variable);
    for (Index level = 0; level < field.levels(); ++level) {
      if (there.count({static_cast<int>(number), level}) == 0)
        patches.push_back({begin + level * slab(field), field.fill, field.values()});
    }
    // A variable of elements smaller than 4 bytes may end with up to 3 bytes of padding.
    const Bytes end = field.levels() * slab(field);
    const Bytes size = places_.of_variables[field.variable].size;
    if (end < size) patches.push_back({begin + end, field.fill, (size - end) / cf::size_of(field.type)});
  }
  return patches;
}

}  // namespace

Result<std::unique_ptr<codec::Codec>> make_codec(Version version, const codec::StreamDefinition& stream) {
  TR_TRY(Conventions::check_stream(stream));
  return std::unique_ptr<codec::Codec>(std::make_unique<CdfCodec>(version, stream));
}

Status check_goes_on(std::span<const std::byte> own, std::span<const std::byte> now) {
  const Result<Lasting> before = lasting_in(own);
  TR_TRY(before.status());
  const Result<Lasting> after = lasting_in(now);
  TR_TRY(after.status());
  TR_TRY(cf::check_same(before->variables, after->variables));
  return cf::check_same(before->attributes, after->attributes, "attribute", true);
}

std::optional<codec::Patch> step_count(Version version, std::int64_t steps) {
  return codec::Patch{4, encode_records(version, steps), 1};
}

}  // namespace tailrace::cdf
