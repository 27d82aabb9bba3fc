// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/information/pairs.hpp"

#include <algorithm>
#include <cstring>

#include "formats/entropy/ways.hpp"

namespace tailrace::information {

namespace {

using entropy::Way;

#define TAILRACE_INFORMATION_INLINE [[gnu::always_inline]] inline

// 256 words are counted at a time. They lie in rows of a vector each. Transposing the bits of each lane gives
// a vector for each bit (a plane): bit r of lane l is that of word r * lanes + l, whose neighbour lies in the
// next lane, or for the last lane in the first one, a bit further on.
constexpr int block = 256;
template <typename Word>
using Vector [[gnu::vector_size(32)]] = Word;
template <typename Word>
constexpr int lanes = static_cast<int>(32 / sizeof(Word));
template <typename Word>
constexpr int rows = static_cast<int>(8 * sizeof(Word));

/// Exchanges the squares of J x J bits beside the diagonal in each square of twice the size.
template <int J, typename Word>
TAILRACE_INFORMATION_INLINE void exchange(Vector<Word>* rows_of) {
  if constexpr (J > 0) {
    constexpr Word low = static_cast<Word>(~Word{0} / ((Word{1} << J) + 1));  // J ones, J zeros, ...
    for (int k = 0; k < rows<Word>; k += 2 * J) {
      for (int i = k; i < k + J; ++i) {
        const Vector<Word> changed = ((rows_of[i] >> J) ^ rows_of[i + J]) & low;
        rows_of[i] ^= changed << J;
        rows_of[i + J] ^= changed;
      }
    }
    exchange<J / 2, Word>(rows_of);
  }
}

/// Moves each lane to the one before. The last lane gets the first one, shifted by a row, and `carry` at its
/// end.
template <typename Word>
TAILRACE_INFORMATION_INLINE void neighbours_of(const Vector<Word>& plane, Word carry, Vector<Word>& next) {
  if constexpr (sizeof(Word) == 4)
    next = __builtin_shufflevector(plane, plane, 1, 2, 3, 4, 5, 6, 7, 0);
  else
    next = __builtin_shufflevector(plane, plane, 1, 2, 3, 0);
  next[lanes<Word> - 1] = static_cast<Word>(plane[0] >> 1 | carry << (rows<Word> - 1));
}

template <typename Word>
TAILRACE_INFORMATION_INLINE std::int64_t ones(const Vector<Word>& plane) {
  std::uint64_t parts[4];
  std::memcpy(parts, &plane, sizeof parts);
  return __builtin_popcountll(parts[0]) + __builtin_popcountll(parts[1]) + __builtin_popcountll(parts[2]) +
         __builtin_popcountll(parts[3]);
}

/// Adds the pairs of a block. `pairs` has a bit for each pair that counts, and all of them if `is_full`.
template <bool is_full, typename Word>
TAILRACE_INFORMATION_INLINE void add_planes(const Vector<Word>* planes, Word after, const Vector<Word>& pairs,
                                            Pairs& total) {
  Vector<Word> different{};
  for (int bit = 0; bit < rows<Word>; ++bit) {
    const auto at = static_cast<std::size_t>(bit);
    const Word carry = after >> bit & 1;
    Vector<Word> next;
    neighbours_of<Word>(planes[bit], carry, next);
    different |= planes[bit] ^ next;
    const Vector<Word> both = planes[bit] & next;
    if constexpr (is_full) {
      const std::int64_t first = ones<Word>(planes[bit]);
      total.first[at] += first;
      total.second[at] +=
          first + static_cast<std::int64_t>(carry) - static_cast<std::int64_t>(planes[bit][0] & 1);
      total.both[at] += ones<Word>(both);
    } else {
      total.first[at] += ones<Word>(planes[bit] & pairs);
      total.second[at] += ones<Word>(next & pairs);
      total.both[at] += ones<Word>(both & pairs);
    }
  }
  total.count += is_full ? block : ones<Word>(pairs);
  total.equal += ones<Word>(~different & pairs);
}

/// Sets a bit for each word that is a value.
template <typename Word>
TAILRACE_INFORMATION_INLINE void find_values(const Vector<Word>* words, const Reading<Word>& reading,
                                             Vector<Word>& values) {
  values = Vector<Word>{};
  for (int row = 0; row < rows<Word>; ++row) {
    const Vector<Word> size = (words[row] & reading.mask) - Word{1};
    const auto is_value = (size < reading.limit) & (words[row] != reading.missing) &
                          (words[row] != reading.frequent[0]) & (words[row] != reading.frequent[1]);
    values |= reinterpret_cast<const Vector<Word>&>(is_value) & (Word{1} << row);
  }
}

/// Clears the bits of pairs that lie in two rows of the field. `first` is the number of the block's first
/// word.
template <typename Word>
TAILRACE_INFORMATION_INLINE void leave_out_ends(Index first, Index row, Vector<Word>& pairs) {
  for (Index at = row - 1 - first % row; at < block; at += row)
    pairs[at % lanes<Word>] &= ~(Word{1} << at / lanes<Word>);
}

/// Adds the pairs of words `first` to `first` + 255 with their neighbours. There is a word behind them.
template <typename Word>
TAILRACE_INFORMATION_INLINE void add_block(const Word* words, Index first, const Reading<Word>& reading,
                                           Pairs& total) {
  Vector<Word> planes[rows<Word>];
  Word after = 0;
  std::memcpy(planes, words, sizeof planes);
  std::memcpy(&after, words + block, sizeof after);
  Vector<Word> values, pairs;
  find_values<Word>(planes, reading, values);
  neighbours_of<Word>(values, reading.is_value(after) ? 1 : 0, pairs);
  pairs &= values;
  leave_out_ends<Word>(first, reading.row, pairs);
  exchange<rows<Word> / 2, Word>(planes);
  if (ones<Word>(pairs) == block)
    add_planes<true, Word>(planes, after, pairs, total);
  else
    add_planes<false, Word>(planes, after, pairs, total);
}

template <typename Word>
TAILRACE_INFORMATION_INLINE void count_in(const Word* words, Index count, const Reading<Word>& reading,
                                          Pairs& total) {
  Index at = 0;
  for (; at + block < count; at += block) add_block<Word>(words + at, at, reading, total);
  Word rest[block + 1] = {};  // zeros are no values
  if (at < count) std::memcpy(rest, words + at, static_cast<std::size_t>(count - at) * sizeof(Word));
  add_block<Word>(rest, at, reading, total);
}

#if defined(__x86_64__)

template <typename Word>
[[gnu::target(TAILRACE_ENTROPY_AVX2)]] void count_avx2(const Word* words, Index count,
                                                       const Reading<Word>& reading, Pairs& total) {
  count_in<Word>(words, count, reading, total);
}
template <typename Word>
[[gnu::target(TAILRACE_ENTROPY_AVX512)]] void count_avx512(const Word* words, Index count,
                                                           const Reading<Word>& reading, Pairs& total) {
  count_in<Word>(words, count, reading, total);
}

#endif

}  // namespace

template <typename Word>
Pairs count_pairs(const Word* words, Index count, const Reading<Word>& reading, Way way) {
  Pairs total;
  Reading<Word> rows_of = reading;
  if (rows_of.row < 1) rows_of.row = std::max<Index>(count, 1);
#if defined(__x86_64__)
  if (way == Way::avx512)
    count_avx512(words, count, rows_of, total);
  else if (way == Way::avx2)
    count_avx2(words, count, rows_of, total);
  else
#endif
    count_in<Word>(words, count, rows_of, total);
  static_cast<void>(way);
  return total;
}

template Pairs count_pairs(const std::uint32_t*, Index, const Reading<std::uint32_t>&, Way);
template Pairs count_pairs(const std::uint64_t*, Index, const Reading<std::uint64_t>&, Way);

}  // namespace tailrace::information
