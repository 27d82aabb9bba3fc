// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// What the figures of a run suggest: sentences with numbers, and what to set. Each rule has one threshold,
// which the table of rules() states.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "run.hpp"

namespace tailrace::reports {

struct Rule {
  std::string_view name;
  double threshold = 0;
  std::string_view unit;    // of the threshold: "%", "steps", "times", "s" or "waits"
  std::string_view speaks;  // when the rule speaks: what reaches the threshold
  std::string_view advice;
};
std::span<const Rule> rules();

struct Advice {
  std::string_view rule;
  std::string text;
  std::string set;      // a setting to copy, as "TAILRACE_STAGING=2GiB"; "" = none
  double at_stake = 0;  // the share of time that it is about
};

/// Returns what the report suggests, the largest share of time first. A report without times of processes
/// says little: `can_advise` is false then.
std::vector<Advice> advise(const Run& run);
bool can_advise(const Run& run);
/// Returns the sentence for a run without advice.
std::string no_advice(const Run& run);

/// Returns "no news for 40 s: is the job alive?" if a running job's report is that old, else "". Without
/// servers it says that rank 0 has not called the library: it writes the report inside its calls.
std::string no_news(const Run& run, double age_seconds);

}  // namespace tailrace::reports
