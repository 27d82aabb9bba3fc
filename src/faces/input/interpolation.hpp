// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>

#include "formats/codec/missing.hpp"
#include "ground/base/types.hpp"

namespace tailrace::input {

/// Replaces the float32 nearest to `missing` by `missing` itself, in float64 values that a file holds as
/// float32: the program looks for `missing` itself.
inline void widen_missing(std::span<double> values, double missing) {
  const double narrow = codec::missing_in(ElementType::f32, missing);
  if (narrow == missing || std::isnan(missing)) return;
  for (double& each : values) each = each == narrow ? missing : each;
}

/// Writes `bytes` of values of type T to `out`: the first step's values, or with a second step values between
/// the two, in which the second has `weight`. Rounding never takes a value beyond both, so one that both
/// steps have stays as it is: a field without time is the same at each lead. If `missing` is given, NaN
/// becomes `missing`; with a second step, so does every value for which one of the two is `missing`. Values
/// that a file holds as float32 must have been through widen_missing().
template <typename T>
void interpolate(const std::byte* first, const std::byte* second, double weight, Bytes bytes,
                 const std::optional<double>& missing, std::byte* out) {
  const auto* a = reinterpret_cast<const T*>(first);
  const auto* b = reinterpret_cast<const T*>(second);
  auto* to = reinterpret_cast<T*>(out);
  const T w = static_cast<T>(weight);
  const T rest = static_cast<T>(1 - weight);
  const auto count = bytes / static_cast<Bytes>(sizeof(T));
  // The loops over values have no branch, so that the compiler can turn them into vector operations.
  if (second == nullptr)
    std::copy_n(a, count, to);
  else
    for (Bytes i = 0; i < count; ++i) {
      const T least = std::min(a[i], b[i]), most = std::max(a[i], b[i]);
      to[i] = std::min(std::max(rest * a[i] + w * b[i], least), most);
    }
  if (!missing) return;
  constexpr ElementType type = sizeof(T) == 4 ? ElementType::f32 : ElementType::f64;
  const T value = static_cast<T>(codec::missing_in(type, *missing));
  for (Bytes i = 0; i < count; ++i)
    if (std::isnan(to[i])) to[i] = value;
  // The reader of a raw file cannot turn missing values into NaN: a raw file does not say which value means
  // missing.
  if (second == nullptr) return;
  for (Bytes i = 0; i < count; ++i)
    if (a[i] == value || b[i] == value) to[i] = value;
}

}  // namespace tailrace::input
