// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "ground/base/status.hpp"
#include "ground/base/types.hpp"

namespace tailrace::layout {

/// `rows` runs of `count` consecutive global elements each. The first run begins at element `global`, each
/// further run `stride` elements later (stride >= 1). Global elements are numbered in C order of the global
/// shape. Runs do not touch or overlap: stride > count. If `rows` is 1, `stride` has no meaning.
struct Rows {
  Index global = 0;
  Index count = 0;
  Index stride = 0;
  Index rows = 1;
  friend bool operator==(const Rows&, const Rows&) = default;
};

/// The elements i with lower[d] <= i[d] < upper[d] in each dimension, slowest dimension first. The box is
/// empty if any extent is 0.
struct Box {
  std::vector<Index> lower;
  std::vector<Index> upper;
  friend bool operator==(const Box&, const Box&) = default;
};

/// Tells which rank owns which elements of one global array. A layout is an immutable value, cheap to copy.
/// Every query is local. A regular layout (block, block-cyclic, weighted, replicated) computes the answer for
/// any rank and holds no table for each rank. Boxes hold one box for each rank, tiles the boxes of all ranks.
/// Indexed layouts hold the indices that they were given.
///
/// Everything here is in C order: extents, grids, boxes and indices name the slowest dimension first and
/// count from 0. The Fortran face reverses them (Fortran counts from 1), so that Fortran's (x, y) and C's (y,
/// x) are one layout.
///
/// Ranks lie on a processor grid in C order: the last grid coordinate runs fastest. A query about a rank that
/// does not exist answers "nothing" (0, empty, -1).
///
/// The *packed order* of a rank's elements is the order in which `rows(rank)` names them. For regular layouts
/// and boxes it is the C order of the global indices, for tiles that of one box after another, for indexed
/// layouts the order in which the indices were given.
class Layout {
 public:
  class Rule;  // one implementation for each kind, in its own source file

  /// Makes one block for each rank. `shape`: 1 to 7 extents, slowest first; 0 is allowed. `grid`: the
  /// processor grid, one entry for each dimension; the product must be `ranks`. If `grid` is empty, or for
  /// its zero entries, the numbers of processes are chosen so that blocks are as close to cubes as possible:
  /// more processes along longer dimensions, and of equal choices more along the slower one. Deterministic.
  /// Part i of p of an extent n is n*i/p .. n*(i+1)/p. All functions that make a layout return Code::layout
  /// on errors and name the dimension, rank or index, what was expected and what was given.
  static Result<Layout> block(std::vector<Index> shape, int ranks, std::vector<int> grid = {});
  /// Deals out blocks of `block[d]` elements in turn to the processes along each dimension of `grid`.
  static Result<Layout> block_cyclic(std::vector<Index> shape, int ranks, std::vector<Index> block,
                                     std::vector<int> grid = {});
  /// Cuts each dimension in proportion to weights. weights[d] has one entry >= 0 for each processor
  /// coordinate of dimension d; a coordinate with weight 0 owns nothing. The number of weights in each
  /// dimension is the processor grid.
  static Result<Layout> weighted(std::vector<Index> shape, std::vector<std::vector<double>> weights);
  /// Makes a layout of one box for each rank, without halo. Boxes may be empty. A bound outside of the array
  /// is an error.
  static Result<Layout> boxes(std::vector<Index> shape, std::vector<Box> boxes);
  /// Makes a layout in which `tiles[r]` are the boxes of rank r, none or several of them. Empty boxes count
  /// as none. With `unowned`, elements may lie in no box. A bound outside of the array is an error.
  static Result<Layout> tiles(std::vector<Index> shape, std::vector<std::vector<Box>> tiles, bool unowned);
  /// Takes a list of global indices for each rank, where this process knows the lists of all ranks (servers,
  /// programs of one rank, tests). An index outside of the array is an error.
  static Result<Layout> indexed(std::vector<Index> shape, std::vector<std::vector<Index>> indices);
  /// As indexed(), but this process knows only the indices of rank `me`. `idle` names, in ascending order,
  /// those of the `ranks` ranks that own nothing. Only the rows() and count() of `me` are known.
  static Result<Layout> indexed_part(std::vector<Index> shape, int me, int ranks, std::vector<Index> indices,
                                     std::vector<int> idle = {});
  /// Makes a layout in which every rank holds the whole array. Rank 0 counts as its owner for output, the
  /// other ranks as owning nothing.
  static Result<Layout> replicated(std::vector<Index> shape, int ranks);

