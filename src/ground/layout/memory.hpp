// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <span>
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

/// A loop nest over memory, slowest loop first. It begins `offset` bytes after the array's base. It has 1 to
/// 8 loops, and no count is 0.
struct Nest {
  Bytes offset = 0;
  std::vector<Loop> loops;
};

/// The places in memory of the elements that a rank owns: those of one level, in packed order, and the
/// distance between levels. Made once, at definition, so that `pack` has nothing to decide.
struct MemoryMap {
  Bytes element = 0;       // size of one element in bytes
  Bytes level_stride = 0;  // bytes from a level to the next; 0 without a level dimension
  /// Usually one. The short last block of NPROMA is a second nest; sections of indexed layouts have more.
  /// None if the rank owns nothing.
  std::vector<Nest> nests;
  [[nodiscard]] Index count() const;  // number of elements of one level
};

/// The shape of the caller's array in memory. Extents and strides are in C order (slowest first). A Fortran
/// array (x,y,lev) is described as {lev,y,x}: the Fortran face reverses extents, halo and strides, and turns
/// position p of the level dimension among n dimensions into n-1-p.
struct Allocation {
  std::vector<Index> halo;  // elements on each side, for each layout dimension; empty = none
  /// Position of the level dimension in C order; ndims = fastest, -1 = no level dimension.
  int level_axis = 0;
  Index levels = 1;
  /// If > 0: the owned elements, in packed order, lie in blocks of this length: (block, lev, nproma).
  Index nproma = 0;
  /// Optional: the stride in bytes of each array dimension (C order, level dimension included).
  std::vector<Bytes> strides;
};

/// Local. Returns where the elements that `rank` owns under `layout` lie in an array allocated as
/// `allocation` says.
///
/// Layouts of boxes: the array has extents (owned + 2*halo), with the level dimension inserted at
/// `level_axis`. Other layouts: the array has one dimension, the owned elements in packed order; `halo` must
/// be empty and `level_axis` is 0, 1 or -1.
///
/// Tiled layouts: the tiles lie one after another, each with extents (owned + 2*halo). `level_axis` counts
/// the dimensions (tile, then those of the layout), of which the level dimension is one more: 0 is slowest,
/// before the tiles; 1 has the levels of a tile together; ndims + 1 is fastest. Between the slowest and the
/// fastest, and with a stride for each of these dimensions, the tiles must have equal extents. With one
/// stride, or one and the level's, the strides are those of a list of elements.
///
/// With NPROMA, under any layout: the array is (block, lev, nproma) in C order, which is Fortran's (nproma,
/// lev, block); the last block may be short. `level_axis` then only tells whether there is a level dimension
/// (-1: none). A different order of the three dimensions is described by `strides`.
///
/// Strides may be negative: the base is then the element with all indices 0, as in numpy. Errors:
/// Code::layout, naming what does not fit.
[[nodiscard]] Result<MemoryMap> memory_map(const Layout& layout, int rank, ElementType type,
                                           const Allocation& allocation);

/// Finds out whether the caller's array has a halo. Its extents (C order, level dimension included; tiles of
/// equal extents as one more dimension, or all tiles as a list of elements) are the owned ones, or owned +
/// 2*halo; other extents give Code::layout with expected and got. Returns `allocation` with the halo set
/// accordingly. A field of one level may leave the level dimension out (`level_axis` becomes -1). If the rank
/// owns nothing, any extents will do, because the array is never touched.
[[nodiscard]] Result<Allocation> match_extents(const Layout& layout, int rank, Allocation allocation,
                                               std::span<const Index> extents);

/// Copies the owned elements of level `level` from the array at `base` into `out`, in packed order. Local.
/// Allocates nothing. Contiguous inner loops are copied by memcpy.
void pack(const MemoryMap& map, const std::byte* base, Index level, std::byte* out);
/// Packs the same bytes as pack(), but writes long runs past the caches, because another core or process will
/// read them later. A release store afterwards publishes them.
void pack_past_caches(const MemoryMap& map, const std::byte* base, Index level, std::byte* out);

/// The elements start:stop:stride of each dimension, in global indices (stop exclusive, stride >= 1).
struct Section {
  std::vector<Index> start, stop, stride;
  [[nodiscard]] Result<std::vector<Index>> shape() const;  // extents; an error names the bad dimension
  friend bool operator==(const Section&, const Section&) = default;
};

/// section_layout() returns the part of `layout` inside `section`, as a layout that numbers the elements by
/// the section's own shape; it keeps no table for each rank. section_map() returns where these elements of
/// `rank` lie in the array that `memory_map(layout, ...)` describes.
[[nodiscard]] Result<Layout> section_layout(const Layout& layout, const Section& section);
[[nodiscard]] Result<MemoryMap> section_map(const Layout& layout, int rank, ElementType type,
                                            const Allocation& allocation, const Section& section);
/// Returns the numbers that `indices`, elements of an array of `shape`, have in the section, without those
/// that it leaves out: what indexed_part() takes for the section of a layout of which each rank knows its own
/// part. An error as from section_layout().
[[nodiscard]] Result<std::vector<Index>> section_indices(const std::vector<Index>& shape,
                                                         const Section& section,
                                                         std::span<const Index> indices);

/// Copies one rank's packed piece to its places in a whole record: record[rows] = piece. Local. Allocates
/// nothing. `element`: the size of an element, 1, 2, 4, 8 or 16 bytes.
void place_rows(std::span<const Rows> rows, const std::byte* piece, Bytes element, std::byte* record);
/// Sets the elements that `rows` names to `value`, the bytes of one element, in a whole record.
void fill_rows(std::span<const Rows> rows, std::span<const std::byte> value, std::byte* record);
/// As place_rows(), and reverses the bytes of each number of `scalar` bytes.
void place_rows_reversed(std::span<const Rows> rows, const std::byte* piece, Bytes element, Bytes scalar,
                         std::byte* record);
/// As place_rows(), but into a record of float64, from a piece of any real type.
void place_rows_as_f64(std::span<const Rows> rows, const std::byte* piece, ElementType type, double* record);

}  // namespace tailrace::layout
