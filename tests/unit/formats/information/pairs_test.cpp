// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/information/pairs.hpp"

#include <gtest/gtest.h>

#include <random>

#include "slow.hpp"

namespace tailrace::information {
namespace {

constexpr entropy::Way all_ways[] = {entropy::Way::portable, entropy::Way::avx2, entropy::Way::avx512};

template <typename Word>
void expect_equal(const Pairs& found, const Pairs& expected) {
  EXPECT_EQ(found.count, expected.count);
  EXPECT_EQ(found.equal, expected.equal);
  EXPECT_EQ(found.first, expected.first);
  EXPECT_EQ(found.second, expected.second);
  EXPECT_EQ(found.both, expected.both);
}

/// Words among which are zeros, equal neighbours, and values that are left out.
template <typename Word>
std::vector<Word> mixed_words(std::size_t count) {
  std::mt19937_64 random(5);
  std::vector<Word> words;
  for (std::size_t i = 0; i < count; ++i) {
    const auto any = static_cast<Word>(random());
    const auto kind = random() % 16;
    words.push_back(kind == 0                 ? Word{0}
                    : kind == 1               ? ~Word{0} >> 1
                    : kind == 2               ? Word{77}
                    : kind == 4               ? Word{12}
                    : kind == 5               ? Word{99}
                    : kind == 3 && i > 0      ? words.back()
                    : count > 2000 && i < 600 ? any >> 2 | 1  // a whole block of values
                                              : any);
  }
  return words;
}

template <typename Word>
class PairsTest : public testing::Test {};
using Words = testing::Types<std::uint32_t, std::uint64_t>;
TYPED_TEST_SUITE(PairsTest, Words);

TYPED_TEST(PairsTest, every_way_counts_what_a_loop_over_pairs_counts) {
  for (const std::size_t count : {1U, 2U, 100U, 255U, 256U, 257U, 258U, 512U, 513U, 5000U}) {
    const std::vector<TypeParam> words = mixed_words<TypeParam>(count);
    for (const Index row : {Index{1}, Index{2}, Index{7}, Index{256}, Index{300}, Index{5000}}) {
      const Reading<TypeParam> reading{~TypeParam{0} >> 1,
                                       static_cast<TypeParam>((~TypeParam{0} >> 1) - 5),
                                       TypeParam{77},
                                       row,
                                       {TypeParam{12}, TypeParam{99}}};
      const Pairs expected = slow_pairs<TypeParam>(words, reading);
      for (const entropy::Way way : all_ways) {
        if (!entropy::has(way)) continue;
        SCOPED_TRACE(testing::Message()
                     << count << " words in rows of " << row << ", way " << static_cast<int>(way));
        expect_equal<TypeParam>(count_pairs(words.data(), std::ssize(words), reading, way), expected);
      }
    }
  }
}

// The example of the documentation of BitInformation.jl ("Bit pair count").
TEST(pairs, counts_are_those_of_the_published_example) {
  const std::vector<std::uint32_t> words{0b01000010, 0b11110110, 0b01010110, 0b01111111, 0b00010100};
  const Pairs pairs = count_pairs(words.data(), 5, {.row = 5});
  EXPECT_EQ(pairs.count, 4);
  const int none[] = {2, 0, 0, 0, 2, 0, 0, 2}, both[] = {0, 3, 0, 3, 0, 3, 3, 0},
            first_alone[] = {1, 1, 2, 0, 1, 0, 1, 1};
  for (std::size_t i = 0; i < 8; ++i) {
    const std::size_t bit = 7 - i;
    EXPECT_EQ(pairs.both[bit], both[i]) << i;
    EXPECT_EQ(pairs.first[bit] - pairs.both[bit], first_alone[i]) << i;
    EXPECT_EQ(pairs.count - pairs.first[bit] - pairs.second[bit] + pairs.both[bit], none[i]) << i;
  }
}

}  // namespace
}  // namespace tailrace::information
