// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/layout/copy_runs.hpp"

#include <gtest/gtest.h>

#include "ground/base/bytes.hpp"

namespace tailrace::layout {
namespace {

/// Every way of copying takes over at some length, and ends with a piece that overlaps the one before.
TEST(copy, a_run_of_any_length_at_any_address_arrives_and_nothing_beside_it) {
  constexpr std::size_t room = 9000;
  ByteVector from(room), to(room);
  for (std::size_t i = 0; i < room; ++i) from[i] = static_cast<std::byte>(i * 31 + i / 256);
  for (Bytes length = 0; length < 8300; length += length < 700 ? 1 : 61) {
    for (const Bytes shift : {0, 1, 8, 31}) {
      std::fill(to.begin(), to.end(), std::byte{0xA5});
      copy_run(to.data() + 40 + shift, from.data() + shift, length);
      const auto begin = static_cast<std::size_t>(40 + shift), end = begin + static_cast<std::size_t>(length);
      ASSERT_TRUE(std::equal(to.begin() + 40 + shift, to.begin() + static_cast<std::ptrdiff_t>(end),
                             from.begin() + shift))
          << length << " bytes, shifted by " << shift;
      for (std::size_t i = 0; i < begin; ++i) ASSERT_EQ(to[i], std::byte{0xA5}) << length;
      for (std::size_t i = end; i < room; ++i) ASSERT_EQ(to[i], std::byte{0xA5}) << length;
    }
  }
}

}  // namespace
}  // namespace tailrace::layout
