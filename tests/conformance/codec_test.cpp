// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <random>
#include <thread>
#include <tuple>

#include "../support/own_encoder.hpp"
#include "formats/registry/registry.hpp"
#include "ground/base/byte_order.hpp"

// Every format of the registry that this build has, in each of its packings, and one of a program's own. A
// format without a library that reads it passes, too: nothing here decodes.
namespace tailrace::codec {
namespace {

using Values = std::vector<double>;

struct Candidate {
  const formats::Format* format;
  std::string_view packing;  // "" = the format has none to choose
};

void PrintTo(const Candidate& candidate, std::ostream* out) {
  *out << candidate.format->name << " " << candidate.packing;
}

bool has(const std::vector<FormatOption>& options, std::string_view key) {
  return std::any_of(options.begin(), options.end(), [&](const auto& each) { return each.key == key; });
}

std::vector<Candidate> candidates() {
  std::vector<Candidate> all;
  for (const formats::Format& format : formats::all()) {
    if (format.make == nullptr) continue;
    const std::size_t before = all.size();
    for (const FormatOption& option : format.options.stream) {
      if (option.key != "packing") continue;
      for (const std::string_view word : option.words) all.push_back({&format, word});
    }
    if (all.size() == before) all.push_back({&format, ""});
  }
  if (test::register_own()) all.push_back({*formats::find("own"), ""});
  return all;
}

constexpr Index kPoints = 60;
enum Field { temperature, rain, skin, fields };

/// Fields that every format holds: levels, a statistic, and a missing value.
FieldDefinition definition_of(Field field, const formats::Format& format) {
  FieldDefinition made;
  made.name = std::array{"t", "tp", "skt"}[field];
  made.type = field == rain ? ElementType::f64 : ElementType::f32;
  made.shape = {6, 10};
  made.georeference.keys = {{"gridType", "regular_ll"},
                            {"latitudeOfFirstGridPointInDegrees", "50"},
                            {"longitudeOfFirstGridPointInDegrees", "5"},
                            {"latitudeOfLastGridPointInDegrees", "45"},
                            {"longitudeOfLastGridPointInDegrees", "14"}};
  if (field == temperature) made.levels = {"isobaricInhPa", {1000, 850}, {}, {}};
  if (field == rain) made.statistic.process = Process::accum;
  if (field == rain && has(format.options.field, "accuracy")) made.accuracy = 1e-6;
  if (field == skin) made.missing = std::nan("");
  return made;
}

/// Values that fill their records: no packing makes noise small.
Values noise(unsigned seed) {
  std::mt19937 random(seed);
  Values values(kPoints);
  for (double& value : values) value = 200 + 100 * std::ldexp(random(), -32);
  return values;
}

class CodecConformance : public testing::TestWithParam<Candidate> {
 protected:
  void SetUp() override {
    codec = empty_codec();
    for (int field = 0; field < fields; ++field) {
      const Status status = codec->define(definition(field));
      ASSERT_TRUE(status.is_ok()) << status.text();
    }
  }
  [[nodiscard]] FieldDefinition definition(int field) const {
    return definition_of(static_cast<Field>(field), *GetParam().format);
  }
  [[nodiscard]] std::unique_ptr<Codec> empty_codec() const {
    StreamDefinition stream;
    stream.format = GetParam().format->name;
    stream.base = {2026, 3, 1, 0, 0, 0};
    if (GetParam().format->options.keys == "GRIB") stream.keys = {{"centre", "98"}};  // has all three names
    if (!GetParam().packing.empty()) stream.packing = GetParam().packing;
    Result<std::unique_ptr<Codec>> made = formats::make_codec(stream);
    EXPECT_TRUE(made.is_ok()) << made.status().text();
    return std::move(*made);
  }
  /// Encodes behind what `out` holds.
  static Status encode(const Codec& codec, Encoder& encoder, const RecordKey& key, const Values& values,
                       ByteVector& out) {
    const auto count = static_cast<Index>(values.size());
    Values doubles = values;
    std::vector<float> floats(values.begin(), values.end());
    const bool narrow =
        key.field >= 0 && key.field < fields && codec.assembled_type(key.field) == ElementType::f32;
    return encoder.encode(
        key,
        narrow ? reinterpret_cast<std::byte*>(floats.data()) : reinterpret_cast<std::byte*>(doubles.data()),
        count, out);
  }
  static ByteVector encoded(const Codec& codec, Encoder& encoder, const RecordKey& key,
                            const Values& values) {
    ByteVector out;
    const Status status = encode(codec, encoder, key, values, out);
    EXPECT_TRUE(status.is_ok()) << status.text();
    return out;
  }
  /// All records of two steps, in the order of a file.
  static std::vector<RecordKey> keys() {
    std::vector<RecordKey> all;
    for (const std::int64_t lead : {3600, 21600}) {
      for (const Index level : {0, 1}) all.push_back({temperature, level, lead, 0});
      all.push_back({rain, 0, lead, 0});
      all.push_back({skin, 0, lead, 0});
    }
    return all;
  }
  static std::vector<ByteVector> all_records(const Codec& codec, Encoder& encoder, bool backwards = false) {
    const std::vector<RecordKey> all = keys();
    std::vector<ByteVector> records(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::size_t at = backwards ? all.size() - 1 - i : i;
      records[at] = encoded(codec, encoder, all[at], noise(static_cast<unsigned>(at)));
    }
    return records;
  }

