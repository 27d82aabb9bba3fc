// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/operations/accumulator.hpp"

namespace tailrace::operations {

/// Makes one level of all levels of a field on one rank, each element with its weight. Sums are of float64
/// and grow in the order of the levels. All functions are local.
class WeightedLevels {
 public:
  /// Returns the bytes that the constructor takes.
  static Bytes bytes_of(const Accumulated& what);
  /// `what.operation` is mean or accum, and `what.levels` the number of levels that become one. May throw
  /// std::bad_alloc.
  explicit WeightedLevels(const Accumulated& what);

  /// Joins the levels of the array at `base`, which lies in memory as `map` says. `weights` has one for each
  /// level, or one for each element of each level, in packed order. Elements that are missing or whose weight
  /// is 0 do not count; where none counts a mean is the missing value, or NaN. Returns Code::data, without
  /// the name of the field, if the type cannot hold a value. offending() then returns the number of the first
  /// such element.
  Status join(const layout::MemoryMap& map, const std::byte* base, std::span<const double> weights);
  [[nodiscard]] Index offending() const { return offending_; }
  [[nodiscard]] const std::byte* values() const { return values_.data(); }
  /// Returns the map of values().
  [[nodiscard]] const std::shared_ptr<const layout::MemoryMap>& map() const { return map_; }

 private:
  template <typename T>
  void add_level(std::span<const double> weights);
  template <typename T>
  void finish();

  Accumulated what_;
  ByteVector values_;  // of one level: first as it is put, then the result
  std::vector<double> sums_, totals_;
  std::shared_ptr<const layout::MemoryMap> map_;
  Index offending_ = -1;
};

}  // namespace tailrace::operations
