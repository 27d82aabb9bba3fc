// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cmath>
#include <limits>

#include "ground/base/types.hpp"

namespace tailrace {

/// Returns the number that elements of this type hold where a program means `missing`, the number of
/// missing=. No float32 is 1e20: an array of them has the nearest one, 100000002004087734272. Whatever looks
/// for missing values compares with this number, which a value of the type equals also as a float64. NaN
/// stays NaN.
[[nodiscard]] inline double missing_in(ElementType type, double missing) {
  if (type != ElementType::f32 && type != ElementType::c64) return missing;
  constexpr double most = std::numeric_limits<float>::max();
  // Below this number the largest float32 is the nearest one; beyond it there is none.
  constexpr double beyond = most + most / (1 << 24) / 2;
  const double size = std::abs(missing);
  if (size > most) return size < beyond ? std::copysign(most, missing) : missing;
  return static_cast<double>(static_cast<float>(missing));
}

}  // namespace tailrace
