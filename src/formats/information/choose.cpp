// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/information/choose.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "formats/information/neighbours.hpp"

namespace tailrace::information {

namespace {

using Kept = codec::KeptBits;

/// Returns the logarithm to the base 2 of a positive number. It uses nothing but additions, multiplications
/// and divisions, which round alike everywhere, as the functions of C libraries do not.
double log_2(double x) {
  int exponent = 0;
  double m = std::frexp(x, &exponent);
  if (m < 0.70710678118654752) {
    m *= 2;
    --exponent;
  }
  const double s = (m - 1) / (m + 1), square = s * s;
  double sum = 0;
  for (int k = 25; k >= 1; k -= 2) sum = sum * square + 1.0 / k;  // the series of the inverse tanh
  constexpr double two_over_ln_2 = 2.8853900817779268;
  return exponent + s * sum * two_over_ln_2;
}

/// Returns the share of one of the four cases in the mutual information of two bits.
double part(double count, double cases, double first, double second) {
  return cases > 0 ? cases / count * log_2(count * cases / (first * second)) : 0;
}

/// A record whose bits all carry less than this keeps them all: in 1000 pairs chance gives as much to none of
/// 100,000 bits.
constexpr double least_telling = 0.02;

double sum_of(const std::vector<double>& all, int begin, int end) {
  double sum = 0;
  for (int i = begin; i < end; ++i) sum += all[static_cast<std::size_t>(i)];
  return sum;
}

/// Returns true if 1 in 8 values at least has the bit, and 1 in 8 lacks it. Few values, as peaks, tell
/// nothing of how information falls off.
bool is_common(const Pairs& pairs, int bit) {
  const auto at = static_cast<std::size_t>(bit);
  const std::int64_t set = pairs.first[at] + pairs.second[at], all = 2 * pairs.count;
  return 8 * std::min(set, all - set) >= all;
}

/// Returns the number of leading bits of `bits` that carry real information: all before the first that
/// carries none, or behind which it rises again. Bits that are not common do not count. Sign and exponent,
/// the first `leading` bits, may carry none.
int first_gap(const Pairs& pairs, const std::vector<double>& all, int leading, int bits) {
  std::vector<int> common;
  for (int i = leading; i < bits; ++i)
    if (is_common(pairs, static_cast<int>(all.size()) - 1 - i)) common.push_back(i);
  const double chance = chance_of(pairs.count);
  double most = 0;
  for (std::size_t k = 0; k < common.size(); ++k) {
    const double here = all[static_cast<std::size_t>(common[k])];
    const bool is_last = k + 1 == common.size();
    const double next = is_last ? 0 : all[static_cast<std::size_t>(common[k + 1])];
    if (here == 0 && (most > 0 || next == 0)) return common[k];
    most = std::max(most, here);
    // Information that has fallen to less than a hundredth is that of earlier rounding where it grows.
    if (here < most / 100 && next > 1.5 * here && next > here + chance) return common[k] + 1;
  }
  return bits;
}

/// Traces of earlier rounding are small. More than a quarter of the information is real, gap or not.
int end_of_real(const Pairs& pairs, const std::vector<double>& all, int leading, int bits) {
  const int end = first_gap(pairs, all, leading, bits);
  return sum_of(all, end, bits) * 4 > sum_of(all, 0, bits) ? bits : end;
}

/// Returns how many of `bits` values keep, behind the first `leading`. Those behind the first `most` are
/// below a step of the values.
Kept leading_bits(const Pairs& pairs, int bits, int leading, int most, double share) {
  const std::vector<double> all = information_of(pairs, bits);
  const int end = share < 1 ? end_of_real(pairs, all, leading, most) : bits;
  if (*std::max_element(all.begin(), all.begin() + end) < least_telling) return Kept::all(bits - leading);
  const double total = sum_of(all, 0, end);
  double sum = 0;
  int kept = 0;
  while (kept < end && sum < share * total) sum += all[static_cast<std::size_t>(kept++)];
  return {std::max(kept - leading, 1), sum / total, false, sum_of(all, end, bits) / sum_of(all, 0, bits)};
}

/// Returns true if the values have at most few_values different ones.
template <typename Value, typename Word>
bool has_few(std::span<const Value> values, const Reading<Word>& reading) {
  constexpr std::size_t slots = 1024;
  std::array<Word, slots> found{};
  int different = 0;
  Word before = 0;
  for (const Value value : values) {
    const Word word = std::bit_cast<Word>(value);
    if (word == before || !reading.is_value(word)) continue;
    before = word;
    std::size_t at = static_cast<std::size_t>((std::uint64_t{word} * 0x9e3779b97f4a7c15U) >> 54);
    while (found[at] != 0 && found[at] != word) at = (at + 1) % slots;
    if (found[at] == word) continue;
    found[at] = word;
    if (++different > few_values) return false;
  }
  return true;
}

/// Equal neighbours have all bits in common, so that each seems to carry information. They are a frequent
/// value, or the values are multiples of a step.
bool has_equal_neighbours(const Pairs& pairs) { return pairs.equal * 100 >= pairs.count; }

/// Returns the word that most pairs of equal values consist of, or 0 if these are less than a quarter of such
/// pairs, or a hundredth of all.
template <typename Word>
Word frequent_word(std::span<const Word> words, const Reading<Word>& reading, const Pairs& pairs) {
  const Frequent<Word> most = most_frequent(words.data(), std::ssize(words), reading);
  return most.count * 4 >= pairs.equal && most.count * 100 >= pairs.count ? most.word : 0;
}

/// Counts the pairs of values that are not among the most frequent ones, which it adds to `reading`.
template <typename Word>
Pairs count_rare_pairs(std::span<const Word> words, Reading<Word>& reading) {
  const auto count = [&] { return count_pairs(words.data(), std::ssize(words), reading); };
  Pairs pairs = count();
  for (Word& frequent : reading.frequent) {
    if (pairs.count == 0 || !has_equal_neighbours(pairs)) break;
    frequent = frequent_word(words, reading, pairs);
    if (frequent == 0) break;
    pairs = count();
  }
  return pairs;
}

/// A step of less than so many bits above the last one is the resolution of the type.
constexpr int least_step_bits = 3;

/// Returns true if differences are multiples of the smallest one: then none lies between 4/3 and 5/3 of it.
/// Other ones are off by a unit of the last bit, of which a step has 8.
template <typename Value, typename Word>
bool are_multiples(std::span<const Word> words, const Reading<Word>& reading, double step) {
  return !has_difference<Value>(words.data(), std::ssize(words), reading, step * (4.0 / 3), step * (5.0 / 3));
}

/// Returns how many bits of the mantissa tell multiples of the smallest difference apart, up to `mantissa`.
int mantissa_of(const Differences& differences, int mantissa) {
  if (!std::isfinite(differences.smallest)) return mantissa;
  int bits = 0;
  while (bits < mantissa &&
         std::ldexp(1.0, std::ilogb(differences.largest_value) - bits) > differences.smallest)
    ++bits;
  return bits <= mantissa - least_step_bits ? bits : mantissa;
}

/// Returns how many bits of the mantissa tell the values apart if they are multiples of a step, otherwise
/// `mantissa`.
template <typename Real, typename Word>
int mantissa_of_step(std::span<const Word> words, const Reading<Word>& reading, int mantissa) {
  const Differences differences = differences_of<Real>(words.data(), std::ssize(words), reading);
  const int bits = mantissa_of(differences, mantissa);
  return bits < mantissa && are_multiples<Real>(words, reading, differences.smallest) ? bits : mantissa;
}

/// Returns how many of `bits` tell codes apart if they are multiples of a step, otherwise `bits`.
int bits_of_step(std::span<const std::uint32_t> codes, const Reading<std::uint32_t>& reading, int bits) {
  const double step = differences_of<std::uint32_t>(codes.data(), std::ssize(codes), reading).smallest;
  const int below = std::isfinite(step) ? std::ilogb(step) : 0;
  if (below < least_step_bits || !are_multiples<std::uint32_t>(codes, reading, step)) return bits;
  return std::max(bits - below, 1);
}

/// The number of bits of a type of real numbers.
template <typename Real>
struct BitsOf {
  using Word = std::conditional_t<sizeof(Real) == 4, std::uint32_t, std::uint64_t>;
  static constexpr int all = 8 * static_cast<int>(sizeof(Real));
  static constexpr int mantissa = std::numeric_limits<Real>::digits - 1;
};

template <typename Real>
Kept kept_of_reals(std::span<const Real> values, std::optional<Real> missing, Index row, double share) {
  using Bits = BitsOf<Real>;
  using Word = typename Bits::Word;
  Reading<Word> reading;
  reading.mask = ~Word{0} >> 1;
  reading.limit = std::bit_cast<Word>(std::numeric_limits<Real>::max());
  if (missing) reading.missing = std::bit_cast<Word>(*missing);
  reading.row = std::max<Index>(row, 1);
  const std::span<const Word> words(reinterpret_cast<const Word*>(values.data()), values.size());
  const Pairs pairs = count_rare_pairs(words, reading);
  if (pairs.count < fewest_pairs || has_few(values, reading)) return Kept::all(Bits::mantissa);
  constexpr int leading = Bits::all - Bits::mantissa;
  int most = Bits::mantissa;
  if (has_equal_neighbours(pairs)) most = mantissa_of_step<Real>(words, reading, most);
  return leading_bits(pairs, Bits::all, leading, leading + most, share);
}

}  // namespace

double mutual_information(std::int64_t count, std::int64_t first, std::int64_t second, std::int64_t both) {
  const auto n = static_cast<double>(count), one = static_cast<double>(first),
             other = static_cast<double>(second), two = static_cast<double>(both);
  const double sum = part(n, two, one, other) + part(n, one - two, one, n - other) +
                     part(n, other - two, n - one, other) +
                     part(n, n - one - other + two, n - one, n - other);
  return std::max(sum, 0.0);
}

double chance_of(std::int64_t count) {
  constexpr double z = 2.5758293035489004;  // 99 % of a normal distribution lie within
  const double p = 0.5 + z / (2 * std::sqrt(static_cast<double>(count)));
  return p < 1 ? 1 + p * log_2(p) + (1 - p) * log_2(1 - p) : 1;
}

std::vector<double> information_of(const Pairs& pairs, int bits) {
  const double chance = chance_of(pairs.count);
  std::vector<double> all;
  for (int bit = bits - 1; bit >= 0; --bit) {
    const auto at = static_cast<std::size_t>(bit);
    const double here = mutual_information(pairs.count, pairs.first[at], pairs.second[at], pairs.both[at]);
    all.push_back(here > chance ? here : 0);
  }
  return all;
}

Kept kept_of(std::span<const float> values, std::optional<float> missing, Index row, double share) {
  return kept_of_reals(values, missing, row, share);
}

Kept kept_of(std::span<const double> values, std::optional<double> missing, Index row, double share) {
  return kept_of_reals(values, missing, row, share);
}

Kept kept_of(std::span<const std::uint32_t> codes, int bits, std::uint32_t zero, Index row, double share) {
  Reading<std::uint32_t> reading;
  reading.missing = zero;
  reading.row = std::max<Index>(row, 1);
  const Pairs pairs = count_rare_pairs(codes, reading);
  if (pairs.count < fewest_pairs || has_few(codes, reading)) return Kept::all(bits);
  const int most = has_equal_neighbours(pairs) ? bits_of_step(codes, reading, bits) : bits;
  return leading_bits(pairs, bits, 0, most, share);
}

}  // namespace tailrace::information
