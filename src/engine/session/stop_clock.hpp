// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "ground/settings/settings.hpp"

namespace tailrace::session {

/// Decides when a program whose time is limited is to stop. It only computes: every time is given, in seconds
/// from tr_init, so that a step of the machine's clock during the run moves nothing.
class StopClock {
 public:
  /// The part of the measured margin that is neither for steps nor for saves.
  static constexpr double spare_seconds = 5;

  /// When the time is over, and the setting or the batch system that says so.
  struct End {
    double seconds = 0;
    std::string origin;
  };

  StopClock(std::optional<End> end, std::optional<double> margin_seconds)
      : end_(std::move(end)), given_margin_(margin_seconds) {}

  /// Notes that the program has come to the end of a step.
  void step_ended(double now);
  /// Notes that a save has taken this long.
  void saved(double seconds) { longest_save_ = std::max(longest_save_, seconds); }

  /// Returns how long before the end the program must hear of it: time for one more step, because the next
  /// question comes only after it, and for a save that takes twice as long as any before.
  [[nodiscard]] double margin() const;
  /// Returns why the program must stop now, or "" if it need not.
  [[nodiscard]] std::string why(double now) const;
  [[nodiscard]] double longest_save() const { return longest_save_; }

 private:
  std::optional<End> end_;
  std::optional<double> given_margin_;
  std::optional<double> last_step_end_;
  double longest_step_ = 0;
  double longest_save_ = 0;
};

/// Returns the end that `limit` asks for. `unix_time` is the time of tr_init, in seconds since 1970.
/// `slurm_end` is the value of SLURM_JOB_END_TIME, "" if it is not set. A value that is no positive number
/// counts as not set: the batch system's variable is not ours to refuse.
std::optional<StopClock::End> end_of(const TimeLimit& limit, double unix_time, std::string_view slurm_end);

}  // namespace tailrace::session
