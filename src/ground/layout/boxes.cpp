// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <algorithm>
#include <limits>
#include <mutex>
#include <numeric>
#include <optional>

#include "ground/base/text.hpp"
#include "ground/layout/rule.hpp"

namespace tailrace::layout {
namespace {

/// Finds the first element, in C order, that is not in exactly one box, or, with `gaps`, the first that is in
/// two boxes; then it notes the boxes of elements that are in none. Takes memory proportional to the
/// number of boxes. Sweeps along each dimension from one box edge to the next: between two edges the set of
/// boxes does not change, so that the first plane stands for all planes up to the next edge.
class CoverSweep {
 public:
  CoverSweep(const std::vector<Index>& shape, const std::vector<Box>& boxes, std::vector<Box>* gaps = nullptr)
      : shape_(shape), boxes_(boxes), gaps_(gaps), at_(shape.size(), 0), until_(shape) {}

  /// True if there is such an element. `at` and `holders` then tell its index and the numbers of the boxes
  /// that hold it.
  bool find() {
    std::vector<int> all;
    for (std::size_t r = 0; r < boxes_.size(); ++r)
      if (box_count(boxes_[r]) > 0) all.push_back(static_cast<int>(r));
    return find_from(0, std::move(all));
  }
  [[nodiscard]] const std::vector<Index>& at() const { return at_; }
  [[nodiscard]] const std::vector<int>& holders() const { return holders_; }

 private:
  [[nodiscard]] Index lower(int rank, std::size_t d) const {
    return boxes_[static_cast<std::size_t>(rank)].lower[d];
  }
  [[nodiscard]] Index upper(int rank, std::size_t d) const {
    return boxes_[static_cast<std::size_t>(rank)].upper[d];
  }

  bool find_from(std::size_t d, std::vector<int> active) {
    std::sort(active.begin(), active.end(), [&](int a, int b) { return lower(a, d) < lower(b, d); });
    std::vector<int> open;
    std::size_t next = 0;
    for (Index position = 0; position < shape_[d];) {
      std::erase_if(open, [&](int rank) { return upper(rank, d) <= position; });
      while (next < active.size() && lower(active[next], d) == position) open.push_back(active[next++]);
      at_[d] = position;
      until_[d] = next < active.size() ? lower(active[next], d) : shape_[d];
      for (const int rank : open) until_[d] = std::min(until_[d], upper(rank, d));
      if (is_wrong(d, open)) return true;
      position = until_[d];
    }
    at_[d] = 0;
    until_[d] = shape_[d];
    return false;
  }

  bool is_wrong(std::size_t d, const std::vector<int>& open) {
    if (!open.empty() && d + 1 < shape_.size()) return find_from(d + 1, open);
    if (open.size() == 1) return false;
    if (open.empty() && gaps_ != nullptr) {
      gaps_->push_back({at_, until_});
      return false;
    }
    std::fill(at_.begin() + static_cast<std::ptrdiff_t>(d) + 1, at_.end(), 0);
    holders_ = open;
    std::sort(holders_.begin(), holders_.end());
    return true;
  }

  const std::vector<Index>& shape_;
  const std::vector<Box>& boxes_;
  std::vector<Box>* gaps_;
  std::vector<Index> at_, until_;  // the corners of the box that stands for itself
  std::vector<int> holders_;
};

Index global_of(const std::vector<Index>& at, const std::vector<Index>& shape) {
  Index global = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) global = global * shape[d] + at[d];
  return global;
}

/// Finds the box that holds an element.
class BoxSearch {
 public:
  explicit BoxSearch(const std::vector<Box>& boxes) : order_(boxes.size()) {
    std::iota(order_.begin(), order_.end(), 0);
    std::erase_if(order_, [&](int i) { return box_count(at(boxes, i)) == 0; });
    std::stable_sort(order_.begin(), order_.end(),
                     [&](int a, int b) { return at(boxes, a).lower[0] < at(boxes, b).lower[0]; });
    Index reach = 0;
    for (const int i : order_) reach_.push_back(reach = std::max(reach, at(boxes, i).upper[0]));
  }
  /// Returns the number of the box, or -1. `boxes` are those that the constructor got.
  [[nodiscard]] int find(const std::vector<Box>& boxes, const std::vector<Index>& index) const {
    const auto after = std::upper_bound(order_.begin(), order_.end(), index[0],
                                        [&](Index first, int i) { return first < at(boxes, i).lower[0]; });
    for (auto i = static_cast<std::size_t>(after - order_.begin()); i-- > 0 && reach_[i] > index[0];)
      if (holds(at(boxes, order_[i]), index)) return order_[i];
    return -1;
  }

