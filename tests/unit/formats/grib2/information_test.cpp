// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// accuracy=auto: the bits of a record follow from the information of its codes.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "grib_fixture.hpp"

namespace tailrace::codec::test {
namespace {

constexpr Index rows_of_grid = 50, row_of_grid = 100;

FieldDefinition informed_field(ElementType type = ElementType::f32) {
  FieldDefinition field = field_of("t", "hybrid", {7});
  field.type = type;
  field.shape = {rows_of_grid, row_of_grid};
  field.information = 0.99;
  return field;
}

/// A smooth field from 260 to 300 with noise of this size, as float32.
std::vector<double> noisy_waves(double noise) {
  std::mt19937 random(8);
  std::vector<double> values;
  for (Index i = 0; i < rows_of_grid * row_of_grid; ++i) {
    const double smooth = 280 + 20 * std::sin(0.003 * static_cast<double>(i % row_of_grid) +
                                              0.1 * static_cast<double>(i / row_of_grid));
    values.push_back(
        static_cast<float>(smooth + noise * (std::ldexp(static_cast<double>(random()), -32) - 0.5)));
  }
  return values;
}

struct Informed {
  ByteVector message;
  KeptBits kept;
};

Informed informed(const std::string& packing, const FieldDefinition& field,
                  const std::vector<double>& values) {
  const auto codec = codec_of(stream_of(packing));
  const Status defined = codec->define(field);
  EXPECT_TRUE(defined.is_ok()) << defined.text();
  if (!defined.is_ok()) return {};
  const bool as_float = codec->assembled_type(0) == ElementType::f32;
  std::vector<float> floats(values.begin(), values.end());
  std::vector<double> doubles = values;
  auto* const bytes =
      as_float ? reinterpret_cast<std::byte*>(floats.data()) : reinterpret_cast<std::byte*>(doubles.data());
  const auto encoder = codec->encoder();
  Informed found;
  const Status status = encoder->encode({0, 0, hour, 0}, bytes, std::ssize(values), found.message);
  EXPECT_TRUE(status.is_ok()) << status.text();
  EXPECT_LE(std::ssize(found.message), codec->encoded_bound(0));
  EXPECT_TRUE(encoder->kept_bits());
  found.kept = encoder->kept_bits().value_or(KeptBits());
  return found;
}

long bits_in(const ByteVector& message) {
  return grib2::Handle::from_message(message)->integer("bitsPerValue").value_or(-1);
}

class InformedPacking : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(packing, InformedPacking, testing::Values("simple", "ccsds"));

TEST_P(InformedPacking, bits_follow_the_noise_and_decoded_values_are_off_by_less_than_it) {
  long before = 24;
  for (const double noise : {0.1, 0.4, 2.0}) {
    const std::vector<double> values = noisy_waves(noise);
    const Informed found = informed(GetParam(), informed_field(), values);
    EXPECT_FALSE(found.kept.is_whole);
    EXPECT_GE(found.kept.information, 0.99);
    EXPECT_EQ(bits_in(found.message), found.kept.bits);
    EXPECT_LT(found.kept.bits, before) << noise;
    before = found.kept.bits;
    const std::vector<double> decoded = decode(found.message);
    ASSERT_EQ(decoded.size(), values.size());
    double worst = 0;
    for (std::size_t i = 0; i < values.size(); ++i)
      worst = std::max(worst, std::fabs(decoded[i] - values[i]));
    EXPECT_LT(worst, 3 * noise);
    EXPECT_GT(worst, noise / 60) << "bits that are noise are not kept";
  }
}

TEST_P(InformedPacking, doubles_and_missing_values_leave_the_bits_as_they_are) {
  std::vector<double> values = noisy_waves(0.5);
  const Informed whole = informed(GetParam(), informed_field(), values);
  EXPECT_EQ(informed(GetParam(), informed_field(ElementType::f64), values).kept.bits, whole.kept.bits);
  FieldDefinition field = informed_field();
  field.missing = -1;
  EXPECT_EQ(informed(GetParam(), field, values).message, whole.message);
  for (std::size_t i = 0; i < values.size(); ++i)
    if (i % 500 < 100 || i % 71 == 0) values[i] = -1;
  const Informed with = informed(GetParam(), field, values);
  EXPECT_EQ(with.kept.bits, whole.kept.bits);
  const std::vector<double> decoded = decode(with.message, -1);
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(decoded[i] == -1, values[i] == -1) << i;
}

TEST_P(InformedPacking, what_tells_nothing_keeps_all_bits) {
  FieldDefinition few = informed_field();
  few.shape = {6, 10};
  const Informed small = informed(GetParam(), few, wave(60, 5, 280));
  EXPECT_TRUE(small.kept.is_whole);
  EXPECT_EQ(bits_in(small.message), 24);
  const Informed constant = informed(GetParam(), informed_field(), std::vector<double>(5000, 280.5));
  EXPECT_TRUE(constant.kept.is_whole);
  EXPECT_EQ(decode(constant.message), std::vector<double>(5000, 280.5));
}

TEST_P(InformedPacking, zeros_among_values_of_both_signs_leave_the_bits_as_they_are) {
  std::vector<double> values = noisy_waves(0.5);
  for (double& value : values) value -= 280.01;
  const Informed whole = informed(GetParam(), informed_field(), values);
  for (std::size_t i = 0; i < values.size(); ++i)
    if (i % 500 < 100 || i % 71 == 0) values[i] = 0;
  const Informed with = informed(GetParam(), informed_field(), values);
  EXPECT_EQ(with.kept.bits, whole.kept.bits);
  EXPECT_FALSE(with.kept.is_whole);
  // Two other values that fill areas are left out as well.
  for (std::size_t i = 0; i < values.size(); ++i)
    if (i % 500 >= 100 && i % 500 < 300) values[i] = i % 500 < 200 ? 3.25 : -7.5;
  EXPECT_NEAR(informed(GetParam(), informed_field(), values).kept.bits, whole.kept.bits, 1);
}

TEST_P(InformedPacking, tiny_values_keep_as_many_bits_as_others) {
  const std::vector<double> values = noisy_waves(0.5);
  const Informed usual = informed(GetParam(), informed_field(ElementType::f64), values);
  for (const double size : {1e-31, 1e-33}) {  // the decimal scale of 24 bits is not that of fewer
    std::vector<double> tiny = values;
    for (double& value : tiny) value *= size / 40;
    const Informed found = informed(GetParam(), informed_field(ElementType::f64), tiny);
    EXPECT_LE(found.kept.bits, usual.kept.bits + 4) << size;
    const std::vector<double> decoded = decode(found.message);
    double worst = 0;
    for (std::size_t i = 0; i < tiny.size(); ++i) worst = std::max(worst, std::fabs(decoded[i] - tiny[i]));
    EXPECT_LT(worst, 3 * 0.5 * size / 40) << size;
  }
}

TEST_P(InformedPacking, a_record_without_values_counts_as_whole) {
  FieldDefinition field = informed_field();
  field.missing = -1;
  const Informed found = informed(GetParam(), field, std::vector<double>(5000, -1));
  EXPECT_TRUE(found.kept.is_whole);
  EXPECT_EQ(decode(found.message, -1), std::vector<double>(5000, -1));
}

TEST_P(InformedPacking, integers_that_do_not_fit_are_refused_and_told_of_bits) {
  FieldDefinition field = informed_field(ElementType::i64);
  for (const double most : {8589934592.0, 1e15}) {
    std::vector<double> values(5000, most);
    values[7] = most < 1e10 ? 0 : most - 1;
    const auto codec = codec_of(stream_of(GetParam()));
    ASSERT_TRUE(codec->define(field).is_ok());
    ByteVector out;
    const Status status = codec->encoder()->encode(
        {0, 0, hour, 0}, reinterpret_cast<std::byte*>(values.data()), std::ssize(values), out);
    EXPECT_EQ(status.code(), Code::data) << most;
    EXPECT_NE(status.text().find("give bits="), std::string::npos) << status.text();
  }
}

TEST_P(InformedPacking, integers_come_back_as_they_were) {
  std::vector<double> values;
  for (int i = 0; i < rows_of_grid * row_of_grid; ++i) values.push_back(i * i % 70001 - 35000);
  const Informed found = informed(GetParam(), informed_field(ElementType::i32), values);
  EXPECT_TRUE(found.kept.is_whole);
  EXPECT_EQ(decode(found.message), values);
}

}  // namespace
}  // namespace tailrace::codec::test
