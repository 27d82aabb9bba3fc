// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "ground/base/types.hpp"

namespace tailrace {

/// The order in which this process writes shapes and indices in messages. C's order has the slowest dimension
/// first and counts from 0; the library itself keeps shapes so. Fortran's order has the fastest dimension
/// first and counts from 1.
enum class Order { c, fortran };
/// Local. Later texts of this process use `order`. Before the first call they use C's order.
void tell_in(Order order);
[[nodiscard]] Order told_order();

/// Returns "(2, 3)", or "(3, 2)" in Fortran's order.
std::string tuple(const std::vector<Index>& numbers);
/// Returns "468 x 378", or "378 x 468" in Fortran's order.
std::string extents(const std::vector<Index>& shape);
/// Returns the name of a dimension: the first of two is "dimension 0", or "dimension 2" in Fortran's order.
std::string dimension_text(std::size_t dimension, std::size_t dimensions);
/// Returns the index as texts show it: counted from 0, or from 1 in Fortran's order.
Index told_index(Index index);
/// Returns "slowest dimension first", or "fastest dimension first" in Fortran's order.
const char* order_text();

}  // namespace tailrace
