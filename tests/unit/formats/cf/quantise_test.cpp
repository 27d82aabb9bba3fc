// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/cf/quantise.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <set>

namespace tailrace::cf {
namespace {

codec::FieldDefinition field(ElementType type) {
  codec::FieldDefinition made;
  made.type = type;
  return made;
}

/// Numbers of all magnitudes and signs.
template <typename Real>
std::vector<Real> numbers() {
  std::mt19937 random(7);
  std::vector<Real> values;
  for (int i = 0; i < 20000; ++i) {
    const double mantissa = std::ldexp(static_cast<double>(random()), -32) - 0.5;
    values.push_back(static_cast<Real>(std::ldexp(mantissa, static_cast<int>(random() % 80) - 40)));
  }
  return values;
}

template <typename Real>
class QuantiseTest : public testing::Test {
 public:
  static constexpr ElementType type = sizeof(Real) == 4 ? ElementType::f32 : ElementType::f64;
};
using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(QuantiseTest, Reals);

TYPED_TEST(QuantiseTest, no_value_is_further_off_than_the_accuracy_and_none_is_rounded_for_less) {
  for (const double accuracy : {0.3, 0.5, 1e-4, 1e3, 1e-30}) {
    codec::FieldDefinition definition = field(TestFixture::type);
    definition.accuracy = accuracy;
    const Quantisation how = quantisation_of(definition);
    EXPECT_LE(how.step, 2 * accuracy);
    EXPECT_GT(how.step, accuracy);
    const std::vector<TypeParam> given = numbers<TypeParam>();
    std::vector<TypeParam> kept = given;
    quantise(kept, how, {});
    for (std::size_t i = 0; i < given.size(); ++i) {
      ASSERT_LE(std::fabs(double{kept[i]} - double{given[i]}), accuracy) << given[i];
      ASSERT_EQ(std::remainder(double{kept[i]}, how.step), 0) << given[i];
    }
    std::vector<TypeParam> twice = kept;
    quantise(twice, how, {});
    EXPECT_EQ(twice, kept);
  }
}

TYPED_TEST(QuantiseTest, a_relative_accuracy_holds_for_each_value) {
  for (const double accuracy : {0.3, 0.25, 1e-2, 1e-5}) {
    codec::FieldDefinition definition = field(TestFixture::type);
    definition.relative_accuracy = accuracy;
    const Quantisation how = quantisation_of(definition);
    ASSERT_TRUE(how.kept);
    const std::vector<TypeParam> given = numbers<TypeParam>();
    std::vector<TypeParam> kept = given;
    quantise(kept, how, {});
    double worst = 0;
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (given[i] == 0) continue;
      worst = std::max(worst, std::fabs(double{kept[i]} / double{given[i]} - 1));
    }
    EXPECT_LE(worst, accuracy);
    EXPECT_GT(worst, accuracy / 4) << "a bit more than needed is kept at most";
  }
}

TYPED_TEST(QuantiseTest, missing_values_and_those_that_are_not_finite_stay) {
  const TypeParam infinite = std::numeric_limits<TypeParam>::infinity();
  const TypeParam largest = std::numeric_limits<TypeParam>::max();
  for (const bool by_bits : {false, true}) {
    codec::FieldDefinition definition = field(TestFixture::type);
    if (by_bits)
      definition.bits = 3;
    else
      definition.accuracy = 10;
    const Quantisation how = quantisation_of(definition);
    std::vector<TypeParam> values{
        static_cast<TypeParam>(-999.9), infinite, -infinite, std::nan(""), largest, 1001};
    quantise(values, how, -999.9);
    EXPECT_EQ(values[0], static_cast<TypeParam>(-999.9));
    EXPECT_EQ(values[1], infinite);
    EXPECT_EQ(values[2], -infinite);
    EXPECT_TRUE(std::isnan(values[3]));
    EXPECT_TRUE(std::isfinite(values[4]));
    EXPECT_EQ(values[5], by_bits ? 1024 : 1008);
  }
}

TEST(quantise, integers_keep_all_bits_and_so_do_numbers_without_an_option) {
  codec::FieldDefinition definition = field(ElementType::i32);
  definition.accuracy = 100;
  EXPECT_TRUE(quantisation_of(definition).keeps_all());
  EXPECT_TRUE(quantisation_of(field(ElementType::f32)).keeps_all());
  definition.accuracy.reset();
  definition.information = 0.99;
  EXPECT_TRUE(quantisation_of(definition).keeps_all());
  definition = field(ElementType::f32);
  definition.bits = 23;
  EXPECT_TRUE(quantisation_of(definition).keeps_all());
}

TYPED_TEST(QuantiseTest, accuracy_auto_keeps_the_bits_that_carry_information) {
  codec::FieldDefinition definition = field(TestFixture::type);
  definition.shape = {1, 200, 100, 1};
  definition.information = 0.99;
  const Quantisation how = quantisation_of(definition);
  EXPECT_EQ(how.row, 100);
  EXPECT_FALSE(how.keeps_all());
  std::mt19937 random(2);
  std::vector<TypeParam> given;
  for (int i = 0; i < 20000; ++i)
    given.push_back(i % 50 == 7 ? TypeParam(-999.9)
                                : static_cast<TypeParam>(300 + 20 * std::sin(0.001 * i) +
                                                         std::ldexp(static_cast<double>(random()), -32)));
  std::vector<TypeParam> kept = given;
  const std::optional<codec::KeptBits> found = quantise(std::span(kept), how, -999.9);
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->is_whole);
  EXPECT_GE(found->information, 0.99);
  codec::FieldDefinition same = field(TestFixture::type);
  same.bits = found->bits;
  quantise(std::span(given), quantisation_of(same), -999.9);
  EXPECT_EQ(kept, given);
  EXPECT_EQ(kept[7], TypeParam(-999.9));
  std::vector<TypeParam> constant(20000, TypeParam(0.1));
  EXPECT_TRUE(quantise(std::span(constant), how, {})->is_whole);
  EXPECT_EQ(constant, std::vector<TypeParam>(20000, TypeParam(0.1)));
}

TYPED_TEST(QuantiseTest, no_value_that_is_there_becomes_the_missing_one) {
  codec::FieldDefinition definition = field(TestFixture::type);
  definition.accuracy = 0.5;
  std::vector<TypeParam> values{TypeParam(0.3), 0, TypeParam(-0.2), TypeParam(1.3)};
  quantise(values, quantisation_of(definition), 0.0);
  EXPECT_EQ(values, (std::vector<TypeParam>{TypeParam(0.3), 0, TypeParam(-0.2), 1}));
}

}  // namespace
}  // namespace tailrace::cf
