// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ground/base/status.hpp"
#include "ground/base/types.hpp"

namespace tailrace::layout {

/// `rows` runs of `count` consecutive global elements each; the first run begins at `global`, each
/// further one `stride` elements later (stride >= 1). Global elements are numbered in C order of the global
/// shape. Runs do not touch or overlap: stride > count, unless rows is 1, where stride says nothing.
struct Rows {
  Index global = 0;
  Index count = 0;
  Index stride = 0;
  Index rows = 1;
  friend bool operator==(const Rows&, const Rows&) = default;
};

/// The elements i with lower[d] <= i[d] < upper[d] in each dimension, slowest first. The box is empty if any
/// extent is 0.
struct Box {
  std::vector<Index> lower;
  std::vector<Index> upper;
  friend bool operator==(const Box&, const Box&) = default;
};

/// Tells which rank owns which elements of one global array. A layout is an immutable value, cheap to copy.
/// Every query is local. A regular layout (block, block-cyclic, weighted, replicated) is computed for any
/// rank and holds no table per rank; boxes hold one box per rank; indexed layouts hold the indices that they
/// were given.
///
/// Everything here is in C order: extents, grids, boxes and indices name the slowest dimension first and
/// count from 0. A Fortran face reverses them (and counts from 1), so that Fortran's (x, y) and C's (y, x)
/// are one layout.
///
/// Ranks lie on a processor grid in C order: the last grid coordinate runs fastest. Queries about a rank
/// that does not exist answer "nothing" (0, empty, -1).
///
/// The *packed order* of a rank's elements is the order in which `rows(rank)` names them: for
/// regular layouts and boxes C order of the global indices, for indexed ones the order given.
class Layout {
 public:
  class Rule;  // one implementation per kind, in its own source file

  /// Makes one block for each rank. `shape`: 1 to 7 extents, slowest first, 0 allowed. `grid`: processor
  /// grid, same number of entries; empty or zero entries are chosen so that blocks are as close to cubes as
  /// possible (more processes along longer dimensions; ties go to the slower one); the product must be
  /// `ranks`. Deterministic. The extent n is cut over p as n*i/p .. n*(i+1)/p. This function and the others
  /// that make a layout return Code::layout on errors, naming the dimension, rank or index, expected and got.
  static Result<Layout> block(std::vector<Index> shape, int ranks, std::vector<int> grid = {});
  /// Deals out blocks of `block[d]` elements round-robin along each dimension of `grid`.
  static Result<Layout> block_cyclic(std::vector<Index> shape, int ranks, std::vector<Index> block,
                                     std::vector<int> grid = {});
  /// Cuts the array proportionally to weights: weights[d] has one entry >= 0 per processor coordinate of
  /// dimension d; an entry of 0 owns nothing. The processor grid is the number of entries per dimension.
  static Result<Layout> weighted(std::vector<Index> shape, std::vector<std::vector<double>> weights);
  /// Makes a layout of one box per rank, without halo; empty boxes are allowed. Returns an error if a bound
  /// is outside of the array.
  static Result<Layout> boxes(std::vector<Index> shape, std::vector<Box> boxes);
  /// Takes arbitrary global indices for each rank, if all of them are known here (servers, one-rank programs,
  /// tests). Returns an error if an index is outside of the array.
  static Result<Layout> indexed(std::vector<Index> shape, std::vector<std::vector<Index>> indices);
  /// As indexed(), if only the indices of rank `me` are known. `idle` has, in order, the ranks that own
  /// nothing, of all `ranks`. Ask rows() and count() of `me` only.
  static Result<Layout> indexed_part(std::vector<Index> shape, int me, int ranks, std::vector<Index> indices,
                                     std::vector<int> idle = {});
  /// Every rank holds the whole array; rank 0 is its owner for output (the others count as empty).
  static Result<Layout> replicated(std::vector<Index> shape, int ranks);

  [[nodiscard]] const std::vector<Index>& shape() const;
  [[nodiscard]] int ranks() const;
  /// Returns the number of elements of the global array.
  [[nodiscard]] Index elements() const;
  /// Returns the number of elements that `rank` owns, or 0 if it is not known here (indexed_part of another
  /// rank).
  [[nodiscard]] Index count(int rank) const;
  /// Returns true if `rank` owns any elements.
  [[nodiscard]] bool has_share(int rank) const;
  /// Returns the elements that `rank` owns, in packed order.
  [[nodiscard]] std::vector<Rows> rows(int rank) const;
  /// Returns the rank that owns `global`, or -1 if it is not known here (indexed_part of another rank).
  [[nodiscard]] int owner(Index global) const;
  /// Returns true if the elements of each rank are one box (block, weighted, boxes, replicated, and sections
  /// of any of them). Otherwise box() returns an empty box.
  [[nodiscard]] bool is_box() const;
  [[nodiscard]] Box box(int rank) const;
  /// Returns "block", "block_cyclic", ...
  [[nodiscard]] std::string_view kind() const;

  /// Returns OK if every element is owned exactly once. Otherwise returns Code::layout and names the first
  /// offending global index and the ranks concerned. Takes memory of O(boxes), or a bit for each index given.
  /// An indexed_part passes, because it cannot be checked here: see Directory.
  [[nodiscard]] Status validate() const;

  void pack(Packer& out) const;
  static Result<Layout> unpack(Unpacker& in);

 private:
  explicit Layout(std::shared_ptr<const Rule> rule);
  std::shared_ptr<const Rule> rule_;
};

/// Local. Returns the indices of rank `me` for `indexed_part`, in C order. The callback tells the owner of
/// any index tuple (C order, from 0), and is called once for every element of the array. If an owner is no
/// rank, returns an error that names the element. Directory checks that all ranks have the same callback.
[[nodiscard]] Result<std::vector<Index>> indices_by_callback(
    const std::vector<Index>& shape, int ranks, int me,
    const std::function<int(std::span<const Index>)>& owner_of);

/// The ranks check an indexed layout together, each with memory O(N/P): rank e*P/N (rounded down) watches
/// element e. Each rank sorts its indices to the watchers (`requests`). The caller sends them. Each watcher
/// checks the indices that it received (`check`).
class Directory {
 public:
  Directory(Index elements, int ranks) : elements_(elements), ranks_(ranks) {}
  /// Returns the indices to send to each watcher; a watcher of no index is left out. If an index is out of
  /// range, returns an error that names it and `me`.
  [[nodiscard]] Result<std::map<int, std::vector<Index>>> requests(int me,
                                                                   std::span<const Index> indices) const;
  /// Checks the indices that came to watcher `me`, by the rank that sent them. Returns an error that names
  /// the first gap or overlap, by its index and ranks.
  [[nodiscard]] Status check(int me, const std::map<int, std::vector<Index>>& received) const;

 private:
  Index elements_;
  int ranks_;
};

}  // namespace tailrace::layout
