// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <algorithm>
#include <limits>
#include <mutex>
#include <optional>

#include "ground/base/text.hpp"
#include "ground/layout/rule.hpp"

namespace tailrace::layout {
namespace {

/// Boxes in one list of numbers: 16 bytes for each box and dimension, where a `Box` takes memory of its own
/// for either corner. A process holds the boxes of all ranks.
class BoxList {
 public:
  explicit BoxList(std::size_t dimensions) : dimensions_(dimensions) {}

  void append(const Box& box) {
    corners_.insert(corners_.end(), box.lower.begin(), box.lower.end());
    corners_.insert(corners_.end(), box.upper.begin(), box.upper.end());
  }
  [[nodiscard]] int size() const { return static_cast<int>(corners_.size() / (2 * dimensions_)); }
  [[nodiscard]] Index lower(int i, std::size_t d) const { return corners_[first(i) + d]; }
  [[nodiscard]] Index upper(int i, std::size_t d) const { return corners_[first(i) + dimensions_ + d]; }
  [[nodiscard]] Box at(int i) const {
    const auto lower = corners_.begin() + static_cast<std::ptrdiff_t>(first(i));
    const auto upper = lower + static_cast<std::ptrdiff_t>(dimensions_);
    return {{lower, upper}, {upper, upper + static_cast<std::ptrdiff_t>(dimensions_)}};
  }
  [[nodiscard]] Index count(int i) const {
    Index count = 1;
    for (std::size_t d = 0; d < dimensions_; ++d) count *= upper(i, d) - lower(i, d);
    return count;
  }
  [[nodiscard]] bool holds(int i, const std::vector<Index>& index) const {
    for (std::size_t d = 0; d < dimensions_; ++d)
      if (index[d] < lower(i, d) || index[d] >= upper(i, d)) return false;
    return true;
  }
  /// Returns the corners of all boxes, as messages have them.
  [[nodiscard]] const std::vector<Index>& corners() const { return corners_; }

 private:
  [[nodiscard]] std::size_t first(int i) const { return static_cast<std::size_t>(i) * 2 * dimensions_; }

  std::size_t dimensions_;
  std::vector<Index> corners_;
};

BoxList list_of(std::size_t dimensions, const std::vector<Box>& boxes) {
  BoxList list(dimensions);
  for (const Box& box : boxes) list.append(box);
  return list;
}

/// Tells the check of boxes what to do about elements that lie in no box.
enum class Gaps { refused, allowed };

/// Finds the first element, in C order, that is in two boxes, or, with Gaps::refused, in none. With
/// Gaps::allowed and `gaps` it notes there the boxes of elements that are in none. Takes memory proportional
/// to the number of boxes, and to that of the gaps if it notes them. Sweeps along each dimension from one box
/// edge to the next: between two edges the set of boxes does not change, so that the first plane stands for
/// all planes up to the next edge.
class CoverSweep {
 public:
  CoverSweep(const std::vector<Index>& shape, const BoxList& boxes, Gaps rule,
             std::vector<Box>* gaps = nullptr)
      : shape_(shape), boxes_(boxes), rule_(rule), gaps_(gaps), at_(shape.size(), 0), until_(shape) {}

  /// True if there is such an element. `at` and `holders` then tell its index and the numbers of the boxes
  /// that hold it.
  bool find() {
    std::vector<int> all;
    for (int i = 0; i < boxes_.size(); ++i)
      if (boxes_.count(i) > 0) all.push_back(i);
    return find_from(0, std::move(all));
  }
  [[nodiscard]] const std::vector<Index>& at() const { return at_; }
  [[nodiscard]] const std::vector<int>& holders() const { return holders_; }

 private:
  [[nodiscard]] Index lower(int i, std::size_t d) const { return boxes_.lower(i, d); }
  [[nodiscard]] Index upper(int i, std::size_t d) const { return boxes_.upper(i, d); }

  bool find_from(std::size_t d, std::vector<int> active) {
    std::sort(active.begin(), active.end(), [&](int a, int b) { return lower(a, d) < lower(b, d); });
    std::vector<int> open;
    std::size_t next = 0;
    for (Index position = 0; position < shape_[d];) {
      std::erase_if(open, [&](int i) { return upper(i, d) <= position; });
      while (next < active.size() && lower(active[next], d) == position) open.push_back(active[next++]);
      at_[d] = position;
      until_[d] = next < active.size() ? lower(active[next], d) : shape_[d];
      for (const int i : open) until_[d] = std::min(until_[d], upper(i, d));
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
    if (open.empty() && rule_ == Gaps::allowed) {
      if (gaps_ != nullptr) gaps_->push_back({at_, until_});
      return false;
    }
    std::fill(at_.begin() + static_cast<std::ptrdiff_t>(d) + 1, at_.end(), 0);
    holders_ = open;
    std::sort(holders_.begin(), holders_.end());
    return true;
  }

  const std::vector<Index>& shape_;
  const BoxList& boxes_;
  Gaps rule_;
  std::vector<Box>* gaps_;
  std::vector<Index> at_, until_;  // the corners of the box that stands for itself
  std::vector<int> holders_;
};

Index global_of(const std::vector<Index>& at, const std::vector<Index>& shape) {
  Index global = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) global = global * shape[d] + at[d];
  return global;
}

/// Finds the box that holds an element. Takes 12 bytes for each box.
class BoxSearch {
 public:
  explicit BoxSearch(const BoxList& boxes) {
    for (int i = 0; i < boxes.size(); ++i)
      if (boxes.count(i) > 0) order_.push_back(i);
    std::stable_sort(order_.begin(), order_.end(),
                     [&](int a, int b) { return boxes.lower(a, 0) < boxes.lower(b, 0); });
    Index reach = 0;
    for (const int i : order_) reach_.push_back(reach = std::max(reach, boxes.upper(i, 0)));
  }
  /// Returns the number of the box, or -1. `boxes` are those that the constructor got.
  [[nodiscard]] int find(const BoxList& boxes, const std::vector<Index>& index) const {
    const auto after = std::upper_bound(order_.begin(), order_.end(), index[0],
                                        [&](Index first, int i) { return first < boxes.lower(i, 0); });
    for (auto i = static_cast<std::size_t>(after - order_.begin()); i-- > 0 && reach_[i] > index[0];)
      if (boxes.holds(order_[i], index)) return order_[i];
    return -1;
  }

