// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "ground/base/shape_text.hpp"
#include "ground/base/status.hpp"
#include "ground/base/text.hpp"
#include "ground/base/types.hpp"

namespace tailrace::layout {

using tailrace::extents;
using tailrace::tuple;

/// The most dimensions of an array: Fortran's limit until Fortran 2003, and the library's.
inline constexpr std::size_t max_dimensions = 7;

/// 128 bits, for the product of two 64-bit numbers that is divided again at once.
__extension__ typedef __int128 Wide;

/// Returns Code::layout with the parts joined as its text.
template <typename... Parts>
[[nodiscard]] Status layout_error(const Parts&... parts) {
  return {Code::layout, cat(parts...)};
}

/// Returns OK if there are 1 to 7 extents, none negative, and their product (zero extents counted as 1) fits
/// into 64 bits.
[[nodiscard]] Status check_shape(const std::vector<Index>& shape);
/// Returns the product of the extents of a checked shape.
Index product(const std::vector<Index>& shape);
/// Returns the distance of neighbours along each dimension, in elements, for a checked shape in C order.
std::vector<Index> strides_of(const std::vector<Index>& shape);
/// Returns the index tuple of element `global`.
std::vector<Index> indices_of(Index global, const std::vector<Index>& shape);

/// Returns "global element 17, index (2, 3) of an array of 4 x 6 (C order, from 0),", in Fortran's order if
/// texts use it.
std::string element_text(Index global, const std::vector<Index>& shape);

}  // namespace tailrace::layout