 private:
  [[nodiscard]] static const Box& at(const std::vector<Box>& boxes, int i) {
    return boxes[static_cast<std::size_t>(i)];
  }
  [[nodiscard]] static bool holds(const Box& box, const std::vector<Index>& at) {
    for (std::size_t d = 0; d < at.size(); ++d)
      if (at[d] < box.lower[d] || at[d] >= box.upper[d]) return false;
    return true;
  }

  std::vector<int> order_;    // boxes with elements, by lower[0]
  std::vector<Index> reach_;  // the largest upper[0] of order_[0..i]: a search stops there
};

void append_corners(const Box& box, std::vector<Index>& corners) {
  corners.insert(corners.end(), box.lower.begin(), box.lower.end());
  corners.insert(corners.end(), box.upper.begin(), box.upper.end());
}

class BoxesRule final : public BoxRule {
 public:
  BoxesRule(std::vector<Index> shape, std::vector<Box> boxes)
      : BoxRule(std::move(shape), static_cast<int>(boxes.size())),
        boxes_(std::move(boxes)),
        search_(boxes_) {}

  [[nodiscard]] std::string_view name() const override { return "boxes"; }
  [[nodiscard]] Box box(int rank) const override { return of(rank); }
  [[nodiscard]] int owner(Index global) const override {
    return search_.find(boxes_, indices_of(global, shape()));
  }
  [[nodiscard]] Status validate() const override;
  void pack(Packer& out) const override {
    std::vector<Index> corners;
    for (const Box& box : boxes_) append_corners(box, corners);
    out.put(Kind::boxes).put_list<Index>(shape()).put_list<Index>(corners);
  }

 private:
  [[nodiscard]] const Box& of(int rank) const { return boxes_[static_cast<std::size_t>(rank)]; }

  std::vector<Box> boxes_;
  BoxSearch search_;
};

Status BoxesRule::validate() const {
  if (elements() == 0) return {};
  CoverSweep sweep(shape(), boxes_);
  if (!sweep.find()) return {};
  const Index global = global_of(sweep.at(), shape());
  if (sweep.holders().empty())
    return layout_error(element_text(global, shape()), " is in no rank's box (ranks 0 to ", ranks() - 1,
                        "): the boxes must cover the whole array");
  return layout_error(element_text(global, shape()), " is in the boxes of both rank ", sweep.holders()[0],
                      " and rank ", sweep.holders()[1], ": give each element to one rank, without halo");
}

/// The boxes of all ranks, one rank after another. Empty ones are left out.
class TilesRule final : public Layout::Rule {
 public:
  TilesRule(std::vector<Index> shape, std::vector<std::vector<Box>> tiles, bool unowned)
      : Rule(std::move(shape), static_cast<int>(tiles.size())), may_lack_(unowned) {
    first_.push_back(0);
    for (auto& of_rank : tiles) {
      for (Box& tile : of_rank)
        if (box_count(tile) > 0) boxes_.push_back(std::move(tile));
      first_.push_back(boxes_.size());
    }
    search_.emplace(boxes_);
    if (may_lack_) has_unowned_ = tiles_count(boxes_) < elements();
  }

  [[nodiscard]] std::string_view name() const override { return "tiles"; }
  [[nodiscard]] bool is_tiled() const override { return true; }
  [[nodiscard]] std::vector<Box> tiles(int rank) const override {
    const auto at = static_cast<std::size_t>(rank);
    return {boxes_.begin() + static_cast<std::ptrdiff_t>(first_[at]),
            boxes_.begin() + static_cast<std::ptrdiff_t>(first_[at + 1])};
  }
  [[nodiscard]] Index count(int rank) const override { return tiles_count(tiles(rank)); }
  [[nodiscard]] std::vector<Rows> rows(int rank) const override { return tiles_rows(shape(), tiles(rank)); }
  [[nodiscard]] int owner(Index global) const override {
    const int box = search_->find(boxes_, indices_of(global, shape()));
    return box < 0 ? -1 : rank_of(box);
  }
  [[nodiscard]] bool has_unowned() const override { return has_unowned_; }
  [[nodiscard]] std::vector<Box> unowned() const override {
    std::call_once(gaps_once_, [this] {
      if (has_unowned_) CoverSweep(shape(), boxes_, &gaps_).find();
    });
    return gaps_;
  }
  [[nodiscard]] Status validate() const override;
  void pack(Packer& out) const override {
    std::vector<Index> counts, corners;
    for (std::size_t r = 0; r + 1 < first_.size(); ++r)
      counts.push_back(static_cast<Index>(first_[r + 1] - first_[r]));
    for (const Box& box : boxes_) append_corners(box, corners);
    out.put(Kind::tiles).put_list<Index>(shape()).put(may_lack_).put_list<Index>(counts);
    out.put_list<Index>(corners);
  }

