// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "formats/codec/codec.hpp"
#include "formats/information/pairs.hpp"

// How many bits of a record's values carry information: the mutual information of the same bit in
// neighbouring values (Kloewer et al. 2021, doi:10.1038/s43588-021-00156-2).
// docs/design/035-precision-by-information.md says what is left out of it.
namespace tailrace::information {

/// A record with fewer pairs of neighbours keeps all bits: their information could not be told from chance.
inline constexpr std::int64_t fewest_pairs = 1000;
/// A record with at most this many different values keeps all bits: they are classes, or flags.
inline constexpr int few_values = 256;

/// Local. Returns the mutual information, in bits, of two bits that are both set in `both` pairs of `count`.
double mutual_information(std::int64_t count, std::int64_t first, std::int64_t second, std::int64_t both);
/// Local. Returns the most information that one in a hundred bits of `count` pairs shows by chance.
double chance_of(std::int64_t count);
/// Local. Returns the information of the `bits` lowest bits, the most significant one first. What may be
/// chance is 0.
std::vector<double> information_of(const Pairs& pairs, int bits);

/// Local. Returns how many bits of their mantissas values keep, 1 at least, so that they keep the share
/// `share` of their information. `missing` is the missing value in the values' type. `row` is the number of
/// values in a row: those of two rows are no neighbours.
codec::KeptBits kept_of(std::span<const float> values, std::optional<float> missing, Index row, double share);
codec::KeptBits kept_of(std::span<const double> values, std::optional<double> missing, Index row,
                        double share);
/// Local. Returns the same of codes of `bits`: unsigned numbers. A code of 0 is left out, as the missing
/// values are, whose codes must be 0, and so is the code `zero` of a value of 0 (0: there is none).
codec::KeptBits kept_of(std::span<const std::uint32_t> codes, int bits, std::uint32_t zero, Index row,
                        double share);

}  // namespace tailrace::information
