// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/operations/reduction.hpp"

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
