// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "ground/base/types.hpp"

namespace tailrace {

/// The order of shapes and indices in this process's texts. C's order has the slowest dimension first and
/// counts from 0; the library keeps shapes so. Fortran's order has the fastest dimension first and counts
/// from 1.
enum class Order { c, fortran };
/// Local. Later texts use `order`. Before the first call they use C's.
void tell_in(Order order);
[[nodiscard]] Order told_order();

/// "(2, 3)"; (3, 2) in Fortran's order.
std::string tuple(const std::vector<Index>& numbers);
/// "468 x 378"; 378 x 468 in Fortran's order.
std::string extents(const std::vector<Index>& shape);
/// "dimension 0" of two; dimension 2 in Fortran's order.
std::string dimension_text(std::size_t dimension, std::size_t dimensions);
/// An index from 0, or from 1 in Fortran's order.
Index told_index(Index index);
/// "slowest dimension first", or "fastest dimension first".
const char* order_text();

}  // namespace tailrace
