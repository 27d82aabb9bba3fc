// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <vector>

#include "layout/memory.hpp"

namespace tailrace::layout {

/// The same visits in the same order with as few loops as possible: loops of one turn go, and a loop
/// whose step is the whole of the next inner one melts into it. At least one loop remains; if nothing but
/// one element is visited it is {1, unit}. No count may be 0.
inline void merge_loops(std::vector<Loop>& loops, Bytes unit) {
  std::vector<Loop> merged;
  for (const Loop& loop : loops) {
    if (loop.count == 1) continue;
    Bytes whole = 0;
    if (!merged.empty() && !__builtin_mul_overflow(loop.count, loop.stride, &whole) &&
        merged.back().stride == whole)
      merged.back() = {merged.back().count * loop.count, loop.stride};
    else
      merged.push_back(loop);
  }
  if (merged.empty()) merged.push_back({1, unit});
  loops = std::move(merged);
}

}  // namespace tailrace::layout
