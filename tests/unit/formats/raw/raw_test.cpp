// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "formats/raw/codec.hpp"

namespace tailrace::raw {
namespace {

std::unique_ptr<codec::Codec> raw_codec() { return std::move(*make({})); }

codec::FieldDefinition raw_field(ElementType type, Index elements) {
  codec::FieldDefinition field;
  field.name = "x";
  field.type = type;
  field.shape = {elements};
  return field;
}

TEST(raw, a_record_is_its_elements_of_any_type) {
  for (const ElementType type : {ElementType::i8, ElementType::i16, ElementType::i32, ElementType::i64,
                                 ElementType::f32, ElementType::f64, ElementType::c64, ElementType::c128,
                                 ElementType::byte, ElementType::u16, ElementType::u32, ElementType::u64}) {
    const auto codec = raw_codec();
    const Bytes length = 7 * size_of(type);
    ASSERT_TRUE(codec->define(raw_field(type, 7)).is_ok());
    EXPECT_EQ(codec->assembled_type(0), type);
    EXPECT_EQ(codec->encoded_bound(0), length);
    EXPECT_EQ(codec->working_bytes(0), 0);
    ByteVector values(static_cast<std::size_t>(length));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::byte>(i * 37 + 11);
    const ByteVector given = values;
    ByteVector out{std::byte{42}};  // the octets before it stay
    ASSERT_TRUE(codec->encoder()->encode({}, values.data(), 7, out).is_ok());
    ASSERT_EQ(out.size(), given.size() + 1);
    EXPECT_EQ(out[0], std::byte{42});
    EXPECT_EQ(std::memcmp(&out[1], given.data(), given.size()), 0) << name_of(type);
  }
}

TEST(raw, not_a_number_is_a_value_like_others) {
  const auto codec = raw_codec();
  ASSERT_TRUE(codec->define(raw_field(ElementType::f64, 2)).is_ok());
  double values[2] = {std::nan("7"), INFINITY};
  double back[2];
  ByteVector out;
  ASSERT_TRUE(codec->encoder()->encode({}, reinterpret_cast<std::byte*>(values), 2, out).is_ok());
  std::memcpy(back, out.data(), sizeof back);
  EXPECT_TRUE(std::isnan(back[0]));
  EXPECT_TRUE(std::isinf(back[1]));
}

TEST(raw, bad_arguments_are_refused_and_leave_the_output_alone) {
  const auto codec = raw_codec();
  ASSERT_TRUE(codec->define(raw_field(ElementType::f32, 3)).is_ok());
  const auto encoder = codec->encoder();
  float values[3] = {};
  ByteVector out;
  EXPECT_EQ(encoder->encode({1, 0, 0, 0}, reinterpret_cast<std::byte*>(values), 3, out).code(),
            Code::argument);
  const Status wrong = encoder->encode({}, reinterpret_cast<std::byte*>(values), 2, out);
  EXPECT_EQ(wrong.code(), Code::argument);
  EXPECT_NE(wrong.text().find("'x'"), std::string::npos);
  EXPECT_TRUE(out.empty());
  EXPECT_TRUE(codec->check_lead({0, 0, 900, 0}).is_ok());
}

TEST(raw, precision_that_raw_does_not_have_is_refused) {
  const auto codec = raw_codec();
  codec::FieldDefinition field = raw_field(ElementType::f32, 3);
  field.bits = 16;
  EXPECT_EQ(codec->define(field).code(), Code::format);
  field.bits.reset();
  field.accuracy = 0.1;
  EXPECT_EQ(codec->define(field).code(), Code::format);
}

TEST(raw, records_beyond_two_gibibytes_are_defined_with_their_size) {
  const auto codec = raw_codec();
  ASSERT_TRUE(codec->define(raw_field(ElementType::f64, Index{1} << 33)).is_ok());
  EXPECT_EQ(codec->encoded_bound(0), Bytes{1} << 36);
  EXPECT_EQ(codec->define(raw_field(ElementType::f64, Index{1} << 61)).code(), Code::argument);
}

}  // namespace
}  // namespace tailrace::raw
