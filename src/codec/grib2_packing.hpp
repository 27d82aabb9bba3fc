// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <optional>

#include "codec/grib2_sections.hpp"

// Simple packing (templates 5.0 and 7.0), octet for octet as ecCodes does it, and the choice of scales that
// it shares with CCSDS. Ours because ecCodes needs 5 passes and, for widths that are no whole octets, 20
// times the time.
namespace tailrace::codec::grib2 {

inline constexpr int most_bits = 32;  // the widest code that ecCodes writes in both packings

/// The smallest and the largest value, and whether all are finite (if not, the others mean nothing).
struct Range {
  double least = 0;
  double most = 0;
  bool finite = true;
};
Range range_of(const double* values, Index count);

/// Moves the values that are there to the front of `values`, in order, and returns how many. `bitmap` gets
/// one bit for each of `count` values, most significant first, 1 = there; zero octets if all are there. A NaN
/// `missing` matches NaN.
Index compact(double* values, Index count, double missing, ByteVector& bitmap);

/// The largest float32 that is no denormal and not above `value`: what a reference value can be.
double reference_below(double value);

/// R, E and D for values from `least` to `most` in codes of `bits`, as ecCodes chooses them; none if it
/// cannot.
std::optional<Scaling> scaling_for(const Range& range, int bits);

/// The worst difference between a value and its decoded code, rounding of the decoder included.
double error_of(const Scaling& scaling, const Range& range);

/// The fewest bits (1 to `most_bits`) whose error is at most `accuracy`; none if even the most do not do.
std::optional<Scaling> scaling_within(const Range& range, double accuracy);

/// Octets of `count` codes of `bits`.
Bytes packed_length(Index count, int bits);

/// Appends the codes of all values.
void append_packed(const double* values, Index count, const Scaling& scaling, ByteVector& out);

}  // namespace tailrace::codec::grib2
