// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/session/stops.hpp"

#include <unistd.h>

#include <cstdlib>

#include "ground/base/log.hpp"
#include "ground/base/text.hpp"

namespace tailrace::session {

namespace {

StopClock clock_of(const Settings& settings) {
  const std::chrono::duration<double> unix_time = std::chrono::system_clock::now().time_since_epoch();
  const char* const slurm_end = std::getenv("SLURM_JOB_END_TIME");
  return {end_of(settings.time_limit, unix_time.count(), slurm_end == nullptr ? "" : slurm_end),
          settings.stop_margin_seconds};
}

}  // namespace

Stops::Stops(const Settings& settings)
    : clock_(clock_of(settings)), signals_(settings.stop_signals), halt_file_(settings.halt_file) {}

void Stops::tell_left_alone() const {
  for (const Signal& signal : signals_.left_alone()) {
    log(LogLevel::info,
        cat("SIG", signal.name,
            " is handled or ignored already and stays so: tr_should_stop will not hear of it"));
  }
}

double Stops::now() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

/// A parallel file system is asked at most once a second, however short the steps are. Goes past
/// storage::Target: who makes the file has a shell, and no target.
bool Stops::halt_file_exists() {
  if (halt_file_.empty() || (looked_for_file_ && now() - *looked_for_file_ < 1)) return false;
  looked_for_file_ = now();
  return ::access(halt_file_.c_str(), F_OK) == 0;
}

std::string Stops::why(int me) {
  if (const std::string names = signals_.received(); !names.empty()) {
    return cat("compute rank ", me, " received ", names);
  }
  if (me != 0) return "";
  if (halt_file_exists()) return cat("the halt file ", halt_file_, " exists");
  return clock_.why(now());
}

ByteVector Stops::vote(int me) {
  clock_.step_ended(now());
  const std::string reason = stopping_ ? "" : why(me);
  if (reason.empty() && clock_.longest_save() <= told_save_) return {};  // the usual vote is empty
  return Packer().put_text(reason).put(clock_.longest_save()).take();
}

bool Stops::conclude(const std::vector<ByteVector>& votes, int me) {
  std::string first;
  for (const ByteVector& vote : votes) {
    if (vote.empty()) continue;
    Unpacker in(vote);
    const std::string reason = in.get_text();
    if (first.empty()) first = reason;
    // The slowest rank's save counts in the margin of all.
    clock_.saved(in.get<double>());
  }
  told_save_ = clock_.longest_save();
  if (first.empty() || stopping_) return stopping_;
  stopping_ = true;
  reason_ = first;
  if (me == 0) log(LogLevel::warn, cat("the program is to save and stop: ", first));
  return true;
}

}  // namespace tailrace::session
