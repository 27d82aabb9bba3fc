// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Functions that compare and print the two values of a check.
#pragma once

#include <concepts>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>

namespace tailrace::mpi_test {

template <typename T>
std::string show(const T& value) {
  if constexpr (requires(std::ostream & out) { out << value; }) {
    std::ostringstream out;
    out << value;
    return out.str();
  } else if constexpr (std::is_enum_v<T>) {
    return std::to_string(static_cast<long long>(value));
  } else {
    return "(a value that cannot be printed)";
  }
}

template <typename A, typename B>
bool equal(const A& a, const B& b) {
  if constexpr (std::integral<A> && std::integral<B> && !std::same_as<A, bool> && !std::same_as<B, bool> &&
                !std::same_as<A, char> && !std::same_as<B, char>) {
    return std::cmp_equal(a, b);
  } else {
    return a == b;
  }
}

}  // namespace tailrace::mpi_test
