// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <optional>
#include <span>

#include "layout/memory.hpp"

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
struct Part {
  Index first = 0, end = 0;
  Bytes element = 1;  // size of one
  Bytes scalar = 1;   // the bytes of each number of this size are reversed; 1: none are
  std::byte* out = nullptr;
};

/// Returns true if place_part() takes about as long as copying does: the rows are few entries of long runs.
[[nodiscard]] bool come_in_parts(std::span<const Rows> rows);

/// Copies what one rank's piece has of a part of the record to its places there. Local; no allocation.
void place_part(std::span<const Rows> rows, const PackedRuns& piece, const Part& part);

}  // namespace tailrace::layout
