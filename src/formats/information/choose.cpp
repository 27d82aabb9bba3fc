// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/information/choose.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

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

bool varies(const Pairs& pairs, int bit) {
  const auto at = static_cast<std::size_t>(bit);
  return pairs.first[at] + pairs.second[at] > 0 && pairs.first[at] + pairs.second[at] < 2 * pairs.count;
}

/// Returns the number of leading bits that carry real information: all before the first that carries none,
/// or behind which it rises again. Bits that are the same in all values do not count. Sign and exponent,
/// the first `leading` bits, may carry none.
int end_of_real(const Pairs& pairs, const std::vector<double>& all, int leading, int bits) {
  std::vector<int> moving;
  for (int i = leading; i < bits; ++i)
    if (varies(pairs, static_cast<int>(all.size()) - 1 - i)) moving.push_back(i);
  const double chance = chance_of(pairs.count);
  double most = 0;
  for (std::size_t k = 0; k < moving.size(); ++k) {
    const double here = all[static_cast<std::size_t>(moving[k])];
    const bool is_last = k + 1 == moving.size();
    const double next = is_last ? 0 : all[static_cast<std::size_t>(moving[k + 1])];
    if (here == 0 && (most > 0 || next == 0)) return moving[k];
    most = std::max(most, here);
    // Information that has fallen to less than a hundredth is that of earlier rounding where it grows.
    if (here < most / 100 && next > 1.5 * here && next > here + chance) return moving[k] + 1;
  }
  return bits;
}

/// Returns how many leading bits hold the share of the information of the first `end`.
Kept leading_bits(const std::vector<double>& all, int end, double share) {
  double total = 0;
  for (int i = 0; i < end; ++i) total += all[static_cast<std::size_t>(i)];
  double sum = 0;
  int kept = 0;
  while (kept < end && (kept == 0 || sum < share * total)) sum += all[static_cast<std::size_t>(kept++)];
  return {kept, total > 0 ? sum / total : 0, false};
}

/// Returns true if the words have at most few_values different values.
template <typename Word>
bool has_few(std::span<const Word> words, const Reading<Word>& reading) {
  constexpr std::size_t slots = 1024;
  std::array<Word, slots> found{};
  int different = 0;
  Word before = 0;
  for (const Word word : words) {
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

/// Values that are multiples of a step have neighbours with equal values. Bits below the step only tell which
/// multiple it is.
bool may_have_a_step(const Pairs& pairs) { return pairs.equal * 100 >= pairs.count; }
/// A step of less than so many bits above the last one is the resolution of the type.
constexpr int least_step_bits = 3;

/// Calls `take` with both values of each pair.
template <typename Value, typename Word, typename Take>
void for_each_pair(std::span<const Value> values, const Reading<Word>& reading, Take take) {
  for (std::size_t i = 0; i + 1 < values.size(); ++i) {
    const bool is_end = (static_cast<Index>(i) + 1) % reading.row == 0;
    if (!is_end && reading.is_value(std::bit_cast<Word>(values[i])) &&
        reading.is_value(std::bit_cast<Word>(values[i + 1])))
      take(values[i], values[i + 1]);
  }
}

/// Returns how many bits of the mantissa tell all neighbours apart, up to `mantissa`.
template <typename Real, typename Word>
int mantissa_of_step(std::span<const Real> values, const Reading<Word>& reading, int mantissa) {
  double step = std::numeric_limits<double>::infinity(), largest = 0;
  for_each_pair(values, reading, [&](Real one, Real other) {
    const double difference = std::fabs(static_cast<double>(one) - static_cast<double>(other));
    if (difference > 0) step = std::min(step, difference);
    largest = std::max({largest, std::fabs(static_cast<double>(one)), std::fabs(static_cast<double>(other))});
  });
  if (!std::isfinite(step)) return mantissa;
  int bits = 0;
  while (bits < mantissa && std::ldexp(1.0, std::ilogb(largest) - bits) > step) ++bits;
  return bits <= mantissa - least_step_bits ? bits : mantissa;
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
  const Pairs pairs = count_pairs(words.data(), std::ssize(words), reading);
  if (pairs.count < fewest_pairs || has_few(words, reading)) return Kept::all(Bits::mantissa);
  const std::vector<double> all = information_of(pairs, Bits::all);
  constexpr int leading = Bits::all - Bits::mantissa;
  int most = Bits::mantissa;
  if (may_have_a_step(pairs)) most = mantissa_of_step(values, reading, most);
  Kept kept = leading_bits(all, end_of_real(pairs, all, leading, leading + most), share);
  if (kept.information == 0) return Kept::all(Bits::mantissa);
  kept.bits = std::max(kept.bits - leading, 1);
  return kept;
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

Kept kept_of(std::span<const std::uint32_t> codes, int bits, Index row, double share) {
  Reading<std::uint32_t> reading;
  reading.row = std::max<Index>(row, 1);
  const Pairs pairs = count_pairs(codes.data(), std::ssize(codes), reading);
  if (pairs.count < fewest_pairs || has_few(codes, reading)) return Kept::all(bits);
  int most = bits;
  if (may_have_a_step(pairs)) {
    std::uint32_t step = ~0U;
    for_each_pair(codes, reading, [&](std::uint32_t one, std::uint32_t other) {
      const std::uint32_t difference = one > other ? one - other : other - one;
      if (difference > 0) step = std::min(step, difference);
    });
    const int below = std::bit_width(step) - 1;
    if (below >= least_step_bits) most = std::max(bits - below, 1);
  }
  const std::vector<double> all = information_of(pairs, bits);
  const Kept kept = leading_bits(all, end_of_real(pairs, all, 0, most), share);
  return kept.information == 0 ? Kept::all(bits) : kept;
}

}  // namespace tailrace::information
