// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <optional>
#include <span>

#include "ground/layout/memory.hpp"

namespace tailrace::layout {

/// Elements in packed order, at their places in memory: runs of `run` bytes, which the loops visit in turn.
struct PackedRuns {
  const std::byte* base = nullptr;  // address of the first run
  std::span<const Loop> loops{};    // none: there is one run
  Bytes run = 0;
};

/// Returns the places of the owned elements of level `level` of the array at `base`. Copies nothing. Returns
/// nothing if the elements are not contiguous along the fastest loop, or need several nests. `map` must
/// outlive the result.
[[nodiscard]] std::optional<PackedRuns> packed_runs(const MemoryMap& map, const std::byte* base, Index level);

/// The elements first <= i < end of a record, and the memory in which they are put together.
struct Stretch {
  Index first = 0, end = 0;
  Bytes element = 1;  // size of one element in bytes
  Bytes scalar = 1;   // numbers of this size get their bytes reversed; 1: none do
  std::byte* out = nullptr;
};

/// The range of a record in which one rank has elements. If `end` is 0, it has none.
struct Reach {
  Index first = 0, end = 0;
  [[nodiscard]] bool meets(const Stretch& stretch) const {
    return first < stretch.end && stretch.first < end;
  }
};
[[nodiscard]] Reach reach_of(std::span<const Rows> rows);

/// True if all runs are long: place_stretch() then takes about as long as copying does.
[[nodiscard]] bool come_in_stretches(std::span<const Rows> rows);
/// Returns how many of a rank's `rows` place_stretch() looks at for one stretch of a record of `elements`, on
/// average. place_stretch() is not called for ranks that do not reach the stretch.
[[nodiscard]] double entries_looked_at(std::span<const Rows> rows, Index elements);

/// Copies the elements of a stretch that one rank's piece has to their places in the stretch. Local.
/// Allocates nothing.
void place_stretch(std::span<const Rows> rows, const PackedRuns& piece, const Stretch& stretch);

/// Sets those elements of a stretch that `rows` names to `value`, the bytes of one element as the stretch is
/// to have them. Local. Allocates nothing.
void fill_stretch(std::span<const Rows> rows, std::span<const std::byte> value, const Stretch& stretch);

}  // namespace tailrace::layout
