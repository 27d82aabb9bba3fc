// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <vector>

#include "ground/base/status.hpp"
#include "ground/base/types.hpp"

namespace tailrace::layout {

/// Fills the zero entries of `grid` (empty: all) so that its product is `ranks` and the blocks of an
/// array of `shape` are as close to cubes as the divisors of `ranks` allow: the sum over dimensions of
/// grid[d]/shape[d], which is a block's surface over its volume, is least. Equal choices are decided
/// for more processes along slower dimensions, which keeps contiguous runs long. Deterministic.
[[nodiscard]] Result<std::vector<int>> choose_grid(const std::vector<Index>& shape, int ranks,
                                                   std::vector<int> grid);

/// Ranks in C order over a processor grid: the last coordinate runs fastest.
class ProcessorGrid {
 public:
  explicit ProcessorGrid(std::vector<int> extents);
  [[nodiscard]] const std::vector<int>& extents() const { return extents_; }
  [[nodiscard]] int coordinate(int rank, std::size_t dimension) const {
    return rank / strides_[dimension] % extents_[dimension];
  }
  /// Returns the owner of an element of an array of `shape`. part_of(d, index) tells the coordinate along
  /// dimension d that has `index`.
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
