// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cmath>
#include <span>
#include <vector>

#include "formats/information/pairs.hpp"

namespace tailrace::information {

/// Counts pairs one by one.
template <typename Word>
Pairs slow_pairs(std::span<const Word> words, const Reading<Word>& reading) {
  Pairs pairs;
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (static_cast<Index>(i) % reading.row == reading.row - 1) continue;
    const Word one = words[i], other = words[i + 1];
    if (!reading.is_value(one) || !reading.is_value(other)) continue;
    ++pairs.count;
    pairs.equal += one == other ? 1 : 0;
    for (std::size_t bit = 0; bit < 8 * sizeof(Word); ++bit) {
      pairs.first[bit] += one >> bit & 1;
      pairs.second[bit] += other >> bit & 1;
      pairs.both[bit] += one >> bit & other >> bit & 1;
    }
  }
  return pairs;
}

/// Returns the mutual information of a bit in neighbours as the paper defines it: from the probabilities of
/// 00, 01, 10 and 11, counted in the values that follow one another.
template <typename Word>
double slow_information(std::span<const Word> words, int bit) {
  double joint[2][2] = {}, first[2] = {}, second[2] = {};
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const int one = words[i] >> bit & 1, other = words[i + 1] >> bit & 1;
    joint[one][other] += 1;
    first[one] += 1;
    second[other] += 1;
  }
  const auto all = static_cast<double>(words.size() - 1);
  double sum = 0;
  for (const int one : {0, 1})
    for (const int other : {0, 1})
      if (joint[one][other] > 0)
        sum += joint[one][other] / all *
               std::log2(joint[one][other] / all / (first[one] / all * (second[other] / all)));
  return sum;
}

}  // namespace tailrace::information
