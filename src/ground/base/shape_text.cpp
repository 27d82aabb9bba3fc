// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/base/shape_text.hpp"

#include <atomic>
#include <string_view>

#include "ground/base/text.hpp"

namespace tailrace {

namespace {

std::atomic<Order> order_of_texts{Order::c};

bool in_fortran() { return order_of_texts == Order::fortran; }

/// Joins `numbers`, which come slowest dimension first, in the order that texts use now.
std::string told(const std::vector<Index>& numbers, std::string_view between) {
  std::string out;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    out += cat(i > 0 ? between : "", numbers[in_fortran() ? numbers.size() - 1 - i : i]);
  return out;
}

}  // namespace

void tell_in(Order order) { order_of_texts = order; }

Order told_order() { return order_of_texts; }

std::string tuple(const std::vector<Index>& numbers) { return cat("(", told(numbers, ", "), ")"); }

std::string extents(const std::vector<Index>& shape) { return told(shape, " x "); }

std::string dimension_text(std::size_t dimension, std::size_t dimensions) {
  return cat("dimension ", in_fortran() ? dimensions - dimension : dimension);
}

Index told_index(Index index) { return in_fortran() ? index + 1 : index; }

const char* order_text() { return in_fortran() ? "fastest dimension first" : "slowest dimension first"; }

}  // namespace tailrace
