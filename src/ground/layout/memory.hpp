// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ground/base/status.hpp"
#include "ground/base/types.hpp"
#include "ground/layout/layout.hpp"

namespace tailrace::layout {

/// One level of a loop nest over memory.
struct Loop {
  Index count = 0;
  Bytes stride = 0;
};

/// A loop nest over memory: slowest loop first, starting `offset` bytes after the array's base.
/// At least one loop, at most 8; no count is 0.
struct Nest {
  Bytes offset = 0;
  std::vector<Loop> loops;
};

/// Where a rank's owned elements of ONE level lie in its memory, in packed order, and how far apart
/// levels are. Built once at definition; `pack` then runs without decisions.
struct MemoryMap {
  Bytes element = 0;        // size of one element in bytes
  Bytes level_stride = 0;   // from level l to level l+1 of the same element; 0 without a level dimension
  std::vector<Nest> nests;  // one, but NPROMA's short last block is a second, and sections of indexed layouts
                            // have more; none if nothing is owned
  [[nodiscard]] Index count() const;  // elements of one level
};

/// The shape of the caller's array in memory. Extents and strides are in C order (slowest first); a Fortran
/// array (x,y,lev) is described as {lev,y,x}: the Fortran face reverses extents, halo and strides, and turns
/// position p of the level dimension among n into n-1-p.
struct Allocation {
  std::vector<Index> halo;  // per layout dimension, elements on each side; empty = none
  int level_axis = 0;  // position of the level dimension in C order; ndims = fastest; -1 = no level dimension
  Index levels = 1;
  Index nproma =
      0;  // > 0: owned elements are numbered in packed order and lie in blocks (block, lev, nproma)
  std::vector<Bytes>
      strides;  // optional explicit byte strides per array dimension (C order, level axis included)
};

/// Local. Returns where the elements that `rank` owns under `layout` lie in an array allocated as
/// `allocation` says. Box layouts: the array has extents (owned + 2*halo), with the level dimension put in at
/// `level_axis`. Other layouts: the array is one-dimensional over the owned elements in packed order, halo
/// must be empty and level_axis is 0, 1 or -1. NPROMA, under any layout: the array is (block, lev, nproma) in
/// C order, which is Fortran's (nproma, lev, block); the last block may be short. `level_axis` then only
/// tells whether there is a level dimension (-1: none): other orders of the three are described by `strides`.
/// Explicit strides may be negative: the base then is the element with all indices 0, as in numpy. Errors:
/// Code::layout, naming what does not fit.
[[nodiscard]] Result<MemoryMap> memory_map(const Layout& layout, int rank, ElementType type,
                                           const Allocation& allocation);

/// Which of the two shapes a caller's local array has: its extents (C order, level axis included) are
/// either the owned ones or owned + 2*halo; anything else is Code::layout telling expected and got. The
/// result is `allocation` with halo set accordingly. A field of one level may leave the level dimension out
/// (level_axis becomes -1). A rank that owns nothing may have an array of any extents: it is never touched.
[[nodiscard]] Result<Allocation> match_extents(const Layout& layout, int rank, Allocation allocation,
                                               std::span<const Index> extents);

/// Copies the owned elements of level `level` from the array at `base` into `out`, in packed order.
/// Local; no allocation. Innermost contiguous loops are memcpy'd.
void pack(const MemoryMap& map, const std::byte* base, Index level, std::byte* out);
/// Packs the same bytes, but writes long runs past the caches, because another core or process reads them
/// later. A release store afterwards publishes them.
void pack_past_caches(const MemoryMap& map, const std::byte* base, Index level, std::byte* out);

/// Elements selected by start:stop:stride in each dimension, in global indices (stop exclusive, stride >= 1).
struct Section {
  std::vector<Index> start, stop, stride;
  [[nodiscard]] Result<std::vector<Index>> shape() const;  // extents; error names the bad dimension
};

/// The part of `layout` inside `section`, as a layout over the section's own shape (element numbering of the
/// section; nothing is tabulated per rank), and for `rank` the memory map of just those elements in the array
/// that `memory_map(layout, ...)` describes.
[[nodiscard]] Result<Layout> section_layout(const Layout& layout, const Section& section);
[[nodiscard]] Result<MemoryMap> section_map(const Layout& layout, int rank, ElementType type,
                                            const Allocation& allocation, const Section& section);

/// Copies one rank's packed piece into its places in a whole record: out[rows] = piece.
/// Local; no allocation. `element` is 1, 2, 4, 8 or 16 bytes.
void place_rows(std::span<const Rows> rows, const std::byte* piece, Bytes element, std::byte* record);
/// The same, with the bytes of each number of `scalar` bytes reversed.
void place_rows_reversed(std::span<const Rows> rows, const std::byte* piece, Bytes element, Bytes scalar,
                         std::byte* record);
/// The same into a float64 record, from pieces of any real type.
void place_rows_as_f64(std::span<const Rows> rows, const std::byte* piece, ElementType type, double* record);

}  // namespace tailrace::layout
