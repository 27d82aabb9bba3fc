// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>

#include "formats/entropy/entropy.hpp"
#include "formats/grib2/sections.hpp"

// The loops of packing that see each value. They are compiled for three kinds of processors, as the loops of
// the entropy coder, and give the same numbers on all of them.
namespace tailrace::grib2 {

/// The numbers of a scaling from which codes are computed.
struct Coding {
  explicit Coding(const Scaling& scaling);
  double factor, reference, divisor;
  int bits;
};

/// The smallest and the largest of some values. They mean nothing unless all values are finite.
struct Range {
  double least = 0;
  double most = 0;
  bool finite = true;
};
/// Local. Returns the range of the values, one or more. `Value` is float or double, here and below. A float
/// gives the same codes as the double of the same value.
template <typename Value>
Range range_of(const Value* values, Index count, entropy::Way way = entropy::best_way());

/// Local. Computes codes in ecCodes' order of operations, because the order decides how they round. `Code` is
/// an unsigned number of 8, 16 or 32 bits that holds every code.
template <typename Value, typename Code>
void compute_codes(const Value* values, Index count, const Coding& coding, Code* codes,
                   entropy::Way way = entropy::best_way());

/// Local. Writes the same codes as octets, the most significant one first, as records have them: simple
/// packing of as many bits as `Code` has. `to` need not be aligned.
template <typename Code, typename Value>
void pack_codes(const Value* values, Index count, const Coding& coding, std::byte* to,
                entropy::Way way = entropy::best_way());

}  // namespace tailrace::grib2
