// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <vector>

#include "ground/layout/layout.hpp"

namespace tailrace::layout {

/// Turns a sequence of contiguous runs into as few `Rows` as one pass can, and keeps their order. Runs that
/// touch become one run. Runs of equal length at equal, increasing distances become one entry.
class RowsBuilder {
 public:
  void add(Index global, Index count);
  [[nodiscard]] std::vector<Rows> take();

 private:
  void flush();

  std::vector<Rows> rows_;
  Index begin_ = 0;  // the run that may still grow; empty if count_ is 0
  Index count_ = 0;
};

/// Returns the rows of a box, `lower` inclusive to `upper` exclusive, in C order.
std::vector<Rows> box_rows(const std::vector<Index>& shape, const Box& box);
/// Returns the number of elements in a box.
Index box_count(const Box& box);

/// Do the same for boxes one after another.
std::vector<Rows> tiles_rows(const std::vector<Index>& shape, const std::vector<Box>& tiles);
Index tiles_count(const std::vector<Box>& tiles);

/// Moves `at` to the next index tuple in C order within `extents`. Returns false once all were visited.
bool advance(std::vector<Index>& at, const std::vector<Index>& extents);

}  // namespace tailrace::layout
