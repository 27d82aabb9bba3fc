// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/codec/definition.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "formats/codec/codec.hpp"
#include "formats/codec/missing.hpp"

namespace tailrace::codec {
namespace {

FieldDefinition rich_field() {
  FieldDefinition field;
  field.name = "t";
  field.type = ElementType::f64;
  field.shape = {3, 4, 5};
  field.georeference.sample = {std::byte{1}, std::byte{2}};
  field.georeference.keys = {{"gridType", "rotated_ll"}, {"Ni", "5"}};
  field.levels = {"hybridLayer", {1, 2}, {2, 3}, {0.5, 0.25, 0, 1}};
  field.statistic = {Process::maximum, Statistic::Since::duration, 21600, false};
  field.relative_accuracy = 1e-4;
  field.missing = -9e33;
  field.keys = {{"a", "1"}, {"a", "2"}, {"", ""}};
  return field;
}

FieldDefinition plain_field(Index elements) {
  FieldDefinition field;
  field.name = "x";
  field.shape = {elements};
  return field;
}

ByteVector packed(const FieldDefinition& field) {
  Packer out;
  field.pack(out);
  return out.take();
}

ByteVector packed(const StreamDefinition& stream) {
  Packer out;
  stream.pack(out);
  return out.take();
}

TEST(definition, a_field_without_time_comes_back_without_its_values) {
  FieldDefinition field = rich_field();
  const ByteVector with_time = packed(field);
  field.has_time = false;
  field.values = std::make_shared<const ByteVector>(480, std::byte{1});
  const ByteVector bytes = packed(field);
  EXPECT_GT(bytes.size(), with_time.size());
  EXPECT_LT(bytes.size(), with_time.size() + 100) << "the values are packed elsewhere";
  Unpacker in(bytes);
  const Result<FieldDefinition> back = FieldDefinition::unpack(in);
  ASSERT_TRUE(back.is_ok()) << back.status().text();
  EXPECT_TRUE(in.rest().empty());
  EXPECT_FALSE(back->has_time);
  EXPECT_EQ(back->values, nullptr);
  EXPECT_TRUE(back->dimensions.empty());
}

TEST(definition, a_section_comes_back_and_one_that_is_no_section_is_damage) {
  FieldDefinition field = rich_field();
  const ByteVector whole = packed(field);
  field.section = {{9, 4, 10}, {2, 0, 1}, {9, 4, 10}, {3, 1, 2}, "not packed"};
  const ByteVector bytes = packed(field);
  EXPECT_GT(bytes.size(), whole.size());
  Unpacker in(bytes);
  const Result<FieldDefinition> back = FieldDefinition::unpack(in);
  ASSERT_TRUE(back.is_ok()) << back.status().text();
  EXPECT_TRUE(in.rest().empty());
  EXPECT_EQ(back->section.whole, field.section.whole);
  EXPECT_EQ(back->section.start, field.section.start);
  EXPECT_EQ(back->section.stop, field.section.stop);
  EXPECT_EQ(back->section.stride, field.section.stride);
  EXPECT_EQ(back->section.no_grid, "");
  EXPECT_EQ(packed(*back), bytes);
  field.section.stop[1] = 5;
  const ByteVector beyond = packed(field);
  Unpacker wrong(beyond);
  EXPECT_EQ(FieldDefinition::unpack(wrong).status().code(), Code::corrupt);
}

TEST(definition, what_is_left_of_a_field_over_dimensions_comes_back) {
  FieldDefinition field = rich_field();
  const ByteVector whole = packed(field);
  field.reduction.operation = Reduction::Operation::sum;
  field.reduction.shape = field.shape;
  field.reduction.is_lost.assign(field.shape.size(), 0);
  field.reduction.level_type = "hybrid";
  field.reduction.shape.push_back(7);
  field.reduction.is_lost.push_back(1);
  const ByteVector bytes = packed(field);
  Unpacker in(bytes);
  const Result<FieldDefinition> back = FieldDefinition::unpack(in);
  ASSERT_TRUE(back.is_ok()) << back.status().text();
  EXPECT_TRUE(in.rest().empty());
  EXPECT_EQ(back->reduction, field.reduction);
  EXPECT_EQ(back->type, field.type);
  EXPECT_EQ(back->elements_put(), 7 * field.elements());
  for (std::size_t length = whole.size(); length < bytes.size(); ++length) {
    Unpacker part(std::span<const std::byte>(bytes).first(length));
    EXPECT_EQ(FieldDefinition::unpack(part).status().code(), Code::corrupt) << length;
  }
  field.reduction.weights = "area";
  field.reduction.weight_strides.assign(field.reduction.shape.size(), 3);
  field.reduction.weight_level = 5;
  const ByteVector weighted = packed(field);
  Unpacker more(weighted);
  const Result<FieldDefinition> with_weights = FieldDefinition::unpack(more);
  ASSERT_TRUE(with_weights.is_ok() && more.rest().empty()) << with_weights.status().text();
  EXPECT_EQ(with_weights->reduction, field.reduction);
  field.reduction.weight_strides.push_back(1);  // more than there are dimensions
  const ByteVector odd = packed(field);
  Unpacker odd_one(odd);
  EXPECT_EQ(FieldDefinition::unpack(odd_one).status().code(), Code::corrupt);
  field.reduction.weight_strides.clear();
  field.reduction.shape[0] += 1;  // no record of the field's shape is left of this
  const ByteVector wrong = packed(field);
  Unpacker other(wrong);
  EXPECT_EQ(FieldDefinition::unpack(other).status().code(), Code::corrupt);
}

TEST(definition, a_field_comes_back_from_its_packed_form) {
  const FieldDefinition field = rich_field();
  const ByteVector bytes = packed(field);
  Unpacker in(bytes);
  Result<FieldDefinition> back = FieldDefinition::unpack(in);
  ASSERT_TRUE(back.is_ok()) << back.status().text();
  EXPECT_TRUE(in.rest().empty());
  EXPECT_EQ(back->name, "t");
  EXPECT_EQ(back->type, ElementType::f64);
  EXPECT_EQ(back->shape, field.shape);
  EXPECT_EQ(back->georeference, field.georeference);
  EXPECT_EQ(back->levels.type, "hybridLayer");
  EXPECT_EQ(back->levels.values, field.levels.values);
  EXPECT_EQ(back->levels.bottoms, field.levels.bottoms);
  EXPECT_EQ(back->levels.coefficients, field.levels.coefficients);
  EXPECT_EQ(back->statistic.process, Process::maximum);
  EXPECT_EQ(back->statistic.since, Statistic::Since::duration);
  EXPECT_EQ(back->statistic.duration, 21600);
  EXPECT_FALSE(back->statistic.write_at_zero);
  EXPECT_FALSE(back->accuracy.has_value());
  EXPECT_FALSE(back->bits.has_value());
  EXPECT_EQ(back->relative_accuracy, 1e-4);
  EXPECT_EQ(back->missing, -9e33);
  EXPECT_EQ(back->keys, field.keys);
  EXPECT_EQ(packed(*back), bytes);
}

TEST(definition, the_share_of_information_has_the_place_of_the_accuracy) {
  FieldDefinition field = rich_field();
  field.relative_accuracy.reset();
  field.information = 0.95;
  const ByteVector bytes = packed(field);
  Unpacker in(bytes);
  const Result<FieldDefinition> back = FieldDefinition::unpack(in);
  ASSERT_TRUE(back.is_ok()) << back.status().text();
  EXPECT_TRUE(in.rest().empty());
  EXPECT_EQ(back->information, 0.95);
  EXPECT_FALSE(back->accuracy);
  field.information.reset();
  field.accuracy = 0.95;
  EXPECT_EQ(packed(field).size(), bytes.size());
}

TEST(definition, a_stream_comes_back_from_its_packed_form) {
  StreamDefinition stream;
  stream.format = "raw";
  stream.base = {2026, 3, 1, 6, 30, 15};
  stream.calendar = Calendar::day_360;
  stream.member = 0;
  stream.members = 51;
  stream.packing = "ccsds";
  stream.keys = {{"centre", "98"}};
  const ByteVector bytes = packed(stream);
  Unpacker in(bytes);
  Result<StreamDefinition> back = StreamDefinition::unpack(in);
  ASSERT_TRUE(back.is_ok()) << back.status().text();
  EXPECT_EQ(back->format, "raw");
  EXPECT_EQ(back->base, stream.base);
  EXPECT_EQ(back->calendar, Calendar::day_360);
  EXPECT_EQ(back->member, 0);
  EXPECT_EQ(back->members, 51);
  EXPECT_EQ(back->packing, "ccsds");
  EXPECT_EQ(back->keys, stream.keys);
  EXPECT_EQ(packed(*back), bytes);
}

TEST(definition, attributes_with_types_come_back_and_streams_without_any_keep_their_bytes) {
  StreamDefinition stream;
  const std::size_t without = packed(stream).size();
  stream.time.set_name("t");
  stream.given = {{"depth", "valid_max", ElementType::i16, {std::byte{1}, std::byte{2}}},
                  {"", "comment", std::nullopt, {std::byte{'a'}}}};
  const ByteVector bytes = packed(stream);
  Unpacker in(bytes);
  const Result<StreamDefinition> back = StreamDefinition::unpack(in);
  ASSERT_TRUE(back.is_ok()) << back.status().text();
  EXPECT_EQ(back->given, stream.given);
  EXPECT_EQ(back->time, stream.time);
  // A damaged file may tell of numbers that are not whole.
  for (const auto& [type, size] : {std::pair(ElementType::f64, 7), std::pair(ElementType::f64, 0),
                                   std::pair(static_cast<ElementType>(77), 8)}) {
    stream.given.back() = {"", "comment", type, ByteVector(static_cast<std::size_t>(size))};
    const ByteVector damaged = packed(stream);
    Unpacker torn(damaged);
    EXPECT_EQ(StreamDefinition::unpack(torn).status().code(), Code::corrupt) << size;
  }
  stream.given.clear();
  stream.time = {};
  EXPECT_EQ(packed(stream).size(), without);
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    Unpacker part{std::span<const std::byte>(bytes).first(length)};
    EXPECT_EQ(StreamDefinition::unpack(part).status().code(), Code::corrupt) << length;
  }
}

TEST(definition, every_shortened_form_is_refused_and_none_is_read_past_its_end) {
  const ByteVector field = packed(rich_field());
  for (std::size_t length = 0; length < field.size(); ++length) {
    const ByteVector part(field.begin(), field.begin() + static_cast<std::ptrdiff_t>(length));
    Unpacker in(part);
    EXPECT_EQ(FieldDefinition::unpack(in).status().code(), Code::corrupt) << length;
  }
  const ByteVector stream = packed(StreamDefinition{});
  for (std::size_t length = 0; length < stream.size(); ++length) {
    const ByteVector part(stream.begin(), stream.begin() + static_cast<std::ptrdiff_t>(length));
    Unpacker in(part);
    EXPECT_EQ(StreamDefinition::unpack(in).status().code(), Code::corrupt) << length;
  }
}

TEST(definition, elements_are_the_product_of_the_shape_and_minus_one_where_that_is_none) {
  FieldDefinition field;
  EXPECT_EQ(field.elements(), 1);
  field.shape = {3, 4, 5};
  EXPECT_EQ(field.elements(), 60);
  field.shape = {Index{1} << 20, Index{1} << 20};
  EXPECT_EQ(field.elements(), Index{1} << 40);
  field.shape = {std::numeric_limits<Index>::max(), 2};
  EXPECT_EQ(field.elements(), -1);
  field.shape = {3, -1};
  EXPECT_EQ(field.elements(), -1);
}

TEST(check_field, what_no_format_holds_is_refused) {
  FieldDefinition field = plain_field(3);
  field.name.clear();
  EXPECT_EQ(check_field(field).code(), Code::argument);
  field = plain_field(0);
  EXPECT_EQ(check_field(field).code(), Code::argument);
  field = plain_field(3);
  field.bits = 8;
  field.accuracy = 1;
  EXPECT_EQ(check_field(field).code(), Code::argument);
  field = plain_field(3);
  field.missing = INFINITY;
  EXPECT_EQ(check_field(field).code(), Code::argument);
  field = plain_field(3);
  field.levels.bottoms = {1, 2};
  EXPECT_EQ(check_field(field).code(), Code::argument);
}

TEST(codec_definition, coordinates_beyond_all_memory_have_no_number_of_bytes) {
  EXPECT_EQ((Coordinates{{2, 3}, 4, 0, {}}.bytes()), 6 * 16 * 5);
  EXPECT_EQ((Coordinates{{Index{1} << 60}, 0, 0, {}}.bytes()), std::nullopt);
  EXPECT_EQ((Coordinates{{Index{1} << 32, Index{1} << 32}, 0, 0, {}}.bytes()), std::nullopt);
}

/// Expects that an element of `type` holds `wanted`, and nothing does for each of `beyond`.
template <typename T>
void expect_missing(ElementType type, double missing, T wanted, std::initializer_list<double> beyond) {
  const ByteVector element = missing_element(type, missing);
  ASSERT_EQ(element.size(), sizeof wanted) << name_of(type);
  EXPECT_EQ(std::memcmp(element.data(), &wanted, sizeof wanted), 0) << name_of(type);
  for (const double other : beyond) EXPECT_TRUE(missing_element(type, other).empty()) << other;
}

TEST(codec_missing, an_element_holds_the_missing_value_if_its_type_has_it) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  expect_missing(ElementType::i8, -128, std::int8_t{-128}, {-129, 128, 0.5, nan});
  expect_missing(ElementType::i16, 32767, std::int16_t{32767}, {32768, 1e20});
  expect_missing(ElementType::i32, -999, std::int32_t{-999}, {2147483648.0});
  expect_missing(ElementType::i64, -0x1p63, std::numeric_limits<std::int64_t>::min(), {0x1p63, nan});
  expect_missing(ElementType::byte, 255, std::uint8_t{255}, {-1, 256});
  expect_missing(ElementType::u16, 65535, std::uint16_t{65535}, {-1, 65536, 1.5});
  expect_missing(ElementType::u32, 4294967295.0, std::uint32_t{4294967295U}, {-1, 4294967296.0});
  expect_missing(ElementType::u64, 0x1p63, std::uint64_t{1} << 63, {-1, 0x1p64});
  expect_missing(ElementType::f32, 1e20, 1e20F, {1e40});
  expect_missing(ElementType::f64, 1e40, 1e40, {});
  EXPECT_EQ(missing_element(ElementType::c64, -1).size(), 8U);
  EXPECT_EQ(missing_element(ElementType::c128, 1e40).size(), 16U);
}

}  // namespace
}  // namespace tailrace::codec
