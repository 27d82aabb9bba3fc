// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/operations/accumulator.hpp"

#include <gtest/gtest.h>

#include <cfenv>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace tailrace::operations {
namespace {

constexpr Index rows = 9, columns = 13, halo = 2, levels = 3;

template <typename T>
constexpr ElementType type_of() {
  if constexpr (std::is_same_v<T, std::int8_t>) return ElementType::i8;
  if constexpr (std::is_same_v<T, std::int16_t>) return ElementType::i16;
  if constexpr (std::is_same_v<T, std::int32_t>) return ElementType::i32;
  if constexpr (std::is_same_v<T, std::int64_t>) return ElementType::i64;
  if constexpr (std::is_same_v<T, std::uint8_t>) return ElementType::byte;
  if constexpr (std::is_same_v<T, std::uint16_t>) return ElementType::u16;
  if constexpr (std::is_same_v<T, std::uint64_t>) return ElementType::u64;
  if constexpr (std::is_same_v<T, float>) return ElementType::f32;
  return ElementType::f64;
}

/// How the array of one rank lies in memory.
struct Shape {
  const char* name;
  layout::Allocation allocation;
};

std::vector<Shape> shapes() {
  return {{"contiguous", {{}, 0, levels, 0, {}}},
          {"with a halo", {{halo, halo}, 0, levels, 0, {}}},
          {"levels fastest", {{}, 2, levels, 0, {}}},
          {"nproma", {{}, 0, levels, 8, {}}}};
}

/// Returns the offset of each element, level after level, in packed order.
void visit(const std::vector<layout::Loop>& loops, std::size_t depth, Bytes at, std::vector<Bytes>& places) {
  if (depth == loops.size()) return places.push_back(at);
  for (Index i = 0; i < loops[depth].count; ++i)
    visit(loops, depth + 1, at + i * loops[depth].stride, places);
}

std::vector<Bytes> places_of(const layout::MemoryMap& map) {
  std::vector<Bytes> places;
  for (Index level = 0; level < levels; ++level) {
    for (const layout::Nest& nest : map.nests)
      visit(nest.loops, 0, nest.offset + level * map.level_stride, places);
  }
  return places;
}

/// The plain loop over the values of one element in their order.
template <typename T>
T expected(Operation operation, const std::vector<T>& values, std::optional<T> missing) {
  double sum = 0;
  std::int64_t count = 0;
  T least{}, most{};
  for (const T value : values) {
    if (missing && (std::isnan(static_cast<double>(*missing)) ? std::isnan(static_cast<double>(value))
                                                              : value == *missing))
      continue;
    sum = count == 0 ? static_cast<double>(value) : sum + static_cast<double>(value);
    least = count == 0 ? value : std::min(least, value);
    most = count == 0 ? value : std::max(most, value);
    ++count;
  }
  if (operation == Operation::instant) return values.back();
  if (count == 0) return *missing;
  if (operation == Operation::minimum) return least;
  if (operation == Operation::maximum) return most;
  if (operation == Operation::mean) sum /= static_cast<double>(count);
  return std::is_floating_point_v<T> ? static_cast<T>(sum) : static_cast<T>(std::nearbyint(sum));
}

template <typename T>
void expect_plain_loop(Operation operation, const Shape& shape, std::optional<T> missing) {
  const layout::Layout layout = *layout::Layout::block({rows, columns}, 1);
  const layout::MemoryMap map = *layout::memory_map(layout, 0, type_of<T>(), shape.allocation);
  const std::vector<Bytes> places = places_of(map);
  ASSERT_EQ(places.size(), static_cast<std::size_t>(rows * columns * levels));
  std::optional<double> given;
  if (missing) given = static_cast<double>(*missing);
  Accumulator accumulator({operation, type_of<T>(), given, levels, rows * columns});
  std::mt19937 dice(7);
  for (int interval = 0; interval < 2; ++interval) {  // the second one finds nothing of the first
    accumulator.begin();
    std::vector<std::vector<T>> values(places.size());
    for (int put = 0; put < 5; ++put) {
      std::vector<std::byte> array(1 << 15, std::byte{0x55});
      for (std::size_t i = 0; i < places.size(); ++i) {
        const auto number = static_cast<int>(dice() % 40) - 20;
        T value = std::is_floating_point_v<T> ? static_cast<T>(number / 3.0) : static_cast<T>(number);
        if (missing && (dice() % 3 == 0 || i % 7 == 0)) value = *missing;
        std::memcpy(array.data() + places[i], &value, sizeof value);
        values[i].push_back(value);
      }
      accumulator.add(map, array.data());
    }
    EXPECT_EQ(accumulator.puts(), 5);
    const Status finished = accumulator.finish();
    ASSERT_TRUE(finished.is_ok()) << finished.text();
    for (std::size_t i = 0; i < places.size(); ++i) {
      T got;
      std::memcpy(&got, accumulator.values() + i * sizeof got, sizeof got);
      const T right = expected(operation, values[i], missing);
      ASSERT_EQ(std::memcmp(&got, &right, sizeof got), 0)
          << name_of(operation) << " of " << name_of(type_of<T>()) << ", " << shape.name << ", element " << i
          << ": " << +got << " and not " << +right;
    }
  }
}

template <typename T>
void expect_plain_loops() {
  for (const Shape& shape : shapes()) {
    for (const Operation operation :
         {Operation::instant, Operation::mean, Operation::accum, Operation::minimum, Operation::maximum}) {
      expect_plain_loop<T>(operation, shape, {});
      expect_plain_loop<T>(operation, shape, static_cast<T>(-17));
      if constexpr (std::is_floating_point_v<T>)
        expect_plain_loop<T>(operation, shape, std::numeric_limits<T>::quiet_NaN());
    }
  }
}

TEST(accumulator, has_the_values_of_a_plain_loop_over_float32) { expect_plain_loops<float>(); }
TEST(accumulator, has_the_values_of_a_plain_loop_over_float64) { expect_plain_loops<double>(); }
TEST(accumulator, has_the_values_of_a_plain_loop_over_int8) { expect_plain_loops<std::int8_t>(); }
TEST(accumulator, has_the_values_of_a_plain_loop_over_int16) { expect_plain_loops<std::int16_t>(); }
TEST(accumulator, has_the_values_of_a_plain_loop_over_int32) { expect_plain_loops<std::int32_t>(); }
TEST(accumulator, has_the_values_of_a_plain_loop_over_int64) { expect_plain_loops<std::int64_t>(); }

/// Puts one element of each of the values in turn.
template <typename T>
Accumulator accumulated(Operation operation, const std::vector<T>& values) {
  Accumulator accumulator({operation, type_of<T>(), {}, 1, 1});
  for (const T& value : values)
    accumulator.add(*accumulator.map(), reinterpret_cast<const std::byte*>(&value));
  return accumulator;
}

template <typename T>
T result_of(Accumulator accumulator) {
  EXPECT_TRUE(accumulator.finish().is_ok());
  T value;
  std::memcpy(&value, accumulator.values(), sizeof value);
  return value;
}

TEST(accumulator, keeps_a_nan_wherever_it_comes) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Operation operation :
       {Operation::mean, Operation::accum, Operation::minimum, Operation::maximum}) {
    for (const std::vector<double>& values : {std::vector<double>{nan, 1, 2}, {1, nan, 2}, {1, 2, nan}})
      EXPECT_TRUE(std::isnan(result_of<double>(accumulated(operation, values)))) << name_of(operation);
  }
}

