// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/base/byte_order.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "ground/base/bytes.hpp"

namespace tailrace {
namespace {

constexpr std::endian other =
    std::endian::native == std::endian::big ? std::endian::little : std::endian::big;

/// Lengths around those of the processor's registers, at odd addresses.
TEST(byte_order, numbers_of_each_size_are_reversed_one_by_one) {
  for (const Bytes size : {1, 2, 4, 8}) {
    for (Bytes count = 0; count < 70; ++count) {
      const Bytes length = count * size;
      ByteVector from(static_cast<std::size_t>(length) + 1), to(from.size() + 1, std::byte{0xaa});
      for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 7 + 3);
      ByteVector expected(from.begin() + 1, from.end());
      for (auto number = expected.begin(); number != expected.end(); number += size)
        std::reverse(number, number + size);
      copy_ordered(to.data() + 1, from.data() + 1, length, size, other);
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), to.begin() + 1)) << size << " x " << count;
      EXPECT_EQ(to.back(), std::byte{0xaa});
      copy_reversed(from.data() + 1, from.data() + 1, length, size);
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), from.begin() + 1)) << "where they are";
    }
  }
}

TEST(byte_order, the_order_of_the_host_is_a_copy) {
  const ByteVector from{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
  ByteVector to(4);
  copy_ordered(to.data(), from.data(), 4, 4, std::endian::native);
  EXPECT_EQ(to, from);
}

}  // namespace
}  // namespace tailrace
