// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <algorithm>
#include <limits>
#include <numeric>

#include "ground/base/text.hpp"
#include "ground/layout/rule.hpp"

namespace tailrace::layout {
namespace {

/// Finds the first element, in C order, that is not in exactly one box. Takes memory proportional to the
/// number of boxes. Sweeps along each dimension from one box edge to the next: between two edges the set of
/// boxes does not change, so that the first plane stands for all planes up to the next edge.
class CoverSweep {
 public:
  CoverSweep(const std::vector<Index>& shape, const std::vector<Box>& boxes)
      : shape_(shape), boxes_(boxes), at_(shape.size(), 0) {}

  /// True if there is an element that is not in exactly one box. `at` and `holders` then tell its index and
  /// the ranks that hold it.
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
      if (is_wrong(d, open)) return true;
      position = next < active.size() ? lower(active[next], d) : shape_[d];
      for (const int rank : open) position = std::min(position, upper(rank, d));
    }
    return false;
  }

  bool is_wrong(std::size_t d, const std::vector<int>& open) {
    if (!open.empty() && d + 1 < shape_.size()) return find_from(d + 1, open);
    if (open.size() == 1) return false;
    std::fill(at_.begin() + static_cast<std::ptrdiff_t>(d) + 1, at_.end(), 0);
    holders_ = open;
    std::sort(holders_.begin(), holders_.end());
    return true;
  }

  const std::vector<Index>& shape_;
  const std::vector<Box>& boxes_;
  std::vector<Index> at_;
  std::vector<int> holders_;
};

class BoxesRule final : public BoxRule {
 public:
  BoxesRule(std::vector<Index> shape, std::vector<Box> boxes)
      : BoxRule(std::move(shape), static_cast<int>(boxes.size())),
        boxes_(std::move(boxes)),
        order_(boxes_.size()) {
    std::iota(order_.begin(), order_.end(), 0);
    std::erase_if(order_, [&](int rank) { return box_count(of(rank)) == 0; });
    std::stable_sort(order_.begin(), order_.end(),
                     [&](int a, int b) { return of(a).lower[0] < of(b).lower[0]; });
    Index reach = 0;
    for (const int rank : order_) reach_.push_back(reach = std::max(reach, of(rank).upper[0]));
  }

  [[nodiscard]] std::string_view name() const override { return "boxes"; }
  [[nodiscard]] Box box(int rank) const override { return of(rank); }
  [[nodiscard]] int owner(Index global) const override;
  [[nodiscard]] Status validate() const override;
  void pack(Packer& out) const override {
    std::vector<Index> corners;
    for (const Box& box : boxes_) {
      corners.insert(corners.end(), box.lower.begin(), box.lower.end());
      corners.insert(corners.end(), box.upper.begin(), box.upper.end());
    }
    out.put(Kind::boxes).put_list<Index>(shape()).put_list<Index>(corners);
  }

 private:
  [[nodiscard]] const Box& of(int rank) const { return boxes_[static_cast<std::size_t>(rank)]; }

  std::vector<Box> boxes_;
  std::vector<int> order_;    // ranks with elements, by lower[0]
  std::vector<Index> reach_;  // the largest upper[0] of order_[0..i]: a search stops there
};

bool holds(const Box& box, const std::vector<Index>& at) {
  for (std::size_t d = 0; d < at.size(); ++d)
    if (at[d] < box.lower[d] || at[d] >= box.upper[d]) return false;
  return true;
}

int BoxesRule::owner(Index global) const {
  const std::vector<Index> at = indices_of(global, shape());
  const auto after = std::upper_bound(order_.begin(), order_.end(), at[0],
                                      [&](Index index, int rank) { return index < of(rank).lower[0]; });
  for (auto i = static_cast<std::size_t>(after - order_.begin()); i-- > 0 && reach_[i] > at[0];)
    if (holds(of(order_[i]), at)) return order_[i];
  return -1;
}

Status BoxesRule::validate() const {
  if (elements() == 0) return {};
  CoverSweep sweep(shape(), boxes_);
  if (!sweep.find()) return {};
  const std::vector<Index> strides = strides_of(shape());
  Index global = 0;
  for (std::size_t d = 0; d < strides.size(); ++d) global += sweep.at()[d] * strides[d];
  if (sweep.holders().empty())
    return layout_error(element_text(global, shape()), " is in no rank's box (ranks 0 to ", ranks() - 1,
                        "): the boxes must cover the whole array");
  return layout_error(element_text(global, shape()), " is in the boxes of both rank ", sweep.holders()[0],
                      " and rank ", sweep.holders()[1], ": give each element to one rank, without halo");
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

}  // namespace tailrace::layout
