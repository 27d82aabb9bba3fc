// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/base/text.hpp"

#include <gtest/gtest.h>

#include "ground/base/shape_text.hpp"

namespace tailrace {
namespace {

TEST(text, one_of_a_kind_has_no_plural) {
  EXPECT_EQ(counted(1, "step"), "1 step");
  EXPECT_EQ(counted(std::size_t{0}, "byte"), "0 bytes");
  EXPECT_EQ(counted(-2, "rank"), "-2 ranks");
  EXPECT_EQ(counted(1, "process", "processes"), "1 process");
  EXPECT_EQ(counted(3, "process", "processes"), "3 processes");
}

TEST(size_text, has_three_digits_and_the_largest_unit_that_fits) {
  EXPECT_EQ(size_text(0), "0 bytes");
  EXPECT_EQ(size_text(1), "1 byte");
  EXPECT_EQ(size_text(1023), "1023 bytes");
  EXPECT_EQ(size_text(64 * 1024), "64KiB");
  EXPECT_EQ(size_text(429496217), "410MiB");
  EXPECT_EQ(size_text(Bytes{3} << 29), "1.5GiB");
  EXPECT_EQ(size_text((Bytes{1} << 30) - 1), "1GiB");
  EXPECT_EQ(size_text(std::numeric_limits<Bytes>::max()), "8EiB");
}

TEST(shape_text, tells_shapes_and_indices_in_the_order_of_the_program) {
  EXPECT_EQ(extents({181, 360}), "181 x 360");
  EXPECT_EQ(tuple({2, 3}), "(2, 3)");
  EXPECT_EQ(dimension_text(0, 2), "dimension 0");
  EXPECT_EQ(told_index(4), 4);
  tell_in(Order::fortran);
  EXPECT_EQ(extents({181, 360}), "360 x 181");
  EXPECT_EQ(tuple({2, 3}), "(3, 2)");
  EXPECT_EQ(dimension_text(0, 2), "dimension 2");
  EXPECT_EQ(dimension_text(1, 2), "dimension 1");
  EXPECT_EQ(told_index(4), 5);
  EXPECT_STREQ(order_text(), "fastest dimension first");
  tell_in(Order::c);
  EXPECT_STREQ(order_text(), "slowest dimension first");
}

}  // namespace
}  // namespace tailrace
