// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/operations/reduction.hpp"

#include "engine/operations/weighted_levels.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace tailrace::operations {
namespace {

using Over = codec::Reduction::Operation;

/// Returns a field whose level {4, 5, 6} loses the dimensions of which `lost` has a 1.
codec::FieldDefinition field_over(Over operation, ElementType type, std::vector<std::int8_t> lost) {
  codec::FieldDefinition field;
  field.name = "t";
  field.type = type;
  field.reduction.operation = operation;
  field.reduction.shape = {4, 5, 6};
  field.reduction.is_lost = std::move(lost);
  for (std::size_t d = 0; d < 3; ++d)
    if (field.reduction.is_lost[d] == 0) field.shape.push_back(field.reduction.shape[d]);
  return field;
}

template <typename T>
std::vector<T> reduced(const codec::FieldDefinition& field, const std::vector<T>& level,
                       Status* status = nullptr) {
  std::vector<T> record(static_cast<std::size_t>(field.elements()));
  Reducer reducer;
  const Status got = reducer.reduce(field, reinterpret_cast<const std::byte*>(level.data()),
                                    reinterpret_cast<std::byte*>(record.data()));
  if (status != nullptr) *status = got;
  return record;
}

/// Returns for each element of the record the numbers of the level's elements of which it is made.
std::vector<std::vector<std::size_t>> sources(const std::vector<std::int8_t>& lost) {
  const std::array<std::size_t, 3> shape{4, 5, 6};
  std::size_t count = 1;
  for (std::size_t d = 0; d < 3; ++d) count *= lost[d] == 0 ? shape[d] : 1;
  std::vector<std::vector<std::size_t>> all(count);
  for (std::size_t i = 0; i < 120; ++i) {
    const std::array<std::size_t, 3> index{i / 30, i / 6 % 5, i % 6};
    std::size_t to = 0;
    for (std::size_t d = 0; d < 3; ++d) to = lost[d] == 0 ? to * shape[d] + index[d] : to;
    all[to].push_back(i);
  }
  return all;
}

TEST(reduction, each_element_has_all_of_its_own_along_any_dimensions) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> values(-1, 1);
  std::vector<double> level(120);
  for (double& each : level) each = std::ldexp(values(random), static_cast<int>(random() % 60));
  for (int mask = 1; mask < 8; ++mask) {
    const std::vector<std::int8_t> lost{static_cast<std::int8_t>(mask & 1),
                                        static_cast<std::int8_t>(mask >> 1 & 1),
                                        static_cast<std::int8_t>(mask >> 2)};
    const auto all = sources(lost);
    const std::vector<double> sums = reduced(field_over(Over::sum, ElementType::f64, lost), level);
    const std::vector<double> means = reduced(field_over(Over::mean, ElementType::f64, lost), level);
    const std::vector<double> least = reduced(field_over(Over::minimum, ElementType::f64, lost), level);
    const std::vector<double> most = reduced(field_over(Over::maximum, ElementType::f64, lost), level);
    for (std::size_t to = 0; to < all.size(); ++to) {
      long double sum = 0;
      double lowest = level[all[to][0]], greatest = lowest;
      for (const std::size_t from : all[to]) {
        sum += level[from];
        lowest = std::min(lowest, level[from]);
        greatest = std::max(greatest, level[from]);
      }
      EXPECT_DOUBLE_EQ(sums[to], static_cast<double>(sum));
      EXPECT_EQ(means[to], sums[to] / static_cast<double>(all[to].size()));
      EXPECT_EQ(least[to], lowest);
      EXPECT_EQ(most[to], greatest);
    }
  }
}

TEST(reduction, what_rounding_takes_from_a_sum_is_added_again) {
  std::vector<double> level(120, 0.0);
  level[0] = 1;
  level[50] = 1e100;
  level[51] = 1;
  level[119] = -1e100;
  EXPECT_EQ(reduced(field_over(Over::sum, ElementType::f64, {1, 1, 1}), level)[0], 2);
  level[3] = std::numeric_limits<double>::infinity();
  EXPECT_EQ(reduced(field_over(Over::sum, ElementType::f64, {1, 1, 1}), level)[0], level[3]);
}

