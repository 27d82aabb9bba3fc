// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <optional>
#include <span>

#include "ground/layout/memory.hpp"

namespace tailrace::layout {

/// Elements in packed order where they lie in memory: runs of `run` bytes, which the loops visit in turn.
struct PackedRuns {
  const std::byte* base = nullptr;  // of the first run
  std::span<const Loop> loops{};    // none: there is one run
  Bytes run = 0;
};

/// Returns the owned elements of level `level` of the array at `base`, without copying them: nothing if they
/// are not contiguous along the fastest loop, or need several nests. `map` must outlive the result.
[[nodiscard]] std::optional<PackedRuns> packed_runs(const MemoryMap& map, const std::byte* base, Index level);

/// The elements first <= i < end of a record, and the memory in which they are put together.
struct Stretch {
  Index first = 0, end = 0;
  Bytes element = 1;  // size of one
  Bytes scalar = 1;   // the bytes of each number of this size are reversed; 1: none are
  std::byte* out = nullptr;
};

/// The range of a record in which one rank has its elements: none at all if `end` is 0.
struct Reach {
  Index first = 0, end = 0;
  [[nodiscard]] bool meets(const Stretch& stretch) const {
    return first < stretch.end && stretch.first < end;
  }
};
[[nodiscard]] Reach reach_of(std::span<const Rows> rows);

/// Returns true if place_stretch() takes about as long as copying does: the runs are long.
[[nodiscard]] bool come_in_stretches(std::span<const Rows> rows);
/// Returns how many entries of a rank place_stretch() looks at in a stretch of a record of `elements`, on
/// average. Ranks that do not reach the stretch are left out.
[[nodiscard]] double entries_looked_at(std::span<const Rows> rows, Index elements);

/// Copies what one rank's piece has of a stretch of the record to its places there. Local; no allocation.
void place_stretch(std::span<const Rows> rows, const PackedRuns& piece, const Stretch& stretch);

}  // namespace tailrace::layout
