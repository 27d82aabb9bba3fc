// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <map>
#include <optional>
#include <set>

#include "engine/pipeline/messages.hpp"

namespace tailrace::pipeline {

/// The verdicts on the steps of one stream that a compute rank has heard, and which failures it has told the
/// program. All functions are local.
class StepVerdicts {
 public:
  /// Takes a verdict. `steps` is the number of steps that this rank has begun.
  void take(VerdictKind kind, std::int64_t step, const Status& status, std::int64_t steps);
  [[nodiscard]] bool is_accepted(std::int64_t step) const { return accepted_.count(step) != 0; }
  /// Returns the verdict on a step that is_accepted(), or OK if the program was told of its failure.
  [[nodiscard]] Status report_accepted(std::int64_t step) { return report(accepted_.at(step)); }
  [[nodiscard]] std::int64_t durable_through() const { return durable_through_; }
  /// Returns the first failure of the steps through `through` that the program was not told, and counts the
  /// others. They all count as told.
  [[nodiscard]] Status report_failures(std::int64_t through);
  /// True if the step has failed, as far as this rank has heard: the program was told, or will be.
  [[nodiscard]] bool has_failed(std::int64_t step) const {
    return failures_.count(step) != 0 || reported_.count(step) != 0;
  }
  /// True if the program was told that a step has failed.
  [[nodiscard]] bool has_told_failure() const { return !reported_.empty(); }
  /// Returns the steps that failed, by number.
  [[nodiscard]] const std::map<std::int64_t, Status>& failures() const { return failures_; }
  /// Returns the result of the whole stream once it has come.
  [[nodiscard]] const std::optional<Status>& finished() const { return finished_; }
  /// Says that the stream goes on with other definitions: its result is still to come.
  void go_on() { finished_.reset(); }

 private:
  Status report(const Status& status);

  std::map<std::int64_t, Status> accepted_;
  std::map<std::int64_t, Status> failures_;
  std::set<std::int64_t> settled_;  // durable or failed, while an earlier step is not yet
  std::int64_t durable_through_ = -1;
  std::set<std::int64_t> reported_;  // steps whose failure was returned
  std::optional<Status> finished_;
};

}  // namespace tailrace::pipeline
