// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "exchange/record_plan.hpp"

#include <algorithm>

#include "layout/part.hpp"

namespace tailrace::exchange {

RecordPlan::RecordPlan(layout::Layout layout, const Roster& roster, int me)
    : layout_(std::move(layout)), sent_to_(static_cast<std::size_t>(roster.servers())) {
  for (int c = 0; c < roster.computes(); ++c) {
    counts_.push_back(layout_.count(c));
    rows_.push_back(layout_.rows(c));
    comes_in_parts_ = comes_in_parts_ && layout::come_in_parts(rows_.back());
    if (counts_.back() == 0) continue;
    const int home = roster.home[static_cast<std::size_t>(c)];
    if (roster.sees(me, c))
      read_here_.push_back(c);
    else if (std::find(senders_.begin(), senders_.end(), home) == senders_.end())
      senders_.push_back(home);
    if (home != me) continue;
    for (int owner = 0; owner < roster.servers(); ++owner) {
      if (!roster.sees(owner, c)) sent_to_[static_cast<std::size_t>(owner)].push_back(c);
    }
  }
}

}  // namespace tailrace::exchange
