// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/input/share.hpp"

#include <algorithm>

#include "ground/layout/array.hpp"
#include "ground/layout/rows.hpp"
#include "ground/layout/shape.hpp"

namespace tailrace::input {

namespace {

using layout::Box;
using layout::Layout;

/// Returns the rank that owns the part of `rank`: of a replicated array rank 0 owns everything, and every
/// rank gets it.
int holder(const Layout& layout, int rank) { return layout.kind() == "replicated" ? 0 : rank; }

std::vector<Index> extents_of(const Box& box) {
  std::vector<Index> extents(box.lower.size());
  for (std::size_t d = 0; d < extents.size(); ++d) extents[d] = box.upper[d] - box.lower[d];
  return extents;
}

/// Returns the box with its halo, cut at the edges of the global array.
Box with_halo(const Layout& layout, Box box, const std::vector<Index>& halo) {
  if (layout::box_count(box) == 0) return box;
  for (std::size_t d = 0; d < halo.size(); ++d) {
    box.lower[d] -= std::min(halo[d], box.lower[d]);
    box.upper[d] += std::min(halo[d], layout.shape()[d] - box.upper[d]);
  }
  return box;
}

/// Calls take(indices of the first element, length) for each run of elements along the fastest dimension.
template <typename Take>
void for_each_run(const std::vector<layout::Rows>& all, const std::vector<Index>& shape, const Take& take) {
  for (const layout::Rows& rows : all) {
    for (Index row = 0; row < rows.rows; ++row) {
      Index global = rows.global + row * rows.stride;
      for (Index left = rows.count; left > 0;) {
        const std::vector<Index> at = layout::indices_of(global, shape);
        const Index length = std::min(left, shape.back() - at.back());
        take(at, length);
        global += length;
        left -= length;
      }
    }
  }
}

/// Returns the rows with their elements renumbered by their places in the box `cut`.
std::vector<layout::Rows> renumbered(const std::vector<layout::Rows>& rows, const std::vector<Index>& shape,
                                     const Box& cut) {
  const std::vector<Index> strides = layout::strides_of(extents_of(cut));
  layout::RowsBuilder builder;
  for_each_run(rows, shape, [&](const std::vector<Index>& at, Index length) {
    Index number = 0;
    for (std::size_t d = 0; d < at.size(); ++d) number += (at[d] - cut.lower[d]) * strides[d];
    builder.add(number, length);
  });
  return builder.take();
}

/// Adds the memory of a box with its halo. The array has room for the whole halo, also beyond the edges of
/// the global array.
void add_with_halo(const Box& owned, const Box& box, const layout::Array& array, layout::MemoryMap& map) {
  Bytes offset = array.offset;
  std::vector<layout::Loop> loops;
  for (std::size_t d = 0; d < array.strides.size(); ++d) {
    offset -= (owned.lower[d] - box.lower[d]) * array.strides[d];
    loops.push_back({box.upper[d] - box.lower[d], array.strides[d]});
  }
  layout::add_nest(map, offset, std::move(loops));
}

/// Returns where the boxes of a rank with their halos lie in the file's part `cut` and in memory, of one
/// level. Halos of neighbours may name the same elements.
layout::TransferMap boxes_with_halo(const Layout& layout, int rank, const std::vector<layout::Array>& arrays,
                                    const std::vector<Index>& halo, const Box& cut) {
  layout::MemoryMap memory{arrays.front().element, arrays.front().level_stride, {}};
  std::vector<layout::Rows> rows;
  const std::vector<Box> tiles = layout.tiles(rank);
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    Box box = with_halo(layout, tiles[i], halo);
    add_with_halo(tiles[i], box, arrays[i], memory);
    for (std::size_t d = 0; d < box.lower.size(); ++d) {
      box.lower[d] -= cut.lower[d];
      box.upper[d] -= cut.lower[d];
    }
    const std::vector<layout::Rows> own = layout::box_rows(extents_of(cut), box);
    rows.insert(rows.end(), own.begin(), own.end());
  }
  return layout::TransferMap::make(rows, memory);
}

}  // namespace

Box box_of(const Layout& layout, int rank, const std::vector<Index>& halo) {
  rank = holder(layout, rank);
  if (layout.is_box()) return with_halo(layout, layout.box(rank), halo);
  if (layout.is_tiled()) {
    Box all = layout.box(rank);
    for (const Box& tile : layout.tiles(rank)) all = joined(all, with_halo(layout, tile, halo));
    return all;
  }
  Box box{std::vector<Index>(layout.shape().size()), std::vector<Index>(layout.shape().size())};
  bool is_empty = true;
  for_each_run(layout.rows(rank), layout.shape(), [&](const std::vector<Index>& at, Index length) {
    Box run{at, at};
    for (Index& upper : run.upper) ++upper;
    run.upper.back() += length - 1;
    box = is_empty ? run : joined(box, run);
    is_empty = false;
  });
  return box;
}

Box joined(const Box& a, const Box& b) {
  if (layout::box_count(a) == 0) return b;
  if (layout::box_count(b) == 0) return a;
  Box box = a;
  for (std::size_t d = 0; d < box.lower.size(); ++d) {
    box.lower[d] = std::min(box.lower[d], b.lower[d]);
    box.upper[d] = std::max(box.upper[d], b.upper[d]);
  }
  return box;
}

Result<Share> make_share(const Layout& layout, int rank, ElementType type,
                         const layout::Allocation& allocation, const Box& cut) {
  rank = holder(layout, rank);
  const Result<layout::MemoryMap> owned = layout::memory_map(layout, rank, type, allocation);
  TR_TRY(owned.status());
  Share share;
  share.level_stride = owned->level_stride;
  if (layout.count(rank) == 0) return share;
  if (layout.is_tiled() && allocation.nproma == 0) {
    const auto arrays = layout::describe_tiles(layout, rank, type, allocation);
    TR_TRY(arrays.status());
    share.map = boxes_with_halo(layout, rank, *arrays, allocation.halo, cut);
    return share;
  }
  if (!layout.is_box() || allocation.nproma > 0) {
    const std::vector<layout::Rows> rows = renumbered(layout.rows(rank), layout.shape(), cut);
    share.map = layout::TransferMap::make(rows, *owned);
    return share;
  }
  const Result<layout::Array> array = layout::describe_array(layout, rank, type, allocation);
  TR_TRY(array.status());
  share.map = boxes_with_halo(layout, rank, {*array}, allocation.halo, cut);
  return share;
}

}  // namespace tailrace::input
