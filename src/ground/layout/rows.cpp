// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/layout/rows.hpp"

#include <utility>

#include "ground/layout/array.hpp"
#include "ground/layout/shape.hpp"

namespace tailrace::layout {

void RowsBuilder::add(Index global, Index count) {
  if (count <= 0) return;
  if (count_ > 0 && begin_ + count_ == global) {
    count_ += count;
    return;
  }
  flush();
  begin_ = global;
  count_ = count;
}

void RowsBuilder::flush() {
  if (count_ == 0) return;
  if (!rows_.empty() && rows_.back().count == count_) {
    Rows& last = rows_.back();
    const Index distance = begin_ - (last.global + (last.rows - 1) * last.stride);
    if (distance > 0 && (last.rows == 1 || last.stride == distance)) {
      last.stride = distance;
      ++last.rows;
      count_ = 0;
      return;
    }
  }
  rows_.push_back({begin_, count_, count_, 1});
  count_ = 0;
}

std::vector<Rows> RowsBuilder::take() {
  flush();
  return std::exchange(rows_, {});
}

Index box_count(const Box& box) {
  Index count = 1;
  for (std::size_t d = 0; d < box.lower.size(); ++d) count *= box.upper[d] - box.lower[d];
  return count;
}

std::vector<Rows> tiles_rows(const std::vector<Index>& shape, const std::vector<Box>& tiles) {
  std::vector<Rows> all;
  for (const Box& tile : tiles) {
    const std::vector<Rows> rows = box_rows(shape, tile);
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

Index tiles_count(const std::vector<Box>& tiles) {
  Index count = 0;
  for (const Box& tile : tiles) count += box_count(tile);
  return count;
}

bool advance(std::vector<Index>& at, const std::vector<Index>& extents) {
  for (std::size_t d = at.size(); d-- > 0;) {
    if (++at[d] < extents[d]) return true;
    at[d] = 0;
  }
  return false;
}

std::vector<Rows> box_rows(const std::vector<Index>& shape, const Box& box) {
  if (box_count(box) == 0) return {};
  const std::vector<Index> strides = strides_of(shape);
  Index first = 0;
  std::vector<Loop> loops(shape.size());
  for (std::size_t d = 0; d < shape.size(); ++d) {
    loops[d] = {box.upper[d] - box.lower[d], strides[d]};
    first += box.lower[d] * strides[d];
  }
  merge_loops(loops, 1);
  Rows rows{first, 1, 1, 1};
  if (loops.back().stride == 1) {
    rows.count = rows.stride = loops.back().count;
    loops.pop_back();
  }
  if (!loops.empty()) {
    rows.rows = loops.back().count;
    rows.stride = loops.back().stride;
    loops.pop_back();
  }
  std::vector<Index> at(loops.size(), 0), outer(loops.size());
  for (std::size_t d = 0; d < loops.size(); ++d) outer[d] = loops[d].count;
  std::vector<Rows> all;
  do {
    all.push_back(rows);
    all.back().global = first;
    for (std::size_t d = 0; d < loops.size(); ++d) all.back().global += at[d] * loops[d].stride;
  } while (advance(at, outer));
  return all;
}

}  // namespace tailrace::layout
