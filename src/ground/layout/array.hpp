// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <span>
#include <vector>

#include "ground/layout/memory.hpp"

namespace tailrace::layout {

/// A caller's array with the level dimension taken out.
struct Array {
  Bytes element = 0;
  /// Offset of the first owned element, past the halo.
  Bytes offset = 0;
  /// Layouts of boxes: one for each dimension. NPROMA: block, position. Otherwise: position.
  std::vector<Bytes> strides;
  Bytes level_stride = 0;
  Index nproma = 0;
};

[[nodiscard]] Result<Array> describe_array(const Layout& layout, int rank, ElementType type,
                                           const Allocation& allocation);
/// Returns the array of each tile of `rank`, for tiled layouts without NPROMA. All have one level_stride.
[[nodiscard]] Result<std::vector<Array>> describe_tiles(const Layout& layout, int rank, ElementType type,
                                                        const Allocation& allocation);

/// Replaces `loops` by as few loops as possible that visit the same places in the same order. A loop of one
/// turn is dropped. A loop whose step equals the whole range of the next inner loop is joined with it. At
/// least one loop remains: {1, unit} if only one element is visited. No count may be 0.
void merge_loops(std::vector<Loop>& loops, Bytes unit);
/// Adds a nest with its loops merged. Adds nothing if a loop has a count of 0.
void add_nest(MemoryMap& map, Bytes offset, std::vector<Loop> loops);

inline Index turns_of(std::span<const Loop> loops) {
  Index turns = 1;
  for (const Loop& loop : loops) turns *= loop.count;
  return turns;
}

/// The contiguous runs of a nest: the loops that visit the runs, and the length of each run in bytes.
struct Runs {
  std::span<const Loop> loops;
  Bytes length = 0;
};

inline Runs runs_of(const Nest& nest, Bytes element) {
  const std::span<const Loop> loops(nest.loops);
  if (loops.back().stride != element) return {loops, element};
  return {loops.first(loops.size() - 1), loops.back().count * element};
}

}  // namespace tailrace::layout