 private:
  std::vector<int> order_;    // boxes with elements, by lower[0]
  std::vector<Index> reach_;  // the largest upper[0] of order_[0..i]: a search stops there
};

class BoxesRule final : public BoxRule {
 public:
  BoxesRule(std::vector<Index> shape, const std::vector<Box>& boxes)
      : BoxRule(std::move(shape), static_cast<int>(boxes.size())),
        boxes_(list_of(this->shape().size(), boxes)),
        search_(boxes_) {}

  [[nodiscard]] std::string_view name() const override { return "boxes"; }
  [[nodiscard]] Box box(int rank) const override { return boxes_.at(rank); }
  [[nodiscard]] int owner(Index global) const override {
    return search_.find(boxes_, indices_of(global, shape()));
  }
  [[nodiscard]] Status validate() const override;
  void pack(Packer& out) const override {
    out.put(Kind::boxes).put_list<Index>(shape()).put_list<Index>(boxes_.corners());
  }

 private:
  BoxList boxes_;
  BoxSearch search_;
};

Status BoxesRule::validate() const {
  if (elements() == 0) return {};
  CoverSweep sweep(shape(), boxes_, Gaps::refused);
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
  TilesRule(std::vector<Index> shape, const std::vector<std::vector<Box>>& tiles, bool unowned)
      : Rule(std::move(shape), static_cast<int>(tiles.size())),
        boxes_(this->shape().size()),
        first_{0},
        rule_(unowned ? Gaps::allowed : Gaps::refused) {
    Index left = elements();  // boxes that overlap, which validate() finds, do not count below 0
    for (const auto& of_rank : tiles) {
      const Index before = left;
      for (const Box& tile : of_rank) {
        left -= std::min(left, box_count(tile));
        if (box_count(tile) > 0) boxes_.append(tile);
      }
      first_.push_back(boxes_.size());
      counts_.push_back(before - left);
    }
    search_.emplace(boxes_);
    has_unowned_ = unowned && left > 0;
  }

  [[nodiscard]] std::string_view name() const override { return "tiles"; }
  [[nodiscard]] bool is_tiled() const override { return true; }
  [[nodiscard]] std::vector<Box> tiles(int rank) const override {
    const auto at = static_cast<std::size_t>(rank);
    std::vector<Box> tiles;
    for (int i = first_[at]; i < first_[at + 1]; ++i) tiles.push_back(boxes_.at(i));
    return tiles;
  }
  [[nodiscard]] Index count(int rank) const override { return counts_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] std::vector<Rows> rows(int rank) const override { return tiles_rows(shape(), tiles(rank)); }
  [[nodiscard]] int owner(Index global) const override {
    const int box = search_->find(boxes_, indices_of(global, shape()));
    return box < 0 ? -1 : rank_of(box);
  }
  [[nodiscard]] bool has_unowned() const override { return has_unowned_; }
  [[nodiscard]] std::vector<Box> unowned() const override {
    std::call_once(gaps_once_, [this] {
      if (has_unowned_) CoverSweep(shape(), boxes_, Gaps::allowed, &gaps_).find();
    });
    return gaps_;
  }
  [[nodiscard]] Status validate() const override;
  void pack(Packer& out) const override {
    std::vector<Index> boxes;
    for (std::size_t r = 0; r + 1 < first_.size(); ++r) boxes.push_back(first_[r + 1] - first_[r]);
    out.put(Kind::tiles).put_list<Index>(shape()).put(rule_ == Gaps::allowed);
    out.put_list<Index>(boxes).put_list<Index>(boxes_.corners());
  }

 private:
  [[nodiscard]] int rank_of(int box) const {
    const auto after = std::upper_bound(first_.begin(), first_.end(), box);
    return static_cast<int>(after - first_.begin()) - 1;
  }

  BoxList boxes_;
  std::vector<int> first_;     // by rank: its first box; one entry more at the end
  std::vector<Index> counts_;  // by rank: its elements
  Gaps rule_;
  bool has_unowned_ = false;
  std::optional<BoxSearch> search_;
  // The boxes of elements without owner. Found when somebody first asks: programs that only read never do.
  mutable std::once_flag gaps_once_;
  mutable std::vector<Box> gaps_;
};

Status TilesRule::validate() const {
  if (elements() == 0) return {};
  CoverSweep sweep(shape(), boxes_, rule_);
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
  return Rule::wrap(std::make_shared<BoxesRule>(std::move(shape), boxes));
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
  return Rule::wrap(std::make_shared<TilesRule>(std::move(shape), tiles, unowned));
}

}  // namespace tailrace::layout
