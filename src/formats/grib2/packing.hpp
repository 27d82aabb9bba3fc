// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <optional>

#include "formats/grib2/sections.hpp"

// Simple packing (templates 5.0 and 7.0), octet for octet as ecCodes does it, and the choice of scales, which
// CCSDS shares. We pack ourselves because ecCodes needs 5 passes and, for widths that are no whole octets, 20
// times the time.
namespace tailrace::grib2 {

inline constexpr int most_bits = 32;  // the widest code that ecCodes writes in both packings

/// The smallest and the largest value, and whether all are finite (if not, the two values mean nothing).
struct Range {
  double least = 0;
  double most = 0;
  bool finite = true;
};
/// `Value` is float or double, here and below: a float counts as the double of the same value.
template <typename Value>
Range range_of(const Value* values, Index count);

/// Moves the values that are there to the front of `values`, in order, and returns how many. `bitmap` gets
/// one bit for each of `count` values, most significant first, 1 = there; zero octets if all are there.
/// `missing` is what the field's type holds of it, by missing_in(). NaN matches NaN.
template <typename Value>
Index compact(Value* values, Index count, double missing, ByteVector& bitmap);

/// Returns the largest float32 that is no denormal and not above `value`: the nearest possible reference
/// value.
double reference_below(double value);

/// Returns R, E and D for values from `least` to `most` in codes of `bits`, as ecCodes chooses them, or
/// nothing if it cannot.
std::optional<Scaling> scaling_for(const Range& range, int bits);

/// Returns the worst difference between a value and its decoded code, including the rounding of the decoder.
double error_of(const Scaling& scaling, const Range& range);

/// Returns a scaling with the fewest bits (1 to `most_bits`) whose error is at most `accuracy`, or nothing if
/// no number of bits suffices.
std::optional<Scaling> scaling_within(const Range& range, double accuracy);

/// Returns the octets of `count` codes of `bits`.
Bytes packed_length(Index count, int bits);

/// Appends the codes of all values.
template <typename Value>
void append_packed(const Value* values, Index count, const Scaling& scaling, ByteVector& out);

/// Returns the octets of a code of `bits` as libaec takes it: 1, 2 or 4.
constexpr int width_of_code(int bits) { return bits <= 8 ? 1 : bits <= 16 ? 2 : 4; }
/// Writes the codes as numbers of width_of_code() octets in this machine's byte order.
template <typename Value>
void write_codes(const Value* values, Index count, const Scaling& scaling, std::byte* to);

}  // namespace tailrace::grib2
