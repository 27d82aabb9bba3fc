// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "formats/cf/found.hpp"
#include "ground/base/bytes.hpp"
#include "ground/base/types.hpp"

namespace tailrace::cf {

/// How the elements of a variable become values: the elements that stand for "no value", and scale and offset
/// of all others (CF conventions, 2.5.1 and 8.1).
struct Unpacking {
  Number type = Number::none;
  double scale = 1;
  double offset = 0;
  bool is_scaled = false;
  std::vector<ByteVector> missing;  // elements of the type, in the host's byte order
  /// Elements beyond these limits are missing, too. With `limits_are_unpacked` the limits hold for values,
  /// otherwise for elements as the file has them.
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool limits_are_unpacked = false;
  Bytes text_bytes = 0;  // > 0: the elements are texts of so many bytes, and `type` is none

  /// Returns true if the values are float32 in the file, and not scaled.
  [[nodiscard]] bool is_float32() const { return type == Number::float32 && !is_scaled; }
  /// Returns the size of an element as the file has it.
  [[nodiscard]] Bytes element_bytes() const { return text_bytes > 0 ? text_bytes : size_of(type); }
  /// Returns the size of what a byte order concerns.
  [[nodiscard]] Bytes scalar_bytes() const { return text_bytes > 0 ? 1 : size_of(type); }
  /// Returns the type of the values if they are integers in the file, and not scaled, or texts.
  [[nodiscard]] std::optional<ElementType> exact_type() const;
};

/// Reads the unpacking from the attributes of a variable. With `has_default_fill`, elements that were never
/// written hold the default fill value of the NetCDF library. Returns Code::format if an attribute must be a
/// number and is none.
Result<Unpacking> unpacking_of(const FoundVariable& variable, bool has_default_fill);

/// Does the same for a coordinate. Ignores its limits, which only inform people.
Result<Unpacking> unpacking_of_coordinate(const FoundVariable& variable, bool has_default_fill);

/// Turns the elements of a coordinate, as the file has them, into values in place. Missing elements become
/// NaN.
void unpack_coordinate(const Unpacking& how, std::span<double> elements);

/// Turns `count` elements into values of the type `to`. The elements are in the host's byte order, each
/// `stride` elements behind the one before. Missing values become NaN in float32 and float64. Types of
/// integers take only integers of a type that they have all values of, and a missing value leaves what
/// stands in `values`. Types of texts take only texts, up to their own length, and have zeros behind them.
/// Returns the number of all missing values.
Index unpack(const Unpacking& how, const std::byte* elements, Index stride, Index count, ElementType to,
             std::byte* values);

}  // namespace tailrace::cf