TEST(accumulator, an_integer_that_does_not_fit_is_an_error_that_names_its_place) {
  const std::vector<std::int8_t> values{100, 100};
  Accumulator sum = accumulated(Operation::accum, values);
  const Status status = sum.finish();
  EXPECT_EQ(status.code(), Code::data);
  EXPECT_NE(status.text().find("the accum of 2 puts is no int8"), std::string::npos) << status.text();
  EXPECT_EQ(sum.offending(), 0);
  EXPECT_EQ(result_of<std::int8_t>(accumulated(Operation::mean, values)), 100);
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(accumulated<std::int64_t>(Operation::accum, {most, 1}).finish().code(), Code::data);
  EXPECT_EQ(result_of<std::int64_t>(accumulated<std::int64_t>(Operation::maximum, {most, 1})), most);
}

TEST(accumulator, does_not_depend_on_the_rounding_that_the_program_has_set) {
  const std::vector<double> values{1, 1e-17, 1e-17};
  const auto before = result_of<double>(accumulated(Operation::accum, values));
  std::fesetround(FE_UPWARD);
  const auto after = result_of<double>(accumulated(Operation::accum, values));
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(before, 1.0);
  EXPECT_EQ(after, 1.0);
}

TEST(accumulator, takes_complex_numbers_as_they_are) {
  EXPECT_TRUE(check_operation(Operation::instant, ElementType::c64, {}).is_ok());
  EXPECT_EQ(check_operation(Operation::mean, ElementType::c64, {}).code(), Code::settings);
  EXPECT_EQ(check_operation(Operation::maximum, ElementType::c128, {}).code(), Code::settings);
}

