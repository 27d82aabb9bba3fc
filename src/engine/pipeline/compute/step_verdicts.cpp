// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/pipeline/compute/step_verdicts.hpp"

#include "ground/base/text.hpp"

namespace tailrace::pipeline {

Status StepVerdicts::report(const Status& status) {
  if (status.is_ok() || !reported_.insert(status.cause().step).second) return {};
  return status;
}

Status StepVerdicts::report_failures(std::int64_t through) {
  Status first;
  int others = 0;
  for (const auto& [step, status] : failures_) {
    if (step > through) break;
    const Status told = report(status);
    if (told.is_ok()) continue;
    if (first.is_ok())
      first = told;
    else
      ++others;
  }
  if (others == 0) return first;
  // One call tells of all failed steps, since the caller may not make another call.
  return Status(first.code(), cat(first.text(), "; ", counted(others, "later step"), " failed too"),
                first.error_number())
      .at(first.cause());
}

/// A server that takes the place of another sends verdicts again that the other may have sent. Where the
/// other has told a failure and the new server a success, the failure stays.
void StepVerdicts::take(VerdictKind kind, std::int64_t step, const Status& status, std::int64_t steps) {
  switch (kind) {
    case VerdictKind::accepted:
      if (!status.is_ok() || accepted_.count(step) == 0) accepted_[step] = status;
      while (!accepted_.empty() && accepted_.begin()->first < steps - 3) accepted_.erase(accepted_.begin());
      break;
    case VerdictKind::durable:
      if (!status.is_ok()) failures_[step] = status;
      // A verdict that goes to this rank alone may arrive before the previous step is durable.
      if (step > durable_through_) settled_.insert(step);
      while (settled_.erase(durable_through_ + 1) != 0) ++durable_through_;
      break;
    case VerdictKind::finished:
      if (!finished_) finished_ = status;
      break;
  }
}

}  // namespace tailrace::pipeline
