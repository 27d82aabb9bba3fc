// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/layout/shape.hpp"

#include <algorithm>

#include "ground/base/text.hpp"

namespace tailrace::layout {

Status check_shape(const std::vector<Index>& shape) {
  if (shape.empty() || shape.size() > max_dimensions)
    return layout_error("a global array has 1 to ", max_dimensions, " dimensions, but ", shape.size(),
                        " extents were given");
  Index total = 1;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] < 0)
      return layout_error("extent ", shape[d], " of ", dimension_text(d, shape.size()),
                          " is negative: extents are >= 0");
    if (__builtin_mul_overflow(total, std::max<Index>(shape[d], 1), &total))
      return layout_error("a global array of ", extents(shape),
                          " has more elements than 64-bit numbers count: expected fewer than 2^63");
  }
  return {};
}

Index product(const std::vector<Index>& shape) {
  Index total = 1;
  for (const Index extent : shape) total *= extent;
  return total;
}

std::vector<Index> strides_of(const std::vector<Index>& shape) {
  std::vector<Index> strides(shape.size());
  Index stride = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= shape[d];
  }
  return strides;
}

std::vector<Index> indices_of(Index global, const std::vector<Index>& shape) {
  std::vector<Index> indices(shape.size());
  for (std::size_t d = shape.size(); d-- > 0;) {
    indices[d] = global % shape[d];
    global /= shape[d];
  }
  return indices;
}

std::string element_text(Index global, const std::vector<Index>& shape) {
  std::vector<Index> indices = indices_of(global, shape);
  for (Index& index : indices) index = told_index(index);
  return cat("global element ", told_index(global), ", index ", tuple(indices), " of an array of ",
             extents(shape),
             told_order() == Order::fortran ? " (Fortran's order, from 1)," : " (C order, from 0),");
}

}  // namespace tailrace::layout
