// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// The common parts of fields and levels are asked of ecCodes once, and nothing of a header depends on that.
#include <gtest/gtest.h>

#include "grib_fixture.hpp"

namespace tailrace::codec::test {
namespace {

std::vector<double> up_to(int count) {
  std::vector<double> levels;
  for (int i = 1; i <= count; ++i) levels.push_back(i);
  return levels;
}

FieldDefinition numbered(int number) {
  FieldDefinition field = field_of("field" + std::to_string(number), "hybrid", {7});
  field.keys = {
      {"discipline", "0"}, {"parameterCategory", "200"}, {"parameterNumber", std::to_string(192 + number)}};
  return field;
}

FieldDefinition accumulated(const std::string& name) {
  FieldDefinition field = field_of(name);
  field.statistic.process = Process::accum;
  return field;
}

/// Returns how many messages ecCodes opens for the field.
std::int64_t opened_for(Codec& codec, const FieldDefinition& field) {
  const std::int64_t before = grib2::Handle::opened();
  const Status status = codec.define(field);
  EXPECT_TRUE(status.is_ok()) << field.name << ": " << status.text();
  return grib2::Handle::opened() - before;
}

ByteVector record_of(const Codec& codec, int field, Index level) {
  std::vector<double> values = wave(60);
  ByteVector out;
  const Status status = codec.encoder()->encode({field, level, 6 * hour, 0},
                                                reinterpret_cast<std::byte*>(values.data()), 60, out);
  EXPECT_TRUE(status.is_ok()) << status.text();
  return out;
}

/// Definitions that differ in everything by which headers may differ.
std::vector<FieldDefinition> all_kinds() {
  std::vector<FieldDefinition> fields{field_of("t", "hybrid", up_to(5)),
                                      field_of("q", "hybrid", {3, 1}),
                                      field_of("u", "hybrid", {9}),
                                      field_of("2t", "height", {2}),
                                      field_of("10u", "height", {10}),
                                      field_of("t", "pressure", {850, 0.5}),
                                      field_of("gh", "pressure", {500, 1000}),
                                      accumulated("tp"),
                                      accumulated("cp"),
                                      field_of("sp"),
                                      field_of("lsm"),
                                      numbered(1),
                                      numbered(2)};
  FieldDefinition coefficients = field_of("v", "hybrid", {1, 2});
  coefficients.levels.coefficients = {0, 100, 200, 0, 0.5, 1};
  fields.push_back(coefficients);
  FieldDefinition layer = field_of("t", "depthBelowLandLayer", {0, 0.1});
  layer.name = "st";
  layer.keys = {{"discipline", "2"}, {"parameterCategory", "0"}, {"parameterNumber", "2"}};
  layer.levels.bottoms = {0.1, 0.5};
  fields.push_back(layer);
  FieldDefinition member = field_of("r", "hybrid", {4});
  member.keys = {{"perturbationNumber", "3"}};
  fields.push_back(member);
  FieldDefinition local = field_of("d", "hybrid", {4});
  local.keys = {{"centre", "98"}, {"setLocalDefinition", "1"}, {"experimentVersionNumber", "0042"}};
  fields.push_back(local);
  FieldDefinition other_grid = field_of("w", "hybrid", {4});
  other_grid.georeference.keys.back().second = "23";
  fields.push_back(other_grid);
  fields.push_back(field_of("w", "hybrid", {6, 2, 4}));
  fields.push_back(field_of("cc", "hybrid", up_to(3)));
  return fields;
}

TEST(grib2_many_fields, levels_cost_no_message_each) {
  const auto few = codec_of(stream_of()), many = codec_of(stream_of());
  EXPECT_EQ(opened_for(*few, field_of("t", "hybrid", {1})),
            opened_for(*many, field_of("t", "hybrid", up_to(100))));
}

TEST(grib2_many_fields, fields_after_the_first_on_a_grid_cost_one_message_each) {
  const auto codec = codec_of(stream_of());
  opened_for(*codec, field_of("t", "hybrid", {7}));
  EXPECT_LE(opened_for(*codec, field_of("u", "hybrid", {7})), 1);
  EXPECT_LE(opened_for(*codec, field_of("q", "hybrid", up_to(50))), 1);
  opened_for(*codec, accumulated("tp"));
  EXPECT_LE(opened_for(*codec, accumulated("cp")), 1);
}

TEST(grib2_many_fields, fields_after_the_second_on_a_grid_that_numbers_name_cost_no_message) {
  const auto codec = codec_of(stream_of());
  opened_for(*codec, numbered(0));
  EXPECT_LE(opened_for(*codec, numbered(1)), 1);
  for (int i = 2; i < 20; ++i) EXPECT_EQ(opened_for(*codec, numbered(i)), 0);
  opened_for(*codec, field_of("u", "hybrid", {7}));
  EXPECT_EQ(opened_for(*codec, numbered(20)), 0);
}

TEST(grib2_many_fields, numbers_of_fields_before_leave_nothing_in_a_header) {
  FieldDefinition no_discipline = numbered(3), other_level = numbered(4), layer = numbered(5),
                  twice = numbered(6);
  no_discipline.keys.erase(no_discipline.keys.begin());
  other_level.levels.values = {12, 3};
  layer.levels.bottoms = {8};
  layer.levels.type = "hybridLayer";
  twice.keys[0] = {"parameterNumber", "1"};
  FieldDefinition ocean = numbered(7);
  ocean.keys[0].second = "10";
  const auto all = codec_of(stream_of());
  int number = 0;
  for (const FieldDefinition& field :
       {numbered(0), numbered(1), ocean, no_discipline, other_level, layer, twice, numbered(2)}) {
    const auto alone = codec_of(stream_of());
    const Status status = alone->define(field);
    EXPECT_EQ(all->define(field).text(), status.text());
    if (status.is_ok()) {
      EXPECT_EQ(alone->prepared(0), all->prepared(number++)) << field.name;
    }
  }
  EXPECT_GE(number, 6);
}

TEST(grib2_many_fields, a_header_is_the_same_beside_others_and_alone) {
  const auto all = codec_of(stream_of());
  int number = 0;
  for (const FieldDefinition& field : all_kinds()) {
    const auto alone = codec_of(stream_of());
    ASSERT_TRUE(alone->define(field).is_ok()) << field.name;
    ASSERT_TRUE(all->define(field).is_ok()) << field.name;
    EXPECT_EQ(alone->prepared(0), all->prepared(number)) << number << ": " << field.name;
    ++number;
  }
}

TEST(grib2_many_fields, a_name_that_a_later_level_changes_is_still_an_error) {
  for (const bool beside : {false, true}) {
    const auto codec = codec_of(stream_of());
    if (beside) ASSERT_TRUE(codec->define(field_of("v", "height", {50})).is_ok());
    const Status status = codec->define(field_of("u", "height", {50, 30, 10}));
    EXPECT_EQ(status.code(), Code::format);
    EXPECT_NE(status.text().find("10u"), std::string::npos) << status.text();
    // A failed definition leaves nothing behind.
    EXPECT_TRUE(codec->define(field_of("u", "height", {50, 30})).is_ok());
  }
}

TEST(grib2_many_fields, an_error_is_the_same_beside_others_and_alone) {
  std::vector<FieldDefinition> wrong{field_of("2t"), field_of("nonsense", "hybrid", {7}), accumulated("2t"),
                                     field_of("t", "hybrid", {7, -1})};
  wrong.push_back(field_of("t", "hybrid", {7}));
  wrong.back().keys = {{"typeOfLevel", "surface"}};
  const auto codec = codec_of(stream_of());
  for (const FieldDefinition& field : all_kinds()) ASSERT_TRUE(codec->define(field).is_ok());
  for (const FieldDefinition& field : wrong) {
    const Status alone = define(stream_of(), field), beside = codec->define(field);
    EXPECT_EQ(alone.code(), beside.code());
    EXPECT_EQ(alone.text(), beside.text());
    EXPECT_FALSE(alone.is_ok()) << field.name;
  }
}

TEST(grib2_many_fields, whoever_adopts_a_header_asks_nothing_of_eccodes_and_encodes_the_same) {
  const auto made = codec_of(stream_of()), adopted = codec_of(stream_of());
  int number = 0;
  for (FieldDefinition& field : all_kinds()) {
    ASSERT_TRUE(made->define(field).is_ok());
    field.georeference = {};
    const std::int64_t before = grib2::Handle::opened();
    const Status status = adopted->adopt(field, made->prepared(number));
    ASSERT_TRUE(status.is_ok()) << status.text();
    EXPECT_EQ(grib2::Handle::opened(), before);
    const auto levels = static_cast<Index>(field.levels.values.size());
    for (Index level = 0; level < levels; ++level)
      EXPECT_EQ(record_of(*made, number, level), record_of(*adopted, number, level)) << field.name;
    ++number;
  }
}

TEST(grib2_many_fields, a_header_that_arrives_damaged_is_refused) {
  const FieldDefinition field = field_of("t", "hybrid", up_to(3));
  const auto codec = codec_of(stream_of());
  ASSERT_TRUE(codec->define(field).is_ok());
  const ByteVector whole = codec->prepared(0);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const ByteVector part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    EXPECT_EQ(codec->adopt(field, part).code(), Code::corrupt) << length;
  }
  // Offsets of any value are refused or lie within the header. The sanitizers check this.
  for (std::size_t at = 0; at < whole.size(); ++at) {
    ByteVector damaged = whole;
    damaged[at] ^= std::byte{0x7f};
    const auto fresh = codec_of(stream_of());
    if (fresh->adopt(field, damaged).is_ok()) record_of(*fresh, 0, 2);
  }
  EXPECT_EQ(codec->adopt(field_of("t", "hybrid", up_to(4)), whole).code(), Code::corrupt);
  EXPECT_EQ(codec->adopt(accumulated("t"), whole).code(), Code::corrupt);
  EXPECT_EQ(codec->adopt(field_of("u", "hybrid", up_to(3)), whole).code(), Code::corrupt);
  FieldDefinition larger = field;
  larger.shape = {7, 10};
  EXPECT_EQ(codec->adopt(larger, whole).code(), Code::corrupt);
}

}  // namespace
}  // namespace tailrace::codec::test
