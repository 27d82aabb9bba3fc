// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
#include <limits>

#include "formats/information/pairs.hpp"

// These functions look at a record whose neighbours are often equal: for the word that is frequent, and for
// a step of which all values are multiples. Every way gives the same answers and reads words by memcpy().
namespace tailrace::information {

/// A word, and the pairs of equal values that consist of it.
template <typename Word>
struct Frequent {
  Word word = 0;
  std::int64_t count = 0;
};

/// Local. Returns the word that most pairs of equal values consist of, if it has more than a fifth of them.
/// Otherwise it may be any word, with its count.
template <typename Word>
Frequent<Word> most_frequent(const Word* words, Index count, const Reading<Word>& reading,
                             entropy::Way way = entropy::best_way());

struct Differences {
  double smallest = std::numeric_limits<double>::infinity();  // of two neighbours that are not equal
  double largest_value = 0;  // the largest magnitude among them; not told of whole numbers
};
/// Local. Looks at the differences of all pairs. `Value`, of the words' size, is their type: float, double or
/// std::uint32_t.
template <typename Value, typename Word>
Differences differences_of(const Word* words, Index count, const Reading<Word>& reading,
                           entropy::Way way = entropy::best_way());
/// Local. Returns true if the difference of some pair lies between both limits, which are positive.
template <typename Value, typename Word>
bool has_difference(const Word* words, Index count, const Reading<Word>& reading, double above, double below,
                    entropy::Way way = entropy::best_way());

}  // namespace tailrace::information
