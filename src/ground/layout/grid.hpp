// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <vector>

#include "ground/base/status.hpp"
#include "ground/base/types.hpp"

namespace tailrace::layout {

/// Fills the zero entries of `grid` so that the product is `ranks`. An empty grid counts as all zeros. Blocks
/// of an array of `shape` become as close to cubes as the divisors of `ranks` allow: the sum of
/// grid[d]/shape[d], which is the surface of a block over its volume, is least. If several choices are equal,
/// the one with more processes along slower dimensions is taken, which keeps contiguous runs long.
/// Deterministic.
[[nodiscard]] Result<std::vector<int>> choose_grid(const std::vector<Index>& shape, int ranks,
                                                   std::vector<int> grid);

/// Places ranks on a processor grid in C order: the last coordinate runs fastest.
class ProcessorGrid {
 public:
  explicit ProcessorGrid(std::vector<int> extents);
  [[nodiscard]] const std::vector<int>& extents() const { return extents_; }
  [[nodiscard]] int coordinate(int rank, std::size_t dimension) const {
    return rank / strides_[dimension] % extents_[dimension];
  }
  /// Returns the rank that owns element `global` of an array of `shape`. part_of(d, index) returns the
  /// coordinate along dimension d whose ranks have `index`.
  template <typename PartOf>
  [[nodiscard]] int owner(Index global, const std::vector<Index>& shape, const PartOf& part_of) const {
    int rank = 0;
    for (std::size_t d = shape.size(); d-- > 0; global /= shape[d])
      rank += strides_[d] * part_of(d, global % shape[d]);
    return rank;
  }

 private:
  std::vector<int> extents_;
  std::vector<int> strides_;
};

}  // namespace tailrace::layout
