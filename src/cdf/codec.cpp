// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "cdf/codec.hpp"

#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "cdf/classic.hpp"
#include "cf/conventions.hpp"
#include "codec/plain.hpp"
#ifdef TAILRACE_HAVE_GRIB
#include "grib2/sample.hpp"
#endif

namespace tailrace::cdf {

namespace {

using cf::Conventions;
using cf::Grid;
using cf::Type;
using codec::FieldDefinition;
using codec::Patch;
using codec::RecordKey;

/// A build without ecCodes cannot read samples: fields have no coordinates then.
Result<codec::Keys> keys_of(const codec::Georeference& georeference) {
#ifdef TAILRACE_HAVE_GRIB
  return grib2::grid_keys(georeference);
#else
  return georeference.keys;
#endif
}

/// A record of a field is one level of its variable in one record of the file.
class CdfCodec final : public codec::Codec {
 public:
  CdfCodec(Version version, const codec::StreamDefinition& stream)
      : places_{version, {}},
        conventions_(stream, [this](const cf::Contents& contents) { return places_.add_last(contents); }) {}

  Status define(const FieldDefinition& field) override {
    TR_TRY(codec::check_field(field));
    const std::string context = cat("field '", field.name, "'");
    if (!georeference_ || *georeference_ != field.georeference) {
      const Result<codec::Keys> keys = keys_of(field.georeference);
      TR_TRY(keys.status().in(context));
      georeference_ = field.georeference;
      keys_ = *keys;
    }
    const Result<Grid> grid = cf::grid_of(keys_, field.shape);
    TR_TRY(grid.status().in(context));
    return add(field, *grid).in(context);
  }
  [[nodiscard]] ByteVector prepared(int field) const override {
    Packer out;
    out.put_text(at(field).name);
    grids_[static_cast<std::size_t>(field)].pack(out);
    return out.take();
  }
  Status adopt(const FieldDefinition& field, std::span<const std::byte> prepared) override {
    TR_TRY(codec::check_field(field));
    Unpacker in(prepared);
    const bool same_name = in.get_text() == field.name;
    const Result<Grid> grid = Grid::unpack(in);
    TR_TRY(grid.status().in(cat("field '", field.name, "'")));
    const bool known = grid->kind != Grid::Kind::unknown;
    if (!same_name || (known && grid->latitudes.points * grid->longitudes.points != field.elements()))
      return {Code::corrupt, cat("field '", field.name, "': the prepared grid belongs to another field")};
    return add(field, *grid).in(cat("field '", field.name, "'"));
  }
  Status check_lead(const RecordKey& key) const override {
    if (key.lead >= 0) return {};
    return {Code::argument, cat("lead ", key.lead, " s is before the base time")};
  }
  [[nodiscard]] ByteVector head() const override { return encode(conventions_.contents(), places_); }
  [[nodiscard]] std::optional<codec::FixedPlaces> fixed_places() const override;
  [[nodiscard]] std::vector<Patch> rest_of_step(std::int64_t lead, std::int64_t previous_lead,
                                                std::span<const RecordKey> put) const override;
  [[nodiscard]] std::optional<codec::Decoding> decoding() const override { return codec::Decoding{true, ""}; }
  [[nodiscard]] std::unique_ptr<codec::Encoder> encoder() const override {
    return codec::plain_encoder(plain_);
  }
  [[nodiscard]] std::optional<codec::PlainValues> plain(int field) const override {
    return plain_[static_cast<std::size_t>(field)].values();
  }
  [[nodiscard]] ElementType assembled_type(int field) const override {
    return plain_[static_cast<std::size_t>(field)].type;
  }
  [[nodiscard]] double cost(int field) const override {
    return 500.0 + 0.2 * static_cast<double>(encoded_bound(field));
  }
  [[nodiscard]] Bytes encoded_bound(int field) const override { return slab(at(field)); }
  [[nodiscard]] Bytes working_bytes(int) const override { return 0; }

 private:
  [[nodiscard]] const Conventions::Field& at(int field) const {
    return conventions_.fields()[static_cast<std::size_t>(field)];
  }
  /// Returns the offset of a variable within a record.
  [[nodiscard]] Bytes offset_of(std::size_t variable) const { return places_.of_variables[variable].offset; }
  [[nodiscard]] static Bytes slab(const Conventions::Field& field) {
    return field.elements * cf::size_of(field.type);
  }
  Status add(const FieldDefinition& field, const Grid& grid) {
    TR_TRY(conventions_.add(field, grid));
    grids_.push_back(grid);
    plain_.push_back({field.name, field.type, field.elements(), std::endian::big});
    return {};
  }

  Places places_;  // before the conventions, which place the time at once
  Conventions conventions_;
  std::vector<Grid> grids_;
  // Fields share layouts, and decoding a sample takes time: the last georeference, and its grid by keys.
  std::optional<codec::Georeference> georeference_;
  codec::Keys keys_;
  std::vector<codec::PlainField> plain_;
};

std::optional<codec::FixedPlaces> CdfCodec::fixed_places() const {
  codec::FixedPlaces places;
  places.step = places_.record_size;
  for (const Conventions::Field& field : conventions_.fields()) {
    std::vector<Bytes>& of_levels = places.places.emplace_back();
    for (Index level = 0; level < field.levels(); ++level)
      of_levels.push_back(offset_of(field.variable) + level * slab(field));
  }
  return places;
}

std::vector<Patch> CdfCodec::rest_of_step(std::int64_t lead, std::int64_t previous_lead,
                                          std::span<const RecordKey> put) const {
  std::vector<Patch> patches;
  const auto add_times = [&](std::size_t variable, std::initializer_list<std::int64_t> leads) {
    Patch& patch = patches.emplace_back(Patch{offset_of(variable), {}, 1});
    for (const std::int64_t each : leads)
      cf::put_number(patch.bytes, Type::float64, static_cast<double>(each));
  };
  add_times(conventions_.time(), {lead});
  for (const Conventions::Interval& each : conventions_.intervals()) {
    if (each.time != conventions_.time()) add_times(each.time, {lead});
    add_times(each.bounds, {each.statistic.interval_start(lead, previous_lead), lead});
  }
  std::set<std::pair<int, Index>> there;
  for (const RecordKey& each : put) there.emplace(each.field, each.level);
  for (std::size_t number = 0; number < conventions_.fields().size(); ++number) {
    const Conventions::Field& field = conventions_.fields()[number];
    const Bytes begin = offset_of(field.variable);
    for (Index level = 0; level < field.levels(); ++level) {
      if (there.count({static_cast<int>(number), level}) == 0)
        patches.push_back({begin + level * slab(field), field.fill, field.elements});
    }
    // A variable of small elements may end with up to 3 bytes of padding.
    const Bytes end = field.levels() * slab(field);
    const Bytes size = places_.of_variables[field.variable].size;
    if (end < size) patches.push_back({begin + end, field.fill, (size - end) / cf::size_of(field.type)});
  }
  return patches;
}

}  // namespace

Result<std::unique_ptr<codec::Codec>> make_codec(Version version, const codec::StreamDefinition& stream) {
  TR_TRY(Conventions::check_attributes(stream.attributes));
  return std::unique_ptr<codec::Codec>(std::make_unique<CdfCodec>(version, stream));
}

std::optional<codec::Patch> step_count(Version version, std::int64_t steps) {
  return codec::Patch{4, encode_records(version, steps), 1};
}

}  // namespace tailrace::cdf
