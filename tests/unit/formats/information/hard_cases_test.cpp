// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Records in which few values, or values that return often, would mislead the rules; records that tell
// nothing; and where each rule begins to count.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

#include "formats/information/choose.hpp"
#include "slow.hpp"

namespace tailrace::information {
namespace {

constexpr Index hard_row = 500, hard_rows = 400;
using Record = std::vector<float>;

/// Calls `value_at` for each place. Its last argument is noise from -0.5 to 0.5.
template <typename ValueAt>
Record record_of(ValueAt value_at, Index rows = hard_rows) {
  std::mt19937 random(4);
  Record values;
  for (Index y = 0; y < rows; ++y)
    for (Index x = 0; x < hard_row; ++x)
      values.push_back(static_cast<float>(value_at(static_cast<double>(x), static_cast<double>(y),
                                                   std::ldexp(static_cast<double>(random()), -32) - 0.5)));
  return values;
}

double smooth_at(double x, double y) { return std::sin(0.021 * x + 0.3) * std::cos(0.017 * y); }

Record signed_waves() {
  return record_of([](double x, double y, double any) { return 0.01 + 5 * smooth_at(x, y) + 0.05 * any; });
}

codec::KeptBits floats_kept(const Record& values, double share = 0.99) {
  return kept_of(std::span<const float>(values), {}, hard_row, share);
}

struct Coded {
  codec::KeptBits kept;
  double step = 0;
};

/// Returns what the codes of 24 bits between the smallest and the largest value keep.
Coded codes_kept(const Record& values, double share = 0.99) {
  const auto [least, most] = std::ranges::minmax(values);
  const double step = (static_cast<double>(most) - static_cast<double>(least)) / 16777215;
  const auto code_of = [&](double value) {
    return static_cast<std::uint32_t>((value - static_cast<double>(least)) / step + 0.5);
  };
  std::vector<std::uint32_t> codes;
  for (const float value : values) codes.push_back(code_of(static_cast<double>(value)));
  const std::uint32_t zero = least < 0 && most > 0 ? code_of(0) : 0;
  const codec::KeptBits kept = kept_of(codes, 24, zero, hard_row, share);
  return {kept, std::ldexp(step, 24 - kept.bits)};
}

/// Returns the bits that the published rule keeps: all that is above chance counts, whatever comes between.
int published(const Record& values, double share) {
  const auto* words = reinterpret_cast<const std::uint32_t*>(values.data());
  const std::vector<double> all =
      information_of(count_pairs(words, std::ssize(values), {.row = hard_row}), 32);
  double total = 0, sum = 0;
  for (const double each : all) total += each;
  int bits = 0;
  while (sum < share * total) sum += all[static_cast<std::size_t>(bits++)];
  return bits - 9;
}

/// Values as a decoder gives them that were packed with this step before.
Record with_step(Record values, double reference, double step) {
  for (float& value : values)
    value =
        static_cast<float>(reference + step * std::round((static_cast<double>(value) - reference) / step));
  return values;
}

TEST(hard_information, few_extreme_cells_leave_the_other_values_as_they_were) {
  const Record t =
      record_of([](double x, double y, double any) { return 295 + 12 * smooth_at(x, y) + 0.05 * any; });
  const Record u = signed_waves();
  for (const int cells : {1, 2, 3}) {
    Record hot = t, strong = u;
    const float extremes[] = {400, 396, 350}, winds[] = {500, 490, 300};
    for (int i = 0; i < cells; ++i) {
      const std::size_t at = i < 2 ? 200 * 500 + 100 + static_cast<std::size_t>(i) : 5007;
      hot[at] = extremes[i];
      strong[at] = winds[i];
    }
    EXPECT_EQ(floats_kept(hot).bits, floats_kept(t).bits) << cells;
    EXPECT_EQ(floats_kept(strong).bits, floats_kept(u).bits) << cells;
    EXPECT_FALSE(codes_kept(hot).kept.is_whole) << cells;
    EXPECT_LE(codes_kept(hot).step, 2 * codes_kept(t).step) << cells;
    EXPECT_GE(codes_kept(hot).step, codes_kept(t).step / 8) << cells;
    EXPECT_FALSE(codes_kept(strong).kept.is_whole) << cells;
    EXPECT_LE(codes_kept(strong).step, 2 * codes_kept(u).step) << cells;
  }
}

TEST(hard_information, narrow_clusters_and_point_sources_keep_what_the_published_rule_keeps) {
  const Record clusters = record_of([](double x, double y, double any) {
    const double within = 0.03 + 0.03 * std::sin(0.03 * x + 0.02 * y) + 0.0003 * any;
    return (smooth_at(x, y) > 0 ? 1.5 : 1.0) + within;
  });
  Record between = clusters;
  between[100 * 500 + 77] = 1.3F;
  for (const Record& values : {clusters, between}) {
    EXPECT_EQ(floats_kept(values).bits, published(values, 0.99));
    EXPECT_GE(floats_kept(values).bits, 7);
    EXPECT_LT(codes_kept(values).step, 0.01);
  }
  const Record source = record_of([](double x, double y, double any) {
    const double away = (x - 300) * (x - 300) + (y - 200) * (y - 200);
    return std::exp(2 * smooth_at(x, y)) + 0.001 * any + 3e4 * std::exp(-away / 2);
  });
  EXPECT_LT(codes_kept(source).step, 0.3);
}

TEST(hard_information, one_cell_between_two_clusters_does_not_end_the_information) {
  double follows = 0;  // most information is in which of the clusters a value is
  Record values = record_of([&](double x, double, double any) {
    follows = 0.7 * follows + any;
    return (static_cast<int>(x) / 100 % 2 == 0 ? 1.5 : 1.0) + 0.04 + 0.02 * follows;
  });
  const int bits = floats_kept(values).bits;
  EXPECT_GE(bits, 5);
  values[100 * 500 + 77] = 1.3F;
  EXPECT_EQ(floats_kept(values).bits, bits);
  EXPECT_EQ(bits, published(values, 0.99));
  EXPECT_GE(codes_kept(values).kept.bits, 5);
}

TEST(hard_information, values_that_tell_nothing_of_their_neighbours_stay_as_they_are) {
  std::mt19937 random(11);
  std::normal_distribution<float> normal;
  for (const std::size_t count : {1100U, 20000U}) {
    for (int seed = 0; seed < 200; ++seed) {
      Record values(count), follows(count);
      for (float& value : values) value = normal(random);
      for (std::size_t i = 1; i < count; ++i) follows[i] = values[i] + 0.02F * values[i - 1];
      ASSERT_TRUE(kept_of(std::span<const float>(values), {}, std::ssize(values), 0.99).is_whole) << seed;
      ASSERT_TRUE(kept_of(std::span<const float>(follows), {}, std::ssize(values), 0.99).is_whole) << seed;
      std::vector<std::uint32_t> codes;
      for (const float value : values)
        codes.push_back(static_cast<std::uint32_t>((std::clamp(value, -7.9F, 7.9F) + 8) * 1048576));
      ASSERT_TRUE(kept_of(codes, 24, 0, std::ssize(values), 0.99).is_whole) << seed;
    }
  }
}

TEST(hard_information, smooth_fields_with_points_numbered_in_any_order_stay_as_they_are) {
  Record values =
      record_of([](double x, double y, double any) { return 10 * smooth_at(x, y) + 0.1 * any; }, 50);
  std::mt19937 random(12);
  for (int seed = 0; seed < 60; ++seed) {
    std::shuffle(values.begin(), values.end(), random);
    ASSERT_TRUE(floats_kept(values).is_whole) << seed;
    ASSERT_TRUE(codes_kept(values).kept.is_whole) << seed;
  }
}

TEST(hard_information, zeros_among_values_of_both_signs_have_no_part_in_it) {
  const Record values = signed_waves();
  for (const double share : {-0.8, -0.3, 0.1}) {
    Record with = values;
    for (std::size_t i = 0; i < with.size(); ++i) {
      const auto x = static_cast<double>(i % 500), y = static_cast<double>(i / 500);
      if (std::sin(0.05 * x + 0.04 * y) < share || i % 23 == 0) with[i] = i % 2 == 0 ? 0.0F : -0.0F;
    }
    EXPECT_LE(std::abs(floats_kept(with).bits - floats_kept(values).bits), 1) << share;
    EXPECT_EQ(codes_kept(with).kept.bits, codes_kept(values).kept.bits) << share;
  }
}

TEST(hard_information, values_that_return_often_have_no_part_in_it) {
  const auto sea = [](double x, double y, double any) { return 288 + 8 * smooth_at(x, y) + 0.02 * any; };
  const Record whole = record_of(sea);
  const Record land = record_of([&](double x, double y, double any) {
    const double place = std::sin(0.05 * x + 0.04 * y);
    return place > 0.6 ? 273.15 : place < -0.9 ? 271.35 : sea(x, y, any);
  });
  EXPECT_EQ(floats_kept(land).bits, floats_kept(whole).bits);
  EXPECT_LE(codes_kept(land).kept.bits, codes_kept(whole).kept.bits + 1);
  EXPECT_GE(published(land, 0.99), 20) << "the published rule keeps artificial information";
  const Record clipped = record_of([](double x, double y, double any) {
    return std::clamp(0.5 + smooth_at(x, y) + 0.02 * any, 0.0, 1.0);
  });
  EXPECT_LE(floats_kept(clipped).bits, 9);
  EXPECT_LE(codes_kept(clipped).kept.bits, 9);
}

TEST(hard_information, steep_smooth_fields_keep_what_the_published_rule_keeps) {
  const auto steep = [](double x, double y, double) { return 300 + 0.25 * x + 0.05 * smooth_at(2 * x, y); };
  const Record mesh = record_of(steep);
  EXPECT_EQ(floats_kept(mesh).bits, published(mesh, 0.99));
  EXPECT_GE(floats_kept(mesh).bits, 12);
  EXPECT_LT(codes_kept(mesh).step, 0.05);
  const Record margins =
      record_of([&](double x, double y, double any) { return x < 20 ? 5 : steep(x, y, any); });
  EXPECT_GE(floats_kept(margins).bits, 12);
  EXPECT_LT(codes_kept(margins).step, 0.05);
}

TEST(hard_information, the_smallest_difference_is_no_step_if_others_are_no_multiples_of_it) {
  double at = 100;
  const Record ramp = record_of([&](double x, double, double any) {
    if (static_cast<int>(x) % 2 == 0) at += 0.25 + 0.1 * (any + 0.5);
    return at > 200 ? at -= 100 : at;
  });
  EXPECT_EQ(floats_kept(ramp, 0.9999).bits, published(ramp, 0.9999));
  EXPECT_GE(floats_kept(ramp, 0.9999).bits, 20);
  EXPECT_GE(codes_kept(ramp, 0.9999).kept.bits, 20);
}

TEST(hard_information, a_share_of_1_keeps_all_that_is_above_chance) {
  const Record waves =
      record_of([](double x, double y, double any) { return 280 + 15 * smooth_at(x, y) + 0.2 * any; });
  for (const Record& values : {waves, with_step(waves, 250.37, 0.05), signed_waves()}) {
    const codec::KeptBits found = floats_kept(values, 1);
    EXPECT_EQ(found.bits, published(values, 1));
    EXPECT_EQ(found.information, 1);
    EXPECT_EQ(found.left_out, 0);
  }
}

TEST(hard_information, what_was_taken_for_earlier_rounding_is_told) {
  const Record waves =
      record_of([](double x, double y, double any) { return 280 + 15 * smooth_at(x, y) + 0.01 * any; });
  EXPECT_LT(floats_kept(waves).left_out, 0.01);
  const codec::KeptBits found = floats_kept(with_step(waves, 250.37, 0.05));
  EXPECT_GT(found.left_out, 0.01);
  EXPECT_LT(found.left_out, 1);
  EXPECT_GE(found.information, 0.99);
}

TEST(hard_information, rules_of_number_count_from_where_the_documentation_says) {
  const auto waves = [](std::size_t count) {
    Record values;
    for (std::size_t i = 0; i < count; ++i)
      values.push_back(static_cast<float>(300 + 20 * std::sin(0.01 * static_cast<double>(i))));
    return values;
  };
  EXPECT_TRUE(kept_of(std::span<const float>(waves(1000)), {}, 1000, 0.99).is_whole) << "999 pairs";
  EXPECT_FALSE(kept_of(std::span<const float>(waves(1001)), {}, 1001, 0.99).is_whole) << "1000 pairs";
  for (const std::size_t classes : {256U, 257U}) {
    Record values;
    std::vector<std::uint32_t> codes;
    for (std::size_t i = 0; i < 50000; ++i) {
      const auto it = static_cast<std::uint32_t>(i / 7 % classes);
      values.push_back(static_cast<float>(1 + it));
      codes.push_back(1 + it * 65000);
    }
    EXPECT_EQ(kept_of(std::span<const float>(values), {}, 50000, 0.99).is_whole, classes == 256) << classes;
    EXPECT_EQ(kept_of(codes, 24, 0, 50000, 0.99).is_whole, classes == 256) << classes;
  }
}

TEST(hard_information, one_bit_of_the_mantissa_stays_where_the_sign_has_all_information) {
  const Record values = record_of([](double x, double, double any) {
    return (static_cast<int>(x) / 40 % 2 == 0 ? 1 : -1) * (1.5 + any);
  });
  const codec::KeptBits found = floats_kept(values);
  EXPECT_FALSE(found.is_whole);
  EXPECT_EQ(found.bits, 1);
}

TEST(hard_information, a_step_of_less_than_8_units_is_the_resolution_of_the_type) {
  // Half of all neighbours are equal, so that all bits seem to carry information.
  const auto bits_of = [](double units) {
    std::mt19937 random(6);
    Record values;
    for (Index i = 0; i < hard_row * hard_rows; ++i) {
      const double multiple = std::floor(std::ldexp(static_cast<double>(random()), -32) * 30000);
      values.push_back(i % 2 == 1 ? values.back()
                                  : static_cast<float>(1 + multiple * units * std::ldexp(1, -23)));
    }
    return floats_kept(values, 0.9999).bits;
  };
  EXPECT_GT(bits_of(4.3), 21);
  EXPECT_LE(bits_of(17.3), 19);
}

}  // namespace
}  // namespace tailrace::information
