// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <limits>
#include <span>
#include <vector>

#include "formats/cf/found.hpp"
#include "ground/base/bytes.hpp"
#include "ground/base/types.hpp"

namespace tailrace::cf {

/// How the elements of a variable become values: which of them stand for "no value", and scale and offset of
/// the others (CF conventions, 2.5.1 and 8.1).
struct Unpacking {
  Number type = Number::none;
  double scale = 1;
  double offset = 0;
  bool is_scaled = false;
  std::vector<ByteVector> missing;  // elements of the type, of the host's byte order
  /// Elements beyond these are missing, too. They are compared as they lie in the file, or as they become.
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool limits_are_unpacked = false;

  /// Returns true if the values are exactly float32 in the file.
  [[nodiscard]] bool is_float32() const { return type == Number::float32 && !is_scaled; }
};

/// Reads the attributes of a variable. Returns Code::format if one of them is no number where one must be.
/// `has_default_fill`: elements that were never written hold the fill value of the NetCDF library.
Result<Unpacking> unpacking_of(const FoundVariable& variable, bool has_default_fill);

/// Reads those attributes of a coordinate, likewise. Limits do not count: a coordinate has them for people.
Result<Unpacking> unpacking_of_coordinate(const FoundVariable& variable, bool has_default_fill);

/// Makes values of all elements of a coordinate, which are given as they lie in the file. Missing ones become
/// NaN.
void unpack_coordinate(const Unpacking& how, std::span<double> elements);

/// Stores `count` values as `to` (f32 or f64). The elements are of the host's byte order, each `stride`
/// elements behind the one before. Missing values become NaN. Returns their number, with those that are NaN
/// in the file.
Index unpack(const Unpacking& how, const std::byte* elements, Index stride, Index count, ElementType to,
             std::byte* values);

}  // namespace tailrace::cf
