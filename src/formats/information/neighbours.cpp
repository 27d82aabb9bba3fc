// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/information/neighbours.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "formats/entropy/ways.hpp"

namespace tailrace::information {

namespace {

using entropy::Way;

#define TAILRACE_NEIGHBOURS_INLINE [[gnu::always_inline]] inline
#define TAILRACE_NEIGHBOURS_INLINED __attribute__((always_inline))  // of a lambda

/// So many pairs are looked at together. Their words are copied, and what is found out about them lies beside
/// them in the nearest cache. The loops over them have no branches, so that compilers make vector
/// instructions of them.
constexpr Index stretch = 256;

/// A stretch of longer rows ends with its row. Of shorter ones it has as many as fit: the rest of a vector
/// would cost more than the pairs of such a row.
constexpr Index short_row = 64;

template <typename Word>
TAILRACE_NEIGHBOURS_INLINE bool is_value(const Reading<Word>& reading, Word word) {
  return (static_cast<Word>((word & reading.mask) - 1) < reading.limit) & (word != reading.missing) &
         (word != reading.frequent[0]) & (word != reading.frequent[1]);
}

/// The words of a stretch, and the one behind it. Masks leave out pairs of the last word of a short row and
/// the first one of the next, and pairs behind the last row.
template <typename Word>
struct Stretch {
  Word words[stretch + 1] = {};
  Word inside[stretch];   // all bits, or none: the words are no neighbours
  double apart[stretch];  // 0, or NaN: so is then what it is added to

  TAILRACE_NEIGHBOURS_INLINE explicit Stretch(Index row) {
    const bool is_short = row <= short_row;
    for (Index i = 0; i < stretch; ++i) inside[i] = ~Word{0};
    for (Index i = row - 1; is_short && i < stretch; i += row) inside[i] = 0;
    for (Index i = stretch / row * row; is_short && i < stretch; ++i) inside[i] = 0;
    for (Index i = 0; i < stretch; ++i)
      apart[i] = inside[i] == 0 ? std::numeric_limits<double>::quiet_NaN() : 0;
  }
  TAILRACE_NEIGHBOURS_INLINE void read(const Word* from, Index count) {
    std::memcpy(words, from, static_cast<std::size_t>(count) * sizeof(Word));
  }
};

/// Reads each stretch and calls `take` with its number of pairs, until it returns false.
template <typename Word, typename Take>
TAILRACE_NEIGHBOURS_INLINE void for_each_stretch(const Word* words, Index count, Index row,
                                                 Stretch<Word>& here, Take&& take) {
  const bool is_short = row <= short_row;
  const Index step = is_short ? stretch / row * row : row;
  for (Index begin = 0; begin < count && row > 1; begin += step) {
    const Index some = std::min(step, count - begin);
    const bool is_masked = is_short && some == step;  // all loops then have the length of a stretch
    for (Index at = 0; at < some - 1; at += stretch) {
      const Index pairs = std::min(stretch, some - 1 - at);
      here.read(words + begin + at, is_masked ? some : pairs + 1);
      if (!take(is_masked ? stretch : pairs)) return;
    }
  }
}

/// Finds the words of more than a fifth of those that it is given (Misra and Gries 1982).
template <typename Word>
struct Candidates {
  std::array<Frequent<Word>, 4> places{};