TEST(accumulator, unsigned_numbers_are_not_taken_for_signed_ones) {
  constexpr std::uint64_t half = std::uint64_t{1} << 63;
  EXPECT_EQ(result_of<std::uint64_t>(
                accumulated(Operation::maximum, std::vector<std::uint64_t>{1, half + 1, half})),
            half + 1);
  EXPECT_EQ(
      result_of<std::uint64_t>(accumulated(Operation::minimum, std::vector<std::uint64_t>{half + 1, 3})), 3U);
  EXPECT_EQ(
      result_of<std::uint16_t>(accumulated(Operation::mean, std::vector<std::uint16_t>{65535, 65534, 65533})),
      65534);
  EXPECT_EQ(result_of<std::uint8_t>(accumulated(Operation::accum, std::vector<std::uint8_t>{200, 55})), 255);
  EXPECT_EQ(accumulated(Operation::accum, std::vector<std::uint8_t>{200, 56}).finish().code(), Code::data);
  EXPECT_EQ(accumulated(Operation::accum, std::vector<std::uint64_t>{half, half}).finish().code(),
            Code::data);
  EXPECT_EQ(check_operation(Operation::mean, ElementType::u16, -1.0).code(), Code::settings);
  EXPECT_TRUE(check_operation(Operation::mean, ElementType::u16, 65535.0).is_ok());
}

TEST(accumulator, a_missing_value_is_one_that_an_element_can_have) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(check_operation(Operation::mean, ElementType::f32, 1e20).is_ok());
  EXPECT_TRUE(check_operation(Operation::mean, ElementType::f32, nan).is_ok());
  EXPECT_TRUE(check_operation(Operation::mean, ElementType::i16, -32768).is_ok());
  EXPECT_TRUE(check_operation(Operation::instant, ElementType::i16, 1e20).is_ok());
  for (const double wrong : {1e20, 32768.0, 0.5, nan})
    EXPECT_EQ(check_operation(Operation::mean, ElementType::i16, wrong).code(), Code::settings) << wrong;
  EXPECT_EQ(check_operation(Operation::mean, ElementType::f32, 1e300).code(), Code::settings);
}

TEST(accumulator, counts_all_of_its_memory) {
  EXPECT_EQ(Accumulator::bytes_of({Operation::mean, ElementType::f32, {}, 2, 10}), 160);
  EXPECT_EQ(Accumulator::bytes_of({Operation::mean, ElementType::f32, 1.0, 2, 10}), 240);
  EXPECT_EQ(Accumulator::bytes_of({Operation::minimum, ElementType::f32, {}, 2, 10}), 80);
  EXPECT_EQ(Accumulator::bytes_of({Operation::instant, ElementType::f32, 1.0, 2, 10}), 80);
}

}  // namespace
}  // namespace tailrace::operations
