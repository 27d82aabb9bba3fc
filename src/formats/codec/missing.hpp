// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cmath>
#include <limits>

#include "ground/base/types.hpp"

namespace tailrace::codec {

/// Returns the number by which an array of `type` marks a missing element, if the program marks it by
/// `missing` (the setting missing=). The number can differ: no float32 is 1e20, so an array of float32 holds
/// the nearest one, 100000002004087734272. Compare elements, widened to float64, with this number to find the
/// missing ones. NaN stays NaN.
[[nodiscard]] inline double missing_in(ElementType type, double missing) {
  if (type != ElementType::f32 && type != ElementType::c64) return missing;
  constexpr double most = std::numeric_limits<float>::max();
  // Numbers between `most` and `beyond` round to the largest float32. Numbers from `beyond` on have no
  // float32.
  constexpr double beyond = most + most / (1 << 24) / 2;
  const double size = std::abs(missing);
  if (size > most) return size < beyond ? std::copysign(most, missing) : missing;
  return static_cast<double>(static_cast<float>(missing));
}

}  // namespace tailrace::codec
