// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/information/neighbours.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <random>
#include <vector>

namespace tailrace::information {
namespace {

constexpr entropy::Way tried_ways[] = {entropy::Way::portable, entropy::Way::avx2, entropy::Way::avx512};
constexpr Index tried_rows[] = {1, 2, 3, 7, 63, 64, 65, 256, 257, 300, 5000};
constexpr std::size_t tried_counts[] = {1, 2, 9, 255, 256, 257, 258, 600, 4000};

template <typename Value>
using WordOf = std::conditional_t<sizeof(Value) == 4, std::uint32_t, std::uint64_t>;

/// Calls `take` with both words of each pair of values, one after the other.
template <typename Word, typename Take>
void for_each_value_pair(const std::vector<Word>& words, const Reading<Word>& reading, Take take) {
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (static_cast<Index>(i) % reading.row == reading.row - 1) continue;
    if (reading.is_value(words[i]) && reading.is_value(words[i + 1])) take(words[i], words[i + 1]);
  }
}

template <typename Value>
Reading<WordOf<Value>> reading_of(Index row) {
  using Word = WordOf<Value>;
  Reading<Word> reading;
  reading.row = row;
  reading.missing = std::bit_cast<Word>(static_cast<Value>(77));
  reading.frequent = {std::bit_cast<Word>(static_cast<Value>(12)), 0};
  if constexpr (std::is_floating_point_v<Value>) {
    reading.mask = ~Word{0} >> 1;
    reading.limit = std::bit_cast<Word>(std::numeric_limits<Value>::max());
  }
  return reading;
}

/// Multiples of `step` around `base`, among them runs of equal ones, zeros, and words that are no values.
template <typename Value>
std::vector<WordOf<Value>> multiples(std::size_t count, Value base, Value step, std::mt19937_64& random) {
  std::vector<Value> values;
  while (values.size() < count) {
    const auto kind = random() % 12;
    const Value value =
        kind == 0                                                ? Value{0}
        : kind == 1                                              ? Value{77}
        : kind == 2                                              ? Value{12}
        : kind == 3 && std::numeric_limits<Value>::has_infinity  ? std::numeric_limits<Value>::infinity()
        : kind == 4 && std::numeric_limits<Value>::has_quiet_NaN ? std::numeric_limits<Value>::quiet_NaN()
        : kind == 5                                              ? base
                    : static_cast<Value>(base + step * static_cast<Value>(random() % 64));
    const std::size_t times = kind < 7 ? 1 + random() % (random() % 8 == 0 ? 40 : 2) : 1;
    for (std::size_t i = 0; i < times && values.size() < count; ++i) values.push_back(value);
  }
  std::vector<WordOf<Value>> words;
  for (const Value value : values) words.push_back(std::bit_cast<WordOf<Value>>(value));
  return words;
}

template <typename Value>
class NeighboursTest : public testing::Test {};
using NeighbourTypes = testing::Types<float, double, std::uint32_t>;
TYPED_TEST_SUITE(NeighboursTest, NeighbourTypes);

/// Calls `compare` for records of many sizes and rows, with each way.
template <typename Value, typename Compare>
void for_each_record(Compare compare) {
  std::mt19937_64 random(3);
  for (const std::size_t count : tried_counts) {
    for (const Index row : tried_rows) {
      const auto words = multiples<Value>(count, Value{280}, Value{16}, random);
      for (const entropy::Way way : tried_ways) {
        if (!entropy::has(way)) continue;
        SCOPED_TRACE(testing::Message()
                     << count << " words in rows of " << row << ", way " << static_cast<int>(way));
        compare(words, reading_of<Value>(row), way);
      }
    }
  }
}

TYPED_TEST(NeighboursTest, the_most_frequent_word_of_equal_pairs_is_found_and_counted) {
  using Word = WordOf<TypeParam>;
  int found_ones = 0;
  for_each_record<TypeParam>([&](const std::vector<Word>& words, const Reading<Word>& reading, auto way) {
    std::map<Word, std::int64_t> equal;
    std::int64_t all = 0;
    for_each_value_pair(words, reading, [&](Word one, Word other) {
      if (one != other) return;
      ++equal[one];
      ++all;
    });
    const Frequent<Word> most = most_frequent(words.data(), std::ssize(words), reading, way);
    EXPECT_EQ(most.count, equal.contains(most.word) ? equal[most.word] : 0);
    for (const auto& [word, count] : equal) {
      if (count * 5 <= all) continue;
      EXPECT_GE(most.count, count) << word;
      ++found_ones;
    }
  });
  EXPECT_GT(found_ones, 20);
}

// One long run among many pairs of other words.
TEST(neighbours, a_long_run_is_more_than_many_short_ones) {
  std::vector<std::uint32_t> words(600, 7);
  for (std::uint32_t other = 0; other < 900; ++other) words.insert(words.end(), 2, 100 + other);
  const auto most = most_frequent(words.data(), std::ssize(words), Reading<std::uint32_t>{});
  EXPECT_EQ(most.word, 7U);
  EXPECT_EQ(most.count, 599);
}

// A word of more than a fifth, among runs that push each other out.
TEST(neighbours, runs_count_as_often_as_their_pairs) {
  std::mt19937_64 random(8);
  for (int turn = 0; turn < 50; ++turn) {
    std::vector<std::uint32_t> words;
    std::int64_t of_seven = 0, all = 0;
    while (words.size() < 3000) {
      const bool seven = all == 0 || of_seven * 4 <= all;
      const std::uint32_t word = seven ? 7 : 100 + static_cast<std::uint32_t>(random() % 50);
      const std::size_t run = 2 + random() % (turn + 1);
      words.insert(words.end(), run, word);
      words.push_back(1000 + static_cast<std::uint32_t>(words.size()));  // between two runs
      all += static_cast<std::int64_t>(run) - 1;
      of_seven += seven ? static_cast<std::int64_t>(run) - 1 : 0;
    }
    const auto most = most_frequent(words.data(), std::ssize(words), Reading<std::uint32_t>{});
    EXPECT_EQ(most.word, 7U) << "turn " << turn;
    EXPECT_EQ(most.count, of_seven) << "turn " << turn;
  }
}

TYPED_TEST(NeighboursTest, differences_are_those_of_a_loop_over_pairs) {
  using Word = WordOf<TypeParam>;
  for_each_record<TypeParam>([&](const std::vector<Word>& words, const Reading<Word>& reading, auto way) {
    Differences expected;
    std::vector<double> all;
    for_each_value_pair(words, reading, [&](Word one, Word other) {
      const auto first = static_cast<double>(std::bit_cast<TypeParam>(one)),
                 second = static_cast<double>(std::bit_cast<TypeParam>(other));
      all.push_back(std::fabs(first - second));
      if (all.back() > 0) expected.smallest = std::min(expected.smallest, all.back());
      expected.largest_value = std::max({expected.largest_value, std::fabs(first), std::fabs(second)});
    });
    const Differences found = differences_of<TypeParam>(words.data(), std::ssize(words), reading, way);
    EXPECT_EQ(found.smallest, expected.smallest);
    if constexpr (std::is_floating_point_v<TypeParam>) {
      EXPECT_EQ(found.largest_value, expected.largest_value);
    }
    for (const auto& [above, below] :
         {std::pair(15.5, 16.5), std::pair(16.0, 32.0), std::pair(0.5, 16.0), std::pair(31.0, 33.0),
          std::pair(500.25, 500.75), std::pair(900.0, 1e300)}) {
      const bool has = std::ranges::any_of(
          all, [&, low = above, high = below](double each) { return each > low && each < high; });
      EXPECT_EQ(has_difference<TypeParam>(words.data(), std::ssize(words), reading, above, below, way), has)
          << above << " to " << below;
    }
  });
}

// Codes of 32 bits whose differences do not fit signed numbers.
TEST(neighbours, differences_of_wide_codes_are_whole) {
  const std::vector<std::uint32_t> words{1, 0xffffffff, 2, 0xfffffff0};
  const Reading<std::uint32_t> reading;
  EXPECT_EQ(differences_of<std::uint32_t>(words.data(), 4, reading).smallest, 4294967278.0);
  EXPECT_TRUE(has_difference<std::uint32_t>(words.data(), 4, reading, 4294967293.0, 5e9));
  EXPECT_FALSE(has_difference<std::uint32_t>(words.data(), 4, reading, 4294967294.0, 5e9));
  EXPECT_FALSE(has_difference<std::uint32_t>(words.data(), 4, reading, 5e9, 6e9));
}

}  // namespace
}  // namespace tailrace::information
