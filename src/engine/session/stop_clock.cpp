// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/session/stop_clock.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ground/base/options.hpp"
#include "ground/base/text.hpp"

namespace tailrace::session {

namespace {

/// Tenths are enough for a reader.
std::string shown(double seconds) { return cat(std::round(seconds * 10) / 10, " s"); }

}  // namespace

void StopClock::step_ended(double now) {
  if (last_step_end_) longest_step_ = std::max(longest_step_, now - *last_step_end_);
  last_step_end_ = now;
}

double StopClock::margin() const {
  return given_margin_.value_or(longest_step_ + 2 * longest_save_ + spare_seconds);
}

std::string StopClock::why(double now) const {
  if (!end_ || now + margin() < end_->seconds) return "";
  const double left = end_->seconds - now;
  const std::string when = left >= 0 ? cat("ends in ", shown(left)) : cat("ended ", shown(-left), " ago");
  const std::string measured = given_margin_ ? ""
                                             : cat(" (longest step ", shown(longest_step_), ", longest save ",
                                                   shown(longest_save_), ")");
  return cat("the time by ", end_->origin, " ", when, ", and the margin is ", shown(margin()), measured);
}

std::optional<StopClock::End> end_of(const TimeLimit& limit, double unix_time, std::string_view slurm_end) {
  using Kind = TimeLimit::Kind;
  const auto seconds = static_cast<double>(limit.seconds);
  switch (limit.kind) {
    case Kind::none:
      return std::nullopt;
    case Kind::duration:
      return StopClock::End{seconds, "TAILRACE_TIME_LIMIT"};
    case Kind::time:
      return StopClock::End{seconds - unix_time, "TAILRACE_TIME_LIMIT"};
    case Kind::automatic:
      break;
  }
  const Result<std::int64_t> end = parse_integer(slurm_end, 1, std::numeric_limits<std::int64_t>::max());
  if (!end.is_ok()) return std::nullopt;
  return StopClock::End{static_cast<double>(*end) - unix_time, "SLURM_JOB_END_TIME"};
}

}  // namespace tailrace::session
