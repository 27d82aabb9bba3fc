// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "exchange/portions.hpp"

#include <gtest/gtest.h>

#include <algorithm>

using namespace tailrace;
using exchange::Portions;
using exchange::Window;

namespace {

TEST(portions, cover_an_array_once_in_contiguous_shares_that_begin_with_the_first_aggregator) {
  constexpr Bytes size = 64;
  for (int aggregators = 1; aggregators <= 4; ++aggregators) {
    for (const Bytes position : {0, 1, 63, 64, 100}) {
      for (const Bytes bytes : {0, 1, 63, 64, 65, 200, 1000}) {
        std::vector<std::uint64_t> numbers(static_cast<std::size_t>(aggregators), 7);
        const Portions portions(position, bytes, size, numbers, aggregators);
        Bytes at = 0;
        for (int a = 0; a < aggregators; ++a) {
          for (std::int64_t round = 0; round < portions.count(a); ++round) {
            const Window window = portions.window(a, round);
            EXPECT_EQ(window.begin, at);
            EXPECT_GT(window.end, window.begin);
            EXPECT_LE(window.end - window.begin, size);
            if (window.end < bytes) EXPECT_EQ((position + window.end) % size, 0);
            EXPECT_EQ(window.number, 7 + static_cast<std::uint64_t>(round));
            at = window.end;
          }
          EXPECT_EQ(numbers[static_cast<std::size_t>(a)], 7 + static_cast<std::uint64_t>(portions.count(a)));
          EXPECT_LE(portions.count(a), portions.rounds());
        }
        EXPECT_EQ(at, bytes);
        // Markers in front of an array go with its first window. The I/O rank corrects them.
        if (bytes > 0)
          EXPECT_GT(portions.count(0), 0) << bytes << " bytes, " << aggregators << " aggregators";
      }
    }
  }
}

}  // namespace
