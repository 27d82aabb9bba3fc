// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>

namespace tailrace::references {

/// Says when the reference file of a data file may be written again, so that writing it takes at most a
/// twentieth of the time, apart from the first time, and from the last one as far as it costs more than was
/// predicted. Its cost grows with the steps that it tells. So what the next one costs is
/// predicted, and as much is kept for the last one, when the data file is finished. Times are of a steady
/// clock, in any unit.
class Pace {
 public:
  /// Returns true if the file may be written at `now` with so many steps. The first time it always may:
  /// readers of a slow model want its first step.
  [[nodiscard]] bool may_write(std::int64_t now, std::int64_t steps) const {
    if (steps_ == 0) return true;
    const double cost = static_cast<double>(cost_) + cost_of_step_ * static_cast<double>(steps - steps_);
    return static_cast<double>(now - end_) >= 2 * share * cost;
  }
  /// Says that writing so many steps took from `begin` to `end`, and whether the file tells them now.
  void wrote(std::int64_t begin, std::int64_t end, std::int64_t steps, bool are_told) {
    if (steps_ > 0 && steps > steps_)
      cost_of_step_ =
          std::max(0.0, static_cast<double>(end - begin - cost_) / static_cast<double>(steps - steps_));
    cost_ = end - begin;
    end_ = end;
    steps_ = steps;
    if (are_told) told_ = steps;
  }
  /// Returns how many steps the file tells, 0 if it was not written.
  [[nodiscard]] std::int64_t told() const { return told_; }

 private:
  static constexpr double share = 20;

  double cost_of_step_ = 0;  // as the last two times tell it
  std::int64_t cost_ = 0;
  std::int64_t end_ = 0;
  std::int64_t steps_ = 0;  // of the last try
  std::int64_t told_ = 0;
};

}  // namespace tailrace::references