  std::unique_ptr<Codec> codec;
};

TEST_P(CodecConformance, bytes_depend_on_the_arguments_alone) {
  const auto encoder = codec->encoder();
  const std::vector<ByteVector> records = all_records(*codec, *encoder);
  EXPECT_EQ(all_records(*codec, *encoder, true), records) << "in another order";
  EXPECT_EQ(all_records(*codec, *codec->encoder()), records) << "by another encoder";
  std::vector<ByteVector> elsewhere;
  std::thread([&] { elsewhere = all_records(*codec, *codec->encoder(), true); }).join();
  EXPECT_EQ(elsewhere, records) << "on another thread";
  ByteVector file;
  ByteVector expected;
  for (std::size_t i = 0; i < records.size(); ++i) {
    ASSERT_TRUE(encode(*codec, *encoder, keys()[i], noise(static_cast<unsigned>(i)), file).is_ok());
    expected.insert(expected.end(), records[i].begin(), records[i].end());
  }
  EXPECT_EQ(file, expected) << "behind other records";
}

/// Servers put the values of such a record into it without the encoder.
TEST_P(CodecConformance, a_plain_record_is_its_values_in_their_order) {
  const auto encoder = codec->encoder();
  for (int field = 0; field < fields; ++field) {
    const std::optional<PlainValues> plain = codec->plain(field);
    if (!plain) continue;
    const Values values = noise(5);
    const std::vector<float> floats(values.begin(), values.end());
    ASSERT_EQ(codec->assembled_type(field), definition(field).type);
    const bool narrow = definition(field).type == ElementType::f32;
    const auto given = narrow ? std::as_bytes(std::span(floats)) : std::as_bytes(std::span(values));
    ByteVector expected(given.size());
    copy_ordered(expected.data(), given.data(), static_cast<Bytes>(given.size()), plain->scalar,
                 plain->order);
    EXPECT_EQ(encoded(*codec, *encoder, {field, 0, 3600, 0}, values), expected);
    EXPECT_EQ(static_cast<Bytes>(expected.size()), codec->encoded_bound(field));
  }
}

TEST_P(CodecConformance, equal_definitions_make_equal_codecs) {
  const auto other = empty_codec();
  for (int field = 0; field < fields; ++field) ASSERT_TRUE(other->define(definition(field)).is_ok());
  EXPECT_EQ(all_records(*other, *other->encoder()), all_records(*codec, *codec->encoder()));
  EXPECT_EQ(other->head(), codec->head());
  for (int field = 0; field < fields; ++field) {
    EXPECT_EQ(other->prepared(field), codec->prepared(field));
    EXPECT_EQ(other->cost(field), codec->cost(field));
    EXPECT_EQ(other->encoded_bound(field), codec->encoded_bound(field));
    EXPECT_EQ(other->working_bytes(field), codec->working_bytes(field));
  }
}

TEST_P(CodecConformance, a_record_keeps_to_its_bound_and_costs_something) {
  const auto encoder = codec->encoder();
  Values holes = noise(3);
  for (std::size_t i = 0; i < holes.size(); i += 2) holes[i] = std::nan("");
  for (const RecordKey& key : keys()) {
    EXPECT_GT(codec->cost(key.field), 0);
    EXPECT_GE(codec->working_bytes(key.field), 0);
    const ElementType type = codec->assembled_type(key.field);
    EXPECT_TRUE(type == definition(key.field).type || type == ElementType::f64) << name_of(type);
    std::vector<Values> tried{noise(1), noise(2), Values(kPoints, 0), Values(kPoints, 273.125)};
    if (key.field == skin) tried.insert(tried.end(), {holes, Values(kPoints, std::nan(""))});
    for (const Values& values : tried) {
      const ByteVector record = encoded(*codec, *encoder, key, values);
      EXPECT_GT(record.size(), 0U);
      EXPECT_LE(static_cast<Bytes>(record.size()), codec->encoded_bound(key.field));
    }
  }
}

TEST_P(CodecConformance, a_codec_that_adopts_what_another_prepared_writes_the_same) {
  const auto other = empty_codec();
  for (int field = 0; field < fields; ++field) {
    const Status status = other->adopt(definition(field), codec->prepared(field));
    ASSERT_TRUE(status.is_ok()) << status.text();
  }
  EXPECT_EQ(all_records(*other, *other->encoder()), all_records(*codec, *codec->encoder()));
  EXPECT_EQ(other->head(), codec->head());
}

TEST_P(CodecConformance, what_was_prepared_for_another_field_or_is_damaged_is_not_adopted) {
  const ByteVector prepared = codec->prepared(temperature);
  if (prepared.empty()) GTEST_SKIP() << "this format prepares nothing";
  const auto other = empty_codec();
  EXPECT_EQ(other->adopt(definition(rain), prepared).code(), Code::corrupt);
  for (std::size_t length = 0; length < prepared.size(); length += 7)
    EXPECT_EQ(other->adopt(definition(temperature), std::span(prepared).first(length)).code(), Code::corrupt)
        << length;
}

TEST_P(CodecConformance, impossible_definitions_are_refused_and_take_no_number) {
  const auto other = empty_codec();
  const auto refuses = [&](void (*spoil)(FieldDefinition&)) {
    FieldDefinition field = definition(temperature);
    spoil(field);
    const Status status = other->define(field);
    EXPECT_EQ(status.code(), Code::argument) << status.text();
  };
  refuses([](auto& f) { f.name.clear(); });
  refuses([](auto& f) { f.levels.values.clear(); });
  refuses([](auto& f) { f.levels.bottoms = {1, 2, 3}; });
  refuses([](auto& f) { f.type = static_cast<ElementType>(77); });
  refuses([](auto& f) { f.shape = {-6, 10}; });
  refuses([](auto& f) { f.shape = {-6, -10}; });
  refuses([](auto& f) { f.shape = {0, 10}; });
  refuses([](auto& f) { f.shape = {Index{1} << 40, Index{1} << 40}; });
  refuses([](auto& f) { f.missing = INFINITY; });
  refuses([](auto& f) { f.bits = 8, f.accuracy = 1; });
  for (int field = 0; field < fields; ++field) ASSERT_TRUE(other->define(definition(field)).is_ok());
  EXPECT_EQ(all_records(*other, *other->encoder()), all_records(*codec, *codec->encoder()));
}

TEST_P(CodecConformance, a_value_that_is_not_finite_is_kept_or_named) {
  const auto encoder = codec->encoder();
  const RecordKey key{temperature, 1, 3600, 0};
  const ByteVector good = encoded(*codec, *encoder, key, noise(1));
  for (const double odd : {std::nan(""), double{INFINITY}, -double{INFINITY}}) {
    Values values = noise(1);
    values[37] = odd;
    ByteVector out{std::byte{42}};
    const Status status = encode(*codec, *encoder, key, values, out);
    if (status.is_ok()) {
      EXPECT_EQ(encoder->offending(), -1);
      EXPECT_NE(ByteVector(out.begin() + 1, out.end()), good);
      std::swap(values[37], values[38]);
      EXPECT_NE(ByteVector(out.begin() + 1, out.end()), encoded(*codec, *encoder, key, values));
    } else {
      EXPECT_EQ(status.code(), Code::data) << status.text();
      for (const char* const word : {"'t'", "850", "37"})
        EXPECT_NE(status.text().find(word), std::string::npos) << status.text();
      EXPECT_EQ(encoder->offending(), 37);
      EXPECT_EQ(out, ByteVector{std::byte{42}});
    }
    EXPECT_EQ(encoded(*codec, *encoder, key, noise(1)), good) << "after " << odd;
  }
}

TEST_P(CodecConformance, a_missing_value_of_nan_is_taken_wherever_it_stands) {
  const auto encoder = codec->encoder();
  const RecordKey key{skin, 0, 3600, 0};
  Values one = noise(1), other = one;
  one[3] = std::nan("");
  other[4] = std::nan("");
  EXPECT_NE(encoded(*codec, *encoder, key, one), encoded(*codec, *encoder, key, other));
}

TEST_P(CodecConformance, arguments_of_no_definition_are_refused_and_leave_the_output_alone) {
  const auto encoder = codec->encoder();
  ByteVector out{std::byte{42}};
  for (const int field : {-1, static_cast<int>(fields)})
    EXPECT_EQ(encode(*codec, *encoder, {field, 0, 0, 0}, noise(1), out).code(), Code::argument);
  for (const std::size_t count : {std::size_t{kPoints - 1}, std::size_t{kPoints + 1}})
    EXPECT_EQ(encode(*codec, *encoder, {skin, 0, 0, 0}, Values(count, 1), out).code(), Code::argument);
  EXPECT_EQ(out, ByteVector{std::byte{42}});
}

TEST_P(CodecConformance, leads_are_checked_before_anything_is_encoded) {
  for (const RecordKey& key : keys()) EXPECT_TRUE(codec->check_lead(key).is_ok());
  EXPECT_TRUE(codec->check_lead({temperature, 0, 0, 0}).is_ok());
  // Leads below 0 are for TimeAxis::check(): in streams with times of the model they are times before 0.
}

TEST_P(CodecConformance, a_finder_tells_each_record_and_what_is_left_of_it) {
  const auto finder = codec->finder();
  if (finder == nullptr) GTEST_SKIP() << "records of this format do not show";
  ByteVector file = codec->head();
  const ReadBytes read = [&](std::span<std::byte> to, Bytes offset) -> Result<Bytes> {
    const auto there = std::clamp<Bytes>(static_cast<Bytes>(file.size()) - offset, 0, std::ssize(to));
    std::copy_n(file.begin() + offset, there, to.begin());
    return there;
  };
  const std::vector<ByteVector> records = all_records(*codec, *codec->encoder());
  auto offset = static_cast<Bytes>(file.size());
  for (const ByteVector& record : records) file.insert(file.end(), record.begin(), record.end());
  const auto size = static_cast<Bytes>(file.size());
  const auto find = [&](Bytes at, Bytes end) { return *finder->find(read, at, end); };
  for (std::size_t i = 0; i < records.size(); ++i) {
    const RecordKey key = keys()[i];
    const auto length = static_cast<Bytes>(records[i].size());
    const FoundRecord found = find(offset, size);
    ASSERT_EQ(found.state, FoundRecord::State::whole) << i;
    EXPECT_TRUE(found.has_key);
    EXPECT_EQ(
        std::tuple(found.key.field, found.key.level, found.key.lead, found.key.interval_start, found.length),
        std::tuple(key.field, key.level, key.lead, key.interval_start, length));
    EXPECT_EQ(find(offset + 1, size).state, FoundRecord::State::none);
    EXPECT_EQ(find(offset, offset + length - 1).state, FoundRecord::State::torn);
    for (Bytes left = 1; left < length; left += 5)
      EXPECT_NE(find(offset, offset + left).state, FoundRecord::State::whole) << left;
    offset += length;
  }
  std::fill(file.begin(), file.end(), std::byte{});
  EXPECT_EQ(find(0, size).state, FoundRecord::State::none);
}

TEST_P(CodecConformance, fixed_places_hold_their_records_and_do_not_overlap) {
  const std::optional<FixedPlaces> fixed = codec->fixed_places();
  if (!fixed) GTEST_SKIP() << "records of this format follow one another";
  ASSERT_EQ(fixed->places.size(), static_cast<std::size_t>(fields));
  std::vector<std::pair<Bytes, Bytes>> taken;  // begin, end
  const auto encoder = codec->encoder();
  std::vector<RecordKey> step = keys();
  step.resize(step.size() / 2);
  std::vector<FinishedStep::Record> put;
  std::map<int, Bytes> used;  // by field, where levels follow one another
  for (const RecordKey& key : step) {
    const Bytes place =
        fixed->places[static_cast<std::size_t>(key.field)][static_cast<std::size_t>(key.level)] +
        used[key.field];
    const Bytes size = std::ssize(encoded(*codec, *encoder, key, noise(1)));
    if (fixed->are_packed) used[key.field] += size;
    taken.emplace_back(place, place + size);
    put.push_back({key.field, key.level, place, size});
  }
  for (const Patch& patch : codec->rest_of_step(3600, 0, put))
    taken.emplace_back(patch.offset, patch.offset + std::ssize(patch.bytes) * patch.times);
  std::sort(taken.begin(), taken.end());
  for (std::size_t i = 1; i < taken.size(); ++i) EXPECT_LE(taken[i - 1].second, taken[i].first);
  EXPECT_GE(taken.front().first, 0);
  EXPECT_LE(taken.back().second, fixed->step);
}

INSTANTIATE_TEST_SUITE_P(every, CodecConformance, testing::ValuesIn(candidates()), [](const auto& info) {
  const std::string name(info.param.format->name);
  return info.param.packing.empty() ? name : name + "_" + std::string(info.param.packing);
});

}  // namespace
}  // namespace tailrace::codec
