// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/checkpoint/coverage.hpp"

#include <algorithm>
#include <queue>

namespace tailrace::checkpoint {

namespace {

using layout::Rows;

struct BeginsLater {
  bool operator()(const Rows& a, const Rows& b) const { return a.global > b.global; }
};

/// Meets the runs of all groups in the order of their elements. Every element before `at_` was met exactly
/// once, or lies in a gap, if there may be gaps. Once the first runs of a group were met, the rest of the
/// group is treated as a group.
class Merge {
 public:
  Merge(std::vector<Rows> groups, Index elements, bool gaps)
      : groups_(std::move(groups)), elements_(elements), gaps_(gaps) {
    std::ranges::sort(groups_, {}, &Rows::global);
  }

  std::optional<Misplaced> run(std::int64_t& runs) {
    while (const Rows* next = first()) {
      if (gaps_ && next->global > at_) {
        // Elements of other groups may lie in the gap of a later stride: no strides are skipped across it.
        at_ = next->global;
        end_chain();
        continue;
      }
      if (next->global != at_) return Misplaced{std::min(next->global, at_), next->global < at_};
      if (runs <= 0) return std::nullopt;
      --runs;
      if (!chain_.empty() && next == &chain_.front())
        skip_strides();
      else
        meet(take());
    }
    if (at_ != elements_ && !gaps_) return Misplaced{at_, false};
    return std::nullopt;
  }

 private:
  /// Returns the group whose next run begins first: of those not begun yet, of those begun, or of the chain.
  const Rows* first() {
    const Rows* next = fresh_ < groups_.size() ? &groups_[fresh_] : nullptr;
    if (!begun_.empty() && (next == nullptr || begun_.top().global < next->global)) next = &begun_.top();
    if (!chain_.empty() && (next == nullptr || chain_.front().global <= next->global)) next = &chain_.front();
    return next;
  }

  /// Removes and returns the group that first() returns, which must not be in the chain.
  Rows take() {
    const bool is_fresh =
        fresh_ < groups_.size() && (begun_.empty() || groups_[fresh_].global <= begun_.top().global);
    if (is_fresh) return groups_[fresh_++];
    const Rows next = begun_.top();
    begun_.pop();
    return next;
  }

  void meet(Rows next) {
    at_ += next.count;
    const bool fits = next.rows > 1 && (chain_.empty() || chain_.front().stride == next.stride);
    if (!fits) end_chain();
    if (next.rows == 1) return;
    next.global += next.stride;
    --next.rows;
    chain_.push_back(next);
  }

  /// Called when the chain's groups together have met all elements of one stride: they meet all elements of
  /// the next strides, too, until one of them ends. If another group begins within these strides, run() finds
  /// at the group's turn that its elements lie twice.
  void skip_strides() {
    const Index strides = std::ranges::min_element(chain_, {}, &Rows::rows)->rows;
    const Index distance = strides * chain_.front().stride;
    for (Rows& each : chain_) {
      each.global += distance;
      each.rows -= strides;
    }
    at_ += distance;
    end_chain();
  }

  void end_chain() {
    for (const Rows& each : chain_) {
      if (each.rows > 0) begun_.push(each);
    }
    chain_.clear();
  }

  std::vector<Rows> groups_;  // in the order of their first elements
  std::size_t fresh_ = 0;     // the first group that has not begun
  std::priority_queue<Rows, std::vector<Rows>, BeginsLater> begun_;
  /// Groups of one stride whose last met runs lie side by side.
  std::vector<Rows> chain_;
  Index at_ = 0;
  Index elements_;
  bool gaps_;
};

}  // namespace

std::optional<Misplaced> find_misplaced(std::vector<Rows> groups, Index elements, std::int64_t& runs,
                                        bool gaps) {
  return Merge(std::move(groups), elements, gaps).run(runs);
}

}  // namespace tailrace::checkpoint
