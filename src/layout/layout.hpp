// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "base/types.hpp"

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

/// lower[d] <= i[d] < upper[d] in each dimension, slowest first; empty if any extent is 0.
struct Box {
  std::vector<Index> lower;
  std::vector<Index> upper;
  friend bool operator==(const Box&, const Box&) = default;
};

/// Who owns which elements of one global array. An immutable value, cheap to copy; every query is
/// local. A regular layout (block, block-cyclic, weighted, replicated) is computed for any rank and
/// holds no table per rank; boxes hold one box per rank; indexed layouts hold what they were given.
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

  /// `shape`: 1 to 7 extents, slowest first, 0 allowed. `grid`: processor grid, same number of entries; empty
  /// or zero entries are chosen so that blocks are as close to cubes as possible (more processes along longer
  /// dimensions; ties go to the slower one); the product must be `ranks`. Deterministic.
  /// The extent n is cut over p as n*i/p .. n*(i+1)/p.
  /// Errors of all of these: Code::layout, naming the dimension, rank or index, expected and got.
  static Result<Layout> block(std::vector<Index> shape, int ranks, std::vector<int> grid = {});
  /// Blocks of `block[d]` elements dealt out round-robin along each dimension of `grid`.
  static Result<Layout> block_cyclic(std::vector<Index> shape, int ranks, std::vector<Index> block,
                                     std::vector<int> grid = {});
  /// Cut proportionally to weights: weights[d] has one entry >= 0 per processor coordinate of dimension d; an
  /// entry of 0 owns nothing. The processor grid is the number of entries per dimension.
  static Result<Layout> weighted(std::vector<Index> shape, std::vector<std::vector<double>> weights);
  /// One box per rank, without halo; empty boxes are allowed. Bounds outside of the array are an error here.
  static Result<Layout> boxes(std::vector<Index> shape, std::vector<Box> boxes);
  /// Arbitrary global indices per rank, all of them known here (servers, one-rank programs, tests).
  /// An index outside of the array is an error here.
  static Result<Layout> indexed(std::vector<Index> shape, std::vector<std::vector<Index>> indices);
  /// The same where only rank `me`'s indices are known, and which of the `ranks` have none: `idle`, in their
  /// order. rows() and count() may be asked of `me` only.
  static Result<Layout> indexed_part(std::vector<Index> shape, int me, int ranks, std::vector<Index> indices,
                                     std::vector<int> idle = {});
  /// Every rank holds the whole array; rank 0 is its owner for output (the others count as empty).
  static Result<Layout> replicated(std::vector<Index> shape, int ranks);

  [[nodiscard]] const std::vector<Index>& shape() const;
  [[nodiscard]] int ranks() const;
  /// Number of elements of the global array.
  [[nodiscard]] Index elements() const;
  /// Number of elements that `rank` owns; 0 if that is not known here (indexed_part of another rank).
  [[nodiscard]] Index count(int rank) const;
  /// Whether `rank` owns any elements.
  [[nodiscard]] bool has_share(int rank) const;
  /// What `rank` owns, in packed order.
  [[nodiscard]] std::vector<Rows> rows(int rank) const;
  /// The rank that owns `global`; -1 if not known here (indexed_part of another rank).
  [[nodiscard]] int owner(Index global) const;
  /// True if what each rank owns is one box (block, weighted, boxes, replicated, sections of these); then
  /// `box` may be asked. Otherwise `box` is empty.
  [[nodiscard]] bool is_box() const;
  [[nodiscard]] Box box(int rank) const;
  /// "block", "block_cyclic", ...
  [[nodiscard]] std::string_view kind() const;

  /// Every element owned exactly once; otherwise Code::layout naming the first offending global index and the
  /// ranks concerned. Memory O(boxes), or a bit per index given. indexed_part cannot be checked here and
  /// passes: see Directory.
  [[nodiscard]] Status validate() const;

  void pack(Packer& out) const;
  static Result<Layout> unpack(Unpacker& in);

 private:
  explicit Layout(std::shared_ptr<const Rule> rule);
  std::shared_ptr<const Rule> rule_;
};

/// What rank `me` owns by a callback that tells the owner of any index tuple (C order, from 0): the indices
/// for `indexed_part`, in C order. Local; asks for every element of the array once. An owner that is no rank
/// is an error naming the element; that all ranks have the same callback is for Directory to check.
[[nodiscard]] Result<std::vector<Index>> indices_by_callback(
    const std::vector<Index>& shape, int ranks, int me,
    const std::function<int(std::span<const Index>)>& owner_of);

/// The distributed check of an indexed layout with memory O(N/P): element e is watched by rank
/// e*P/N (rounded down). Each rank sorts its indices to the watchers (`requests`), sends them, and each
/// watcher checks what it received (`check`). Sending is the caller's.
class Directory {
 public:
  Directory(Index elements, int ranks) : elements_(elements), ranks_(ranks) {}
  /// The indices to send to each watcher of some of them. An index out of range is an error naming it and
  /// `me`.
  [[nodiscard]] Result<std::map<int, std::vector<Index>>> requests(int me,
                                                                   std::span<const Index> indices) const;
  /// What came from each rank that sent watcher `me` anything. First gap or overlap as an error naming index
  /// and ranks.
  [[nodiscard]] Status check(int me, const std::map<int, std::vector<Index>>& received) const;

 private:
  Index elements_;
  int ranks_;
};

}  // namespace tailrace::layout