TEST(reduction, missing_elements_do_not_count) {
  std::vector<float> level(120, -7);
  for (std::size_t i = 0; i < 6; ++i) level[6 + i] = static_cast<float>(i);
  level[8] = -7;
  for (const Over operation : {Over::mean, Over::minimum, Over::maximum, Over::sum}) {
    codec::FieldDefinition field = field_over(operation, ElementType::f32, {0, 0, 1});
    field.missing = -7;
    const std::vector<float> record = reduced(field, level);
    const float wanted = operation == Over::mean      ? 13.0F / 5
                         : operation == Over::minimum ? 0
                         : operation == Over::maximum ? 5
                                                      : 13;
    for (std::size_t i = 0; i < record.size(); ++i) EXPECT_EQ(record[i], i == 1 ? wanted : -7) << i;
  }
  codec::FieldDefinition field = field_over(Over::mean, ElementType::f32, {0, 0, 1});
  for (float& each : level) each = each == -7 ? NAN : each;
  EXPECT_TRUE(std::isnan(reduced(field, level)[1])) << "without missing= NaN goes through";
  field.missing = NAN;
  EXPECT_EQ(reduced(field, level)[1], 13.0F / 5);
  EXPECT_TRUE(std::isnan(reduced(field, level)[0]));
  field = field_over(Over::maximum, ElementType::f32, {0, 0, 1});
  EXPECT_TRUE(std::isnan(reduced(field, level)[1]));
}

TEST(reduction, elements_count_with_their_weights_along_the_dimensions_that_these_have) {
  std::mt19937 random(11);
  std::uniform_real_distribution<double> values(-1, 1);
  std::vector<double> level(120);
  for (double& each : level) each = std::ldexp(values(random), static_cast<int>(random() % 40));
  level[7] = -7;
  const std::vector<std::vector<Index>> all_strides{{30, 6, 1}, {0, 0, 1}, {0, 1, 0}, {1, 0, 4}, {0, 1, 5}};
  for (const std::vector<Index>& strides : all_strides) {
    std::vector<double> weights(120);
    for (double& each : weights) each = std::max(0.0, values(random));
    for (const std::vector<std::int8_t>& lost : {std::vector<std::int8_t>{1, 1, 1}, {0, 1, 1}, {1, 0, 1}}) {
      const auto all = sources(lost);
      codec::FieldDefinition field = field_over(Over::mean, ElementType::f64, lost);
      field.missing = -7;
      field.reduction.weights = "w";
      field.reduction.weight_strides = strides;
      const auto made = [&](Over operation) {
        field.reduction.operation = operation;
        std::vector<double> record(static_cast<std::size_t>(field.elements()));
        Reducer reducer;
        EXPECT_TRUE(reducer
                        .reduce(field, reinterpret_cast<const std::byte*>(level.data()),
                                reinterpret_cast<std::byte*>(record.data()), weights)
                        .is_ok());
        return record;
      };
      const std::vector<double> means = made(Over::mean), sums = made(Over::sum);
      for (std::size_t to = 0; to < all.size(); ++to) {
        long double sum = 0, total = 0;
        for (const std::size_t from : all[to]) {
          if (level[from] == -7) continue;
          const auto at = static_cast<std::size_t>(static_cast<Index>(from / 30) * strides[0] +
                                                   static_cast<Index>(from / 6 % 5) * strides[1] +
                                                   static_cast<Index>(from % 6) * strides[2]);
          sum += static_cast<long double>(weights[at] * level[from]);
          total += weights[at];
        }
        if (total == 0) {  // all weights are 0
          EXPECT_EQ(means[to], -7);
          EXPECT_EQ(sums[to], -7);
          continue;
        }
        EXPECT_DOUBLE_EQ(sums[to], static_cast<double>(sum));
        EXPECT_DOUBLE_EQ(means[to], static_cast<double>(static_cast<long double>(sums[to]) / total));
      }
    }
  }
}