 private:
  [[nodiscard]] int rank_of(int box) const {
    const auto after = std::upper_bound(first_.begin(), first_.end(), static_cast<std::size_t>(box));
    return static_cast<int>(after - first_.begin()) - 1;
  }

  std::vector<Box> boxes_;
  std::vector<std::size_t> first_;  // by rank: its first box; one entry more at the end
  bool may_lack_;
  bool has_unowned_ = false;
  std::optional<BoxSearch> search_;
  // The boxes of elements without owner. Found when somebody first asks: programs that only read never do.
  mutable std::once_flag gaps_once_;
  mutable std::vector<Box> gaps_;
};

Status TilesRule::validate() const {
  if (elements() == 0) return {};
  std::vector<Box> gaps;
  CoverSweep sweep(shape(), boxes_, may_lack_ ? &gaps : nullptr);
  if (!sweep.find()) return {};
  const std::string element = element_text(global_of(sweep.at(), shape()), shape());
  if (sweep.holders().empty())
    return layout_error(element, " is in no rank's boxes (ranks 0 to ", ranks() - 1,
                        "): the boxes must cover the whole array; to leave elements without owner, as land, "
                        "set unowned");
  const int one = rank_of(sweep.holders()[0]), other = rank_of(sweep.holders()[1]);
  const std::string whose =
      one == other ? cat("two boxes of rank ", one) : cat("boxes of both rank ", one, " and rank ", other);
  return layout_error(element, " is in ", whose, ": give each element to one box, without halo");
}

/// Bounds as the user's language counts them: C's upper bound is the index after the last, Fortran's is the
/// last.
std::string bounds_text(const Box& box, std::size_t d) {
  if (told_order() == Order::c) return cat("[", box.lower[d], ", ", box.upper[d], ")");
  return cat(box.lower[d] + 1, ":", box.upper[d]);
}

Status check_box(const std::vector<Index>& shape, const Box& box, std::size_t rank) {
  if (box.lower.size() != shape.size() || box.upper.size() != shape.size())
    return layout_error("the box of rank ", rank, " has ", box.lower.size(), " lower and ", box.upper.size(),
                        " upper bounds, expected ", shape.size(), " of each");
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (box.lower[d] > box.upper[d])
      return layout_error("the box of rank ", rank, " is ", bounds_text(box, d), " in ",
                          dimension_text(d, shape.size()), ": the lower bound exceeds the upper one");
    if (box.lower[d] < 0 || box.upper[d] > shape[d])
      return layout_error("the box of rank ", rank, " reaches index ",
                          told_index(box.lower[d] < 0 ? box.lower[d] : box.upper[d] - 1), " in ",
                          dimension_text(d, shape.size()), ", outside of ", told_index(0), " .. ",
                          told_index(shape[d] - 1), ": boxes are in global indices, without halo");
  }
  return {};
}

}  // namespace

Result<Layout> Layout::boxes(std::vector<Index> shape, std::vector<Box> boxes) {
  TR_TRY(check_shape(shape));
  if (boxes.empty() || boxes.size() > std::numeric_limits<int>::max())
    return layout_error("a layout of boxes needs one for each rank, but got ", boxes.size());
  for (std::size_t r = 0; r < boxes.size(); ++r) TR_TRY(check_box(shape, boxes[r], r));
  return Rule::wrap(std::make_shared<BoxesRule>(std::move(shape), std::move(boxes)));
}

Result<Layout> Layout::tiles(std::vector<Index> shape, std::vector<std::vector<Box>> tiles, bool unowned) {
  TR_TRY(check_shape(shape));
  if (tiles.empty() || tiles.size() > std::numeric_limits<int>::max())
    return layout_error("a layout of boxes needs a list of them for each rank, but got ", tiles.size());
  std::size_t all = 0;
  for (std::size_t r = 0; r < tiles.size(); ++r) {
    for (std::size_t i = 0; i < tiles[r].size(); ++i)
      TR_TRY(check_box(shape, tiles[r][i], r).in(cat("box ", told_index(static_cast<Index>(i)))));
    all += tiles[r].size();
  }
  if (all > std::numeric_limits<int>::max()) return layout_error("a layout of ", all, " boxes");
  return Rule::wrap(std::make_shared<TilesRule>(std::move(shape), std::move(tiles), unowned));
}

}  // namespace tailrace::layout