  void add(Word word, std::int64_t times) {
    auto place = std::ranges::find(places, word, &Frequent<Word>::word);
    if (place == places.end()) place = std::ranges::find(places, 0, &Frequent<Word>::count);
    if (place == places.end()) {
      const std::int64_t least = std::ranges::min(places, {}, &Frequent<Word>::count).count;
      const std::int64_t fewer = std::min(least, times);
      for (Frequent<Word>& each : places) each.count -= fewer;
      if (times > fewer) add(word, times - fewer);
      return;
    }
    place->word = word;
    place->count += times;
  }
};

/// Returns the number of octets of 0 before the first other one.
TAILRACE_NEIGHBOURS_INLINE Index first_set(std::uint64_t octets) {
  return (std::endian::native == std::endian::little ? std::countr_zero(octets) : std::countl_zero(octets)) /
         8;
}

constexpr Index octets_at_once = 8;
constexpr std::uint64_t all_set = 0x0101010101010101U;

TAILRACE_NEIGHBOURS_INLINE std::uint64_t octets_at(const std::uint8_t* at) {
  std::uint64_t octets = 0;
  std::memcpy(&octets, at, sizeof octets);
  return octets;
}

/// Gives each run of pairs of equal values to the candidates.
template <typename Word>
TAILRACE_NEIGHBOURS_INLINE void add_runs(const Word* words, const std::uint8_t* equal, Index pairs,
                                         Candidates<Word>& candidates) {
  for (Index at = 0; at < pairs;) {
    const std::uint64_t next = octets_at(equal + at);
    at += next == 0 ? octets_at_once : first_set(next);
    if (next == 0) continue;
    const Index begin = at;
    std::uint64_t others = octets_at(equal + at) ^ all_set;
    for (; others == 0; others = octets_at(equal + at) ^ all_set) at += octets_at_once;
    at += first_set(others);
    candidates.add(words[begin], at - begin);
  }
}

template <typename Word>
TAILRACE_NEIGHBOURS_INLINE Frequent<Word> most_frequent_in(const Word* words, Index count,
                                                           const Reading<Word>& reading) {
  Candidates<Word> candidates;
  Stretch<Word> here(reading.row);
  std::uint8_t equal[stretch + 2 * octets_at_once];
  for_each_stretch(words, count, reading.row, here, [&](Index pairs) TAILRACE_NEIGHBOURS_INLINED {
    for (Index i = 0; i < pairs; ++i)
      equal[i] = static_cast<std::uint8_t>((here.words[i] == here.words[i + 1]) &
                                           is_value(reading, here.words[i]) & here.inside[i]);
    std::memset(equal + pairs, 0, 2 * octets_at_once);  // ends a run
    add_runs(here.words, equal, pairs, candidates);
    return true;
  });
  std::array<Frequent<Word>, 4>& places = candidates.places;
  for (Frequent<Word>& each : places) each.count = 0;
  for_each_stretch(words, count, reading.row, here, [&](Index pairs) TAILRACE_NEIGHBOURS_INLINED {
    for (Frequent<Word>& each : places) {
      if (each.word == 0) continue;  // nobody's place
      const Word word = each.word;
      Word found = 0;  // at most as many as a stretch has pairs
      for (Index i = 0; i < pairs; ++i)
        found += (here.words[i] == word) & (here.words[i + 1] == word) & here.inside[i];
      each.count += static_cast<std::int64_t>(found);
    }
    return true;
  });
  return *std::ranges::max_element(places, {}, &Frequent<Word>::count);
}

/// Compilers make vector instructions of independent lanes.
constexpr int lanes = 32;

/// The reals of a stretch as doubles: NaN stands for words that are no values, so that a difference from them
/// is NaN, too, and is neither smaller nor larger than anything.
template <typename Real, typename Word>
TAILRACE_NEIGHBOURS_INLINE void read_reals(Stretch<Word>& here, Index pairs, const Reading<Word>& reading,
                                           double* reals) {
  constexpr Word nan = std::bit_cast<Word>(std::numeric_limits<Real>::quiet_NaN());
  for (Index i = 0; i <= pairs; ++i) here.words[i] = is_value(reading, here.words[i]) ? here.words[i] : nan;
  Real values[stretch + 1];
  std::memcpy(values, here.words, static_cast<std::size_t>(pairs + 1) * sizeof(Real));
  for (Index i = 0; i <= pairs; ++i) reals[i] = static_cast<double>(values[i]);
}

template <typename Real, typename Word>
TAILRACE_NEIGHBOURS_INLINE Differences differences_of_reals(const Word* words, Index count,
                                                            const Reading<Word>& reading) {
  double smallest[lanes], largest[lanes], reals[stretch + 1];
  Stretch<Word> here(reading.row);
  std::ranges::fill(smallest, std::numeric_limits<double>::infinity());
  std::ranges::fill(largest, 0);
  const auto look = [&](Index at, int lane) TAILRACE_NEIGHBOURS_INLINED {
    const double one = std::fabs(reals[at]), other = std::fabs(reals[at + 1]);
    const double larger = one > other ? one : other;
    const double difference = std::fabs(reals[at] - reals[at + 1]) + here.apart[at];
    const double positive = difference > 0 ? difference : std::numeric_limits<double>::infinity();
    const double counted = difference >= 0 ? larger : 0;
    smallest[lane] = positive < smallest[lane] ? positive : smallest[lane];
    largest[lane] = counted > largest[lane] ? counted : largest[lane];
  };
  for_each_stretch(words, count, reading.row, here, [&](Index pairs) TAILRACE_NEIGHBOURS_INLINED {
    read_reals<Real>(here, pairs, reading, reals);
    Index at = 0;
    for (; at + lanes <= pairs; at += lanes)
      for (int lane = 0; lane < lanes; ++lane) look(at + lane, lane);
    for (; at < pairs; ++at) look(at, 0);
    return true;
  });
  return {std::ranges::min(smallest), std::ranges::max(largest)};
}

/// Returns the difference of two codes, or 0 if one of them is no value.
template <typename Word>
TAILRACE_NEIGHBOURS_INLINE Word difference_of_codes(const Reading<Word>& reading, Word one, Word other) {
  const Word difference = one > other ? one - other : other - one;
  return is_value(reading, one) & is_value(reading, other) ? difference : 0;
}

template <typename Word>
TAILRACE_NEIGHBOURS_INLINE Differences differences_of_codes(const Word* words, Index count,
                                                            const Reading<Word>& reading) {
  const Reading<Word> asked = reading;
  Word smallest[lanes];  // less 1: so 0 is larger than all others
  std::ranges::fill(smallest, ~Word{0});
  Stretch<Word> here(reading.row);
  const auto look = [&](Index at, int lane) TAILRACE_NEIGHBOURS_INLINED {
    const Word less_1 =
        (difference_of_codes(asked, here.words[at], here.words[at + 1]) & here.inside[at]) - 1;
    smallest[lane] = less_1 < smallest[lane] ? less_1 : smallest[lane];
  };
  for_each_stretch(words, count, reading.row, here, [&](Index pairs) TAILRACE_NEIGHBOURS_INLINED {
    Index at = 0;
    for (; at + lanes <= pairs; at += lanes)
      for (int lane = 0; lane < lanes; ++lane) look(at + lane, lane);
    for (; at < pairs; ++at) look(at, 0);
    return true;
  });
  const Word least = std::ranges::min(smallest);
  if (least == ~Word{0}) return {};
  return {static_cast<double>(least) + 1, 0};
}

template <typename Value, typename Word>
TAILRACE_NEIGHBOURS_INLINE Differences differences_in(const Word* words, Index count,
                                                      const Reading<Word>& reading) {
  if constexpr (std::is_floating_point_v<Value>)
    return differences_of_reals<Value>(words, count, reading);
  else
    return differences_of_codes(words, count, reading);
}

template <typename Value, typename Word>
TAILRACE_NEIGHBOURS_INLINE bool has_difference_in(const Word* words, Index count,
                                                  const Reading<Word>& reading, double above, double below) {
  bool has = false;
  Stretch<Word> here(reading.row);
  if constexpr (std::is_floating_point_v<Value>) {
    double reals[stretch + 1];
    for_each_stretch(words, count, reading.row, here, [&](Index pairs) TAILRACE_NEIGHBOURS_INLINED {
      read_reals<Value>(here, pairs, reading, reals);
      std::uint64_t found = 0;
      for (Index i = 0; i < pairs; ++i) {
        const double difference = std::fabs(reals[i] - reals[i + 1]) + here.apart[i];
        found += (difference > above) & (difference < below);
      }
      has = found > 0;
      return !has;
    });
  } else {
    // Differences of codes are whole numbers, and above 0 here.
    constexpr auto most = static_cast<double>(std::numeric_limits<Word>::max());
    const double first = std::floor(above) + 1, last = std::min(std::ceil(below) - 1, most);
    if (first > last) return false;
    const auto begin = static_cast<Word>(first), length = static_cast<Word>(last - first);
    for_each_stretch(words, count, reading.row, here, [&](Index pairs) TAILRACE_NEIGHBOURS_INLINED {
      Word found = 0;
      for (Index i = 0; i < pairs; ++i)
        found |= (difference_of_codes(reading, here.words[i], here.words[i + 1]) & here.inside[i]) - begin <=
                 length;
      has = found != 0;
      return !has;
    });
  }
  return has;
}

#if defined(__x86_64__)

template <typename Word>
[[gnu::target(TAILRACE_ENTROPY_AVX2)]] Frequent<Word> most_frequent_avx2(const Word* words, Index count,
                                                                         const Reading<Word>& reading) {
  return most_frequent_in(words, count, reading);
}
template <typename Word>
[[gnu::target(TAILRACE_ENTROPY_AVX512)]] Frequent<Word> most_frequent_avx512(const Word* words, Index count,
                                                                             const Reading<Word>& reading) {
  return most_frequent_in(words, count, reading);
}
template <typename Value, typename Word>
[[gnu::target(TAILRACE_ENTROPY_AVX2)]] Differences differences_avx2(const Word* words, Index count,
                                                                    const Reading<Word>& reading) {
  return differences_in<Value>(words, count, reading);
}
template <typename Value, typename Word>
[[gnu::target(TAILRACE_ENTROPY_AVX512)]] Differences differences_avx512(const Word* words, Index count,
                                                                        const Reading<Word>& reading) {
  return differences_in<Value>(words, count, reading);
}
template <typename Value, typename Word>
[[gnu::target(TAILRACE_ENTROPY_AVX2)]] bool has_difference_avx2(const Word* words, Index count,
                                                                const Reading<Word>& reading, double above,
                                                                double below) {
  return has_difference_in<Value>(words, count, reading, above, below);
}
template <typename Value, typename Word>
[[gnu::target(TAILRACE_ENTROPY_AVX512)]] bool has_difference_avx512(const Word* words, Index count,
                                                                    const Reading<Word>& reading,
                                                                    double above, double below) {
  return has_difference_in<Value>(words, count, reading, above, below);
}

#endif

/// The row of a reading that has none is the whole record.
template <typename Word>
Reading<Word> with_row(Reading<Word> reading, Index count) {
  if (reading.row < 1) reading.row = std::max<Index>(count, 1);
  return reading;
}

}  // namespace

template <typename Word>
Frequent<Word> most_frequent(const Word* words, Index count, const Reading<Word>& reading, Way way) {
  const Reading<Word> rows_of = with_row(reading, count);
#if defined(__x86_64__)
  if (way == Way::avx512) return most_frequent_avx512(words, count, rows_of);
  if (way == Way::avx2) return most_frequent_avx2(words, count, rows_of);
#endif
  static_cast<void>(way);
  return most_frequent_in(words, count, rows_of);
}

template <typename Value, typename Word>
Differences differences_of(const Word* words, Index count, const Reading<Word>& reading, Way way) {
  const Reading<Word> rows_of = with_row(reading, count);
#if defined(__x86_64__)
  if (way == Way::avx512) return differences_avx512<Value>(words, count, rows_of);
  if (way == Way::avx2) return differences_avx2<Value>(words, count, rows_of);
#endif
  static_cast<void>(way);
  return differences_in<Value>(words, count, rows_of);
}

template <typename Value, typename Word>
bool has_difference(const Word* words, Index count, const Reading<Word>& reading, double above, double below,
                    Way way) {
  const Reading<Word> rows_of = with_row(reading, count);
#if defined(__x86_64__)
  if (way == Way::avx512) return has_difference_avx512<Value>(words, count, rows_of, above, below);
  if (way == Way::avx2) return has_difference_avx2<Value>(words, count, rows_of, above, below);
#endif
  static_cast<void>(way);
  return has_difference_in<Value>(words, count, rows_of, above, below);
}

template Frequent<std::uint32_t> most_frequent(const std::uint32_t*, Index, const Reading<std::uint32_t>&,
                                               Way);
template Frequent<std::uint64_t> most_frequent(const std::uint64_t*, Index, const Reading<std::uint64_t>&,
                                               Way);
template Differences differences_of<float>(const std::uint32_t*, Index, const Reading<std::uint32_t>&, Way);
template Differences differences_of<double>(const std::uint64_t*, Index, const Reading<std::uint64_t>&, Way);
template Differences differences_of<std::uint32_t>(const std::uint32_t*, Index, const Reading<std::uint32_t>&,
                                                   Way);
template bool has_difference<float>(const std::uint32_t*, Index, const Reading<std::uint32_t>&, double,
                                    double, Way);
template bool has_difference<double>(const std::uint64_t*, Index, const Reading<std::uint64_t>&, double,
                                     double, Way);
template bool has_difference<std::uint32_t>(const std::uint32_t*, Index, const Reading<std::uint32_t>&,
                                            double, double, Way);

}  // namespace tailrace::information