TEST(reduction, without_any_weight_a_mean_is_missing_or_nan) {
  const std::vector<double> none(120, 0.0);
  std::vector<float> level(120, NAN);
  codec::FieldDefinition field = field_over(Over::mean, ElementType::f32, {0, 0, 1});
  field.reduction.weights = "w";
  field.reduction.weight_strides = {30, 6, 1};
  const auto made = [&](std::span<const double> weights, Status* status = nullptr) {
    std::vector<float> record(20);
    const Status got = Reducer().reduce(field, reinterpret_cast<const std::byte*>(level.data()),
                                        reinterpret_cast<std::byte*>(record.data()), weights);
    if (status != nullptr) *status = got;
    return record;
  };
  EXPECT_TRUE(std::isnan(made(none)[3]));
  field.missing = -7;
  EXPECT_EQ(made(none)[3], -7);
  level[18] = 4;  // the others have the weight 0: NaN does not count there
  std::vector<double> one = none;
  one[18] = 0.5;
  EXPECT_EQ(made(one)[3], 4);
  Status status;
  made(std::span(none).first(119), &status);
  EXPECT_EQ(status.code(), Code::state) << "fewer weights than elements";
  field.type = ElementType::i32;
  field.missing.reset();
  made(none, &status);
  EXPECT_NE(status.text().find("or with missing= if all weights are 0"), std::string::npos) << status.text();
}

TEST(reduction, weights_of_a_field_are_its_values_without_missing_ones) {
  codec::FieldDefinition field;
  field.type = ElementType::i16;
  field.shape = {3};
  field.has_time = false;
  EXPECT_TRUE(weights_of(field).empty());
  const std::array<unsigned char, 6> big_endian{0x01, 0x00, 0xff, 0xf7, 0x00, 0x07};
  const auto bytes = std::as_bytes(std::span(big_endian));
  field.values = std::make_shared<const ByteVector>(bytes.begin(), bytes.end());
  EXPECT_EQ(weights_of(field), (std::vector<double>{256, -9, 7}));
  field.missing = -9;
  EXPECT_EQ(weights_of(field), (std::vector<double>{256, 0, 7}));
}

TEST(weighted_levels, levels_count_with_their_weights_or_those_of_their_elements) {
  constexpr Index count = 3, levels = 4;
  Accumulated what{Operation::mean, ElementType::f32, -7.0, levels, count};
  layout::MemoryMap map{4, 4 * count, {{0, {{count, 4}}}}};
  std::vector<float> array{1, 2, -7, 3, 4, -7, 5, 6, -7, 7, NAN, -7};
  const auto joined = [&](WeightedLevels& made, std::span<const double> weights) {
    EXPECT_TRUE(made.join(map, reinterpret_cast<const std::byte*>(array.data()), weights).is_ok());
    std::vector<float> out(count);
    std::memcpy(out.data(), made.values(), sizeof(float) * count);
    return out;
  };
  WeightedLevels means(what);
  EXPECT_EQ(joined(means, std::vector<double>{1, 2, 3, 0}), (std::vector<float>{22.0F / 6, 28.0F / 6, -7}));
  const std::vector<double> each{1, 0, 1, 0, 1, 1, 1, 1, 1, 0, 0, 1};
  EXPECT_EQ(joined(means, each), (std::vector<float>{3, 5, -7})) << "a second call begins anew";
  what.operation = Operation::accum;
  WeightedLevels sums(what);
  EXPECT_EQ(joined(sums, each), (std::vector<float>{6, 10, -7}));
  what.type = ElementType::i8;
  what.missing.reset();
  map = {1, count, {{0, {{count, 1}}}}};
  const std::vector<std::int8_t> small(12, 100);
  WeightedLevels narrow(what);
  const Status status = narrow.join(map, reinterpret_cast<const std::byte*>(small.data()), each);
  EXPECT_EQ(status.code(), Code::data);
  EXPECT_EQ(narrow.offending(), 0);
}

TEST(reduction, integers_are_rounded_and_must_fit) {
  std::vector<std::int8_t> level(120, 1);
  level[0] = 4;  // 6.5 and 3.5 go to the even number
  level[1] = 12;
  codec::FieldDefinition field = field_over(Over::mean, ElementType::i8, {0, 0, 1});
  EXPECT_EQ(reduced(field, level)[0], 3);
  level[1] = 13;
  EXPECT_EQ(reduced(field, level)[0], 4);
  field = field_over(Over::sum, ElementType::i8, {1, 1, 0});
  Status status;
  level[2] = 127;
  EXPECT_EQ(reduced(field, level, &status)[0], 23);
  EXPECT_EQ(status.code(), Code::data);
  EXPECT_NE(status.text().find("the sum over 20 elements is no "), std::string::npos) << status.text();
  EXPECT_NE(status.text().find("element 2 of the record"), std::string::npos) << status.text();
}

}  // namespace
}  // namespace tailrace::operations