  [[nodiscard]] const std::vector<Index>& shape() const;
  [[nodiscard]] int ranks() const;
  /// Returns the number of elements of the global array.
  [[nodiscard]] Index elements() const;
  /// Returns the number of elements that `rank` owns, or 0 if this process does not know it (indexed_part,
  /// another rank).
  [[nodiscard]] Index count(int rank) const;
  /// True if `rank` owns any elements.
  [[nodiscard]] bool has_share(int rank) const;
  /// Returns the elements that `rank` owns, in packed order.
  [[nodiscard]] std::vector<Rows> rows(int rank) const;
  /// Returns the rank that owns element `global`, or -1 if this process does not know it (indexed_part,
  /// another rank).
  [[nodiscard]] int owner(Index global) const;
  /// True if the elements of each rank are one box (block, weighted, boxes, replicated, and sections of any
  /// of them). Otherwise box() returns an empty box.
  [[nodiscard]] bool is_box() const;
  [[nodiscard]] Box box(int rank) const;
  /// True if the elements of each rank are any number of boxes (tiles, and their sections).
  [[nodiscard]] bool is_tiled() const;
  /// Returns the boxes of `rank` in packed order: of a tiled layout its tiles, of others box(rank).
  [[nodiscard]] std::vector<Box> tiles(int rank) const;
  /// Returns the elements that no rank owns (tiles with `unowned`, and their sections), in any order.
  [[nodiscard]] std::vector<Rows> unowned() const;
  [[nodiscard]] bool has_unowned() const;
  /// Returns "block", "block_cyclic", ...
  [[nodiscard]] std::string_view kind() const;

  /// Returns OK if exactly one rank owns each element; of tiles with `unowned` at most one. Otherwise returns
  /// Code::layout and names the first wrong global index and the ranks concerned. Takes memory of O(boxes),
  /// or one bit for each index given. An indexed_part always passes, because one rank cannot check it alone:
  /// see Directory.
  [[nodiscard]] Status validate() const;

  void pack(Packer& out) const;
  static Result<Layout> unpack(Unpacker& in);

 private:
  explicit Layout(std::shared_ptr<const Rule> rule);
  std::shared_ptr<const Rule> rule_;
};

/// Local. Returns the indices of rank `me` for `indexed_part`, in C order. Calls `owner_of` once for every
/// element of the array, with its index tuple (C order, from 0); it returns the element's owner. An owner
/// that is no rank is an error that names the element. Directory checks that all ranks have the same
/// callback.
[[nodiscard]] Result<std::vector<Index>> indices_by_callback(
    const std::vector<Index>& shape, int ranks, int me,
    const std::function<int(std::span<const Index>)>& owner_of);

/// With this class all ranks check an indexed layout together, each with memory O(N/P): rank e*P/N (rounded
/// down) watches element e. Each rank sorts its indices by their watchers (`requests`), and the caller sends
/// them. Each watcher then checks the indices that it received (`check`).
class Directory {
 public:
  Directory(Index elements, int ranks) : elements_(elements), ranks_(ranks) {}
  /// Returns the indices to send to each watcher, without watchers that get none. An index out of range is an
  /// error that names the index and `me`.
  [[nodiscard]] Result<std::map<int, std::vector<Index>>> requests(int me,
                                                                   std::span<const Index> indices) const;
  /// Checks the indices that watcher `me` received; the keys are the ranks that sent them. The error names
  /// the first gap or overlap by its index and ranks.
  [[nodiscard]] Status check(int me, const std::map<int, std::vector<Index>>& received) const;

 private:
  Index elements_;
  int ranks_;
};

}  // namespace tailrace::layout
