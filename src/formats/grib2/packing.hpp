// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cfloat>
#include <optional>
#include <string_view>

#include "formats/grib2/packing/loops.hpp"

// Simple packing (templates 5.0 and 7.0), with the same octets as from ecCodes, and the choice of scales,
// which CCSDS packing uses too. The reason to do without ecCodes is speed: ecCodes makes 5 passes over the
// values and, for widths that are no whole octets, takes 20 times the time.
namespace tailrace::grib2 {

inline constexpr int most_bits = 32;  // the widest code that ecCodes writes in both packings

/// Removes the missing values: moves all others to the front of `values`, in order, and returns their number.
/// `bitmap` gets one bit for each of `count` values, most significant first: 1 if the value is there, 0 if it
/// is missing. It becomes empty if none is missing. `missing` is the missing value in the field's type, from
/// missing_in(); NaN matches NaN.
template <typename Value>
Index compact(Value* values, Index count, double missing, ByteVector& bitmap);

/// Returns the reference value for a smallest value: the largest float32 that is no denormal and not above
/// `value`.
double reference_below(double value);

/// The numbers that an edition of GRIB has for reference values.
struct References {
  std::string_view type;                      // their name
  double (*below)(double) = reference_below;  // returns the largest of them that is not above a value
  double largest = FLT_MAX;
};
inline constexpr References float32_references{"float32"};

/// Returns the scaling (R, E and D of GRIB) that ecCodes chooses for values in `range` and codes of `bits`,
/// or nothing if the values do not fit.
std::optional<Scaling> scaling_for(const Range& range, int bits,
                                   const References& references = float32_references);

/// Returns the difference between the values of two codes that follow one another.
double step_of(const Scaling& scaling);

/// Returns the largest difference between a value in `range` and its decoded code, including the rounding of
/// a decoder in doubles.
double error_of(const Scaling& scaling, const Range& range);

/// Returns the scaling with the fewest bits (1 to `most_bits`) whose error is at most `accuracy`, or nothing
/// if `most_bits` do not suffice.
std::optional<Scaling> scaling_within(const Range& range, double accuracy,
                                      const References& references = float32_references);

/// Returns the number of octets of `count` codes of `bits`.
Bytes packed_length(Index count, int bits);

/// Appends the codes of all values.
template <typename Value>
void append_packed(const Value* values, Index count, const Scaling& scaling, ByteVector& out);

/// Returns the number of octets in which formats/entropy takes a code of `bits`: 2 or 4.
constexpr int width_of_code(int bits) { return bits <= entropy::most_narrow_bits ? 2 : 4; }
/// Writes the codes as unsigned numbers of 8, 16 or 32 bits.
template <typename Value, typename Code>
void write_codes(const Value* values, Index count, const Scaling& scaling, Code* to);

}  // namespace tailrace::grib2
