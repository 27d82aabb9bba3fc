// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/information/choose.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <random>

#include "slow.hpp"

namespace tailrace::information {
namespace {

constexpr Index row = 500, rows = 400;

/// A smooth field around 280 with noise of this size.
template <typename Real>
std::vector<Real> waves(double noise, double around = 280, double wave = 0.021) {
  std::mt19937 random(3);
  std::vector<Real> values;
  for (Index y = 0; y < rows; ++y)
    for (Index x = 0; x < row; ++x) {
      const double any = std::ldexp(static_cast<double>(random()), -32) - 0.5;
      values.push_back(static_cast<Real>(around +
                                         15 * std::sin(wave * static_cast<double>(x) + 0.3) *
                                             std::cos(0.017 * static_cast<double>(y)) +
                                         noise * any));
    }
  return values;
}

template <typename Real>
std::vector<Real> noise_alone() {
  std::mt19937 random(9);
  std::vector<Real> values;
  for (Index i = 0; i < row * rows; ++i)
    values.push_back(static_cast<Real>(1 + std::ldexp(static_cast<double>(random()), -32)));
  return values;
}

/// Returns the kept bits by the published rule alone: all values follow one another, and what bits carry
/// beyond chance counts, wherever it is.
int slow_kept(std::span<const float> values, double share) {
  const std::span<const std::uint32_t> words(reinterpret_cast<const std::uint32_t*>(values.data()),
                                             values.size());
  const double p = 0.5 + 2.5758293035489 / (2 * std::sqrt(static_cast<double>(words.size() - 1)));
  const double chance = 1 + p * std::log2(p) + (1 - p) * std::log2(1 - p);
  std::vector<double> all;
  double total = 0;
  for (int bit = 31; bit >= 0; --bit) {
    const double here = slow_information(words, bit);
    all.push_back(here > chance ? here : 0);
    total += all.back();
  }
  double sum = 0;
  int kept = 0;
  while (sum < share * total) sum += all[static_cast<std::size_t>(kept++)];
  return std::max(kept - 9, 0);
}

codec::KeptBits kept(const std::vector<float>& values, std::optional<float> missing = {},
                     double share = 0.99) {
  return kept_of(std::span<const float>(values), missing, row, share);
}

// The tests of BitInformation.jl have these cases.
TEST(information, mutual_information_of_known_probabilities) {
  EXPECT_EQ(mutual_information(4, 2, 2, 1), 0);
  EXPECT_EQ(mutual_information(2, 1, 1, 1), 1);
  EXPECT_EQ(mutual_information(2, 1, 1, 0), 1);
  EXPECT_NEAR(mutual_information(4, 3, 3, 3), -0.25 * std::log2(0.25) - 0.75 * std::log2(0.75), 1e-15);
  EXPECT_NEAR(mutual_information(1000, 500, 500, 375), 0.75 * std::log2(1.5) + 0.25 * std::log2(0.5), 1e-15);
  EXPECT_EQ(mutual_information(100, 0, 0, 0), 0);
  EXPECT_EQ(mutual_information(100, 100, 100, 100), 0);
}

TEST(information, what_chance_gives_is_that_of_the_binomial_distribution) {
  for (const std::int64_t count : {100, 10000, 1000000}) {
    const double p = 0.5 + 2.5758293035489004 / (2 * std::sqrt(static_cast<double>(count)));
    EXPECT_NEAR(chance_of(count), 1 + p * std::log2(p) + (1 - p) * std::log2(1 - p), 1e-15);
  }
  EXPECT_EQ(chance_of(1), 1);
}

TEST(information, of_each_bit_is_that_of_a_plain_computation) {
  const std::vector<float> values = waves<float>(0.01);
  const std::span<const std::uint32_t> words(reinterpret_cast<const std::uint32_t*>(values.data()),
                                             values.size());
  const Pairs pairs = count_pairs(words.data(), std::ssize(words), {.row = row * rows});
  const std::vector<double> all = information_of(pairs, 32);
  for (int bit = 0; bit < 32; ++bit) {
    const double expected = slow_information(words, bit);
    EXPECT_NEAR(all[static_cast<std::size_t>(31 - bit)], expected > chance_of(pairs.count) ? expected : 0,
                1e-10)
        << bit;
  }
}

// The table in the documentation of BitInformation.jl ("Real bitwise information"): sorted random numbers,
// multiples of 2^-23 as Julia drew them. The page says a million, and its figures are those of 100,000: other
// numbers of values move the middle. Behind the 17th bit of the mantissa information rises again, since small
// numbers end in zeros.
TEST(information, of_sorted_numbers_is_that_of_the_published_table) {
  std::mt19937 random(1);
  std::vector<float> values;
  for (int i = 0; i < 100000; ++i) values.push_back(std::ldexp(static_cast<float>(random() >> 9), -23));
  std::ranges::sort(values);
  const auto* words = reinterpret_cast<const std::uint32_t*>(values.data());
  const std::vector<double> all =
      information_of(count_pairs(words, std::ssize(values), {.row = std::ssize(values)}), 32);
  const double first[] = {0,
                          0,
                          0,
                          0,
                          0.00046647589813905157,
                          0.06406479945998214,
                          0.5158447841492068,
                          0.9704486460488391,
                          0.9150881582169795,
                          0.996120575536068,
                          0.9931335810218149};
  const double last[] = {0.15992667263039423,
                         0.0460430997651915,
                         0.006067325343418917,
                         0.0008767479258913191,
                         0.00033132201520535975,
                         0.0007048623462190817,
                         0.0025481588434255187,
                         0.0087191715755926,
                         0.028826838913308506,
                         0.07469492765760763,
                         0};
  for (std::size_t i = 0; i < std::size(first); ++i)
    EXPECT_NEAR(all[i], first[i], 0.005 + 0.02 * first[i]) << i;
  for (std::size_t i = 0; i < std::size(last); ++i)
    EXPECT_NEAR(all[21 + i], last[i], 0.0004 + 0.15 * last[i]) << 21 + i;
  const codec::KeptBits found = kept_of(std::span<const float>(values), {}, std::ssize(values), 0.9999);
  EXPECT_LE(found.bits, 17);
  EXPECT_GE(found.bits, 14);
  EXPECT_GE(found.information, 0.9999);
}

TEST(information, kept_bits_are_those_of_the_published_rule) {
  for (const double noise : {0.01, 0.1, 1.0, 10.0}) {
    const std::vector<float> values = waves<float>(noise);
    for (const double share : {0.9, 0.99}) {
      const codec::KeptBits found = kept_of(std::span<const float>(values), {}, row * rows, share);
      EXPECT_FALSE(found.is_whole);
      EXPECT_EQ(found.bits, std::max(slow_kept(values, share), 1)) << noise << " " << share;
      EXPECT_GE(found.information, share);
    }
  }
}

TEST(information, noise_is_not_kept) {
  int before = 23;
  for (const double noise : {0.03, 0.1, 1.0, 10.0}) {
    const int bits = kept(waves<float>(noise, 280, 0.0003)).bits;
    EXPECT_LT(bits, before) << noise;
    before = bits;
    // Steps between numbers from 256 to 511 are of the noise's size.
    const double step = std::ldexp(1.0, 8 - bits);
    EXPECT_GT(step, noise / 10) << noise;
    EXPECT_LT(step, noise * 10) << noise;
  }
}

TEST(information, doubles_keep_as_many_bits_as_floats) {
  for (const double noise : {0.01, 1.0}) {
    const std::vector<double> values = waves<double>(noise);
    EXPECT_EQ(kept_of(std::span<const double>(values), {}, row, 0.99).bits, kept(waves<float>(noise)).bits);
  }
}

TEST(information, nothing_is_rounded_where_nothing_tells_which_bits_matter) {
  const std::vector<float> values = waves<float>(0.01);
  EXPECT_TRUE(kept({values.begin(), values.begin() + 900}).is_whole) << "few pairs";
  EXPECT_TRUE(kept(std::vector<float>(100000, 7.25F)).is_whole) << "a constant";
  EXPECT_TRUE(kept(std::vector<float>(100000, 0)).is_whole) << "zeros";
  EXPECT_TRUE(kept({}).is_whole) << "no values";
  EXPECT_TRUE(kept(noise_alone<float>()).is_whole) << "noise";
  std::vector<float> classes;
  for (std::size_t i = 0; i < values.size(); ++i) classes.push_back(static_cast<float>(1 + i * i / 7 % 200));
  EXPECT_TRUE(kept(classes).is_whole) << "classes";
  EXPECT_TRUE(kept_of(std::span<const float>(values), {}, 1, 0.99).is_whole) << "rows of one value";
}

TEST(information, missing_values_and_those_that_are_not_finite_have_no_part_in_it) {
  const std::vector<float> values = waves<float>(0.05);
  const codec::KeptBits all = kept(values);
  for (const float out : {-999.9F, std::nanf(""), INFINITY, -INFINITY, 0.0F, -0.0F}) {
    std::vector<float> with = values;
    for (std::size_t i = 0; i < with.size(); ++i)
      if (i / 37 % 5 == 0 || i % 97 == 3) with[i] = out;
    const codec::KeptBits found = kept(with, -999.9F);
    EXPECT_EQ(found.bits, all.bits) << out;
    EXPECT_NEAR(found.information, all.information, 0.005) << out;
    EXPECT_FALSE(found.is_whole);
  }
}

/// Values as a decoder gives them that were packed in codes with this step before.
std::vector<float> packed_before(std::vector<float> values, double reference, double step) {
  for (float& value : values)
    value =
        static_cast<float>(reference + step * std::round((static_cast<double>(value) - reference) / step));
  return values;
}

TEST(information, earlier_rounding_to_multiples_of_a_step_adds_no_bits) {
  for (const double around : {280.0, 250.0}) {  // values of one binade, and of two
    for (const double step : {0.002, 0.01, 0.1, 1.0 / 128, 1.0 / 16}) {
      const std::vector<float> values = waves<float>(0.2, around);
      const std::vector<float> before = packed_before(values, around - 20.123, step);
      const int bits = kept(values).bits, now = kept(before).bits;
      EXPECT_LE(now, bits + 1) << step << " around " << around << ", by the published rule "
                               << slow_kept(before, 0.99);
      EXPECT_GE(now, bits - 1) << step << " around " << around;
    }
  }
}

TEST(information, equal_neighbours_of_a_coarse_step_keep_no_bits_below_it) {
  const std::vector<float> before = packed_before(waves<float>(0.01), 250.37, 0.05);
  const codec::KeptBits found = kept(before);
  EXPECT_EQ(found.bits, kept(waves<float>(0.01)).bits);
  EXPECT_GE(slow_kept(before, 0.99), found.bits + 5) << "the published rule keeps artificial information";
}

TEST(information, bits_below_the_step_of_values_do_not_count) {
  for (const double step : {0.05, 0.1}) {  // as large as the noise, or larger: most neighbours are equal
    const std::vector<float> values = waves<float>(0.05, 280, 0.003);
    const std::vector<float> before = packed_before(values, 250.37, step);
    EXPECT_GE(kept(before).bits, kept(values).bits) << step;
    EXPECT_LE(kept(before).bits, 13) << step << ": as many tell steps of it apart among numbers from 256 on";
    EXPECT_GE(slow_kept(before, 0.99), 22) << step << ", by the published rule";
  }
}

TEST(information, codes_keep_their_leading_bits) {
  std::vector<std::uint32_t> codes;
  for (const double value : waves<double>(0.1))
    codes.push_back(static_cast<std::uint32_t>((value - 264) / 32 * (1 << 24)));
  const codec::KeptBits found = kept_of(codes, 24, 0, row, 0.99);
  EXPECT_FALSE(found.is_whole);
  // The noise has 24 - log2(32 / 0.1) bits.
  EXPECT_GE(found.bits, 6);
  EXPECT_LE(found.bits, 10);
  std::vector<std::uint32_t> with = codes;
  for (std::size_t i = 0; i < with.size(); i += 50) with[i] = 0;
  EXPECT_EQ(kept_of(with, 24, 0, row, 0.99).bits, found.bits) << "zeros are left out";
}

}  // namespace
}  // namespace tailrace::information
