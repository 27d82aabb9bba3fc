// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "arrays.hpp"

namespace tailrace::layout::test {
namespace {

TEST(PlaceRows, the_pieces_of_all_ranks_make_up_the_record) {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    Generator generator(seed);
    const Layout layout = generator.any();
    const Bytes element = size_of(any_type(generator));
    std::vector<std::byte> whole(static_cast<std::size_t>(layout.elements() * element)), record(whole.size());
    for (Index global = 0; global < layout.elements(); ++global)
      fill_value(whole.data() + global * element, element, global, 0);
    for (int rank = 0; rank < layout.ranks(); ++rank) {
      const auto rows = layout.rows(rank);
      std::vector<std::byte> piece(static_cast<std::size_t>(layout.count(rank) * element));
      const auto mine = expand(rows);
      for (std::size_t i = 0; i < mine.size(); ++i)
        std::memcpy(piece.data() + static_cast<Bytes>(i) * element, whole.data() + mine[i] * element,
                    static_cast<std::size_t>(element));
      place_rows(rows, piece.data(), element, record.data());
    }
    ASSERT_EQ(record, whole) << describe(layout);
  }
}

TEST(PlaceRows, reversed_records_hold_the_bytes_of_each_number_backwards) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    Generator generator(seed);
    const Layout layout = generator.any();
    const ElementType type = any_type(generator);
    const Bytes element = size_of(type), scalar = element == 16 ? 8 : element;
    const auto size = static_cast<std::size_t>(layout.elements() * element);
    std::vector<std::byte> whole(size), record(size);
    for (Index global = 0; global < layout.elements(); ++global)
      fill_value(whole.data() + global * element, element, global, 0);
    for (int rank = 0; rank < layout.ranks(); ++rank) {
      const auto rows = layout.rows(rank);
      std::vector<std::byte> piece;
      for (const Index mine : expand(rows))
        piece.insert(piece.end(), whole.data() + mine * element, whole.data() + (mine + 1) * element);
      place_rows_reversed(rows, piece.data(), element, scalar, record.data());
    }
    for (auto number = whole.begin(); number != whole.end(); number += scalar)
      std::reverse(number, number + scalar);
    ASSERT_EQ(record, whole) << describe(layout) << " of " << name_of(type);
  }
}

TEST(PlaceRows, float32_pieces_are_widened_exactly) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    Generator generator(seed);
    const Layout layout = generator.any();
    std::vector<double> record(static_cast<std::size_t>(layout.elements()), -1);
    for (int rank = 0; rank < layout.ranks(); ++rank) {
      std::vector<float> piece;
      for (const Index global : expand(layout.rows(rank))) piece.push_back(static_cast<float>(global) * 0.1F);
      place_rows_as_f64(layout.rows(rank), std::as_bytes(std::span(piece)).data(), ElementType::f32,
                        record.data());
    }
    for (Index global = 0; global < layout.elements(); ++global)
      ASSERT_EQ(record[static_cast<std::size_t>(global)],
                static_cast<double>(static_cast<float>(global) * 0.1F));
  }
}

TEST(PlaceRows, widening_keeps_denormals_infinities_and_nan) {
  const std::vector<float> piece{std::numeric_limits<float>::denorm_min(),
                                 -std::numeric_limits<float>::infinity(),
                                 std::numeric_limits<float>::quiet_NaN(), -0.0F};
  std::vector<double> record(4);
  place_rows_as_f64(Layout::block({4}, 1)->rows(0), std::as_bytes(std::span(piece)).data(), ElementType::f32,
                    record.data());
  EXPECT_EQ(record[0], std::ldexp(1.0, -149));
  EXPECT_EQ(record[1], -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(record[2]));
  EXPECT_TRUE(std::signbit(record[3]));
}

template <typename Element>
void widens(ElementType type) {
  using Limits = std::numeric_limits<Element>;
  const std::vector<Element> piece{Limits::lowest() / 2, static_cast<Element>(-1), 0, Limits::max() / 2};
  std::vector<double> record(4, 7);
  place_rows_as_f64(Layout::block({4}, 1)->rows(0), std::as_bytes(std::span(piece)).data(), type,
                    record.data());
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(record[i], static_cast<double>(piece[i])) << name_of(type);
}

TEST(PlaceRows, each_real_type_becomes_the_double_of_its_value) {
  widens<std::int8_t>(ElementType::i8);
  widens<std::int16_t>(ElementType::i16);
  widens<std::int32_t>(ElementType::i32);
  widens<std::int64_t>(ElementType::i64);
  widens<std::uint8_t>(ElementType::byte);
  widens<std::uint16_t>(ElementType::u16);
  widens<std::uint32_t>(ElementType::u32);
  widens<std::uint64_t>(ElementType::u64);
  widens<float>(ElementType::f32);
  widens<double>(ElementType::f64);
}

}  // namespace
}  // namespace tailrace::layout::test
