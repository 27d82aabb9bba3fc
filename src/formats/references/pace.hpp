// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>

namespace tailrace::references {

/// Decides when the reference file of a data file may be written again, so that writing it takes at most a
/// twentieth of the run. Writing costs more with each step in the file, so the cost of the next write is
/// predicted from the last two. As much again is reserved for the write at the end, when the data file is
/// finished. Not counted are the first write, and what the last one costs beyond the prediction. Times are of
/// a steady clock, in any unit.
class Pace {
 public:
  /// True if the file may be written at `now` with this number of steps. It may always be written the first
  /// time: users of a slow model want to see its first step.
  [[nodiscard]] bool may_write(std::int64_t now, std::int64_t steps) const {
    if (steps_ == 0) return true;
    const double cost = static_cast<double>(cost_) + cost_of_step_ * static_cast<double>(steps - steps_);
    return static_cast<double>(now - end_) >= 2 * share * cost;
  }
  /// Notes that writing `steps` steps took from `begin` to `end`. `are_told` is true if it succeeded: the
  /// file now names these steps.
  void wrote(std::int64_t begin, std::int64_t end, std::int64_t steps, bool are_told) {
    if (steps_ > 0 && steps > steps_)
      cost_of_step_ =
          std::max(0.0, static_cast<double>(end - begin - cost_) / static_cast<double>(steps - steps_));
    cost_ = end - begin;
    end_ = end;
    steps_ = steps;
    if (are_told) told_ = steps;
  }
  /// Returns the number of steps in the file, 0 if it was never written.
  [[nodiscard]] std::int64_t told() const { return told_; }

 private:
  static constexpr double share = 20;

  double cost_of_step_ = 0;  // from the last two writes
  std::int64_t cost_ = 0;
  std::int64_t end_ = 0;
  std::int64_t steps_ = 0;  // steps in the last write, even if it failed
  std::int64_t told_ = 0;
};

}  // namespace tailrace::references
