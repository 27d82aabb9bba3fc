// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>

#include "formats/entropy/entropy.hpp"
#include "ground/base/types.hpp"

// How the bits of neighbouring values go together: the counts from which the information of each bit follows.
namespace tailrace::information {

/// Which words are values, and which of them are neighbours. A word is a value if it is neither `missing` nor
/// `frequent` nor zero under `mask`, and below `limit` there.
template <typename Word>
struct Reading {
  Word mask = ~Word{0};
  Word limit = ~Word{0};  // the largest word under the mask that is a value, at most
  Word missing = 0;
  Index row = 0;  // words in a row: the last one of a row and the first one of the next are no neighbours
  std::array<Word, 2> frequent{};  // 0: none

  [[nodiscard]] bool is_value(Word word) const {
    return static_cast<Word>((word & mask) - 1) < limit && word != missing && word != frequent[0] &&
           word != frequent[1];
  }
};

/// Counts of pairs of neighbours, both of which are values, for each bit, the least significant one first.
struct Pairs {
  std::int64_t count = 0;
  std::int64_t equal = 0;                // pairs of equal values
  std::array<std::int64_t, 64> first{};  // pairs whose first value has the bit
  std::array<std::int64_t, 64> second{};
  std::array<std::int64_t, 64> both{};
};

/// Local. Counts all pairs of `words`. `Word` is std::uint32_t or std::uint64_t. Every way gives the same
/// counts. The words are only read by memcpy(), so they may be real numbers of the same size.
template <typename Word>
Pairs count_pairs(const Word* words, Index count, const Reading<Word>& reading,
                  entropy::Way way = entropy::best_way());

}  // namespace tailrace::information
