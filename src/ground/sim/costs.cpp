// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/sim/costs.hpp"

#include <algorithm>

namespace tailrace::sim {

Costs slow_disk(double bytes_per_second, Nanoseconds latency) {
  Costs costs;
  costs.is_random = true;
  costs.process_bytes_per_second = Costs::no_limit;
  costs.storage_bytes_per_second = bytes_per_second;
  costs.call_latency = costs.sync_latency = latency;
  return costs;
}

void BusyTime::add(Nanoseconds begin, Nanoseconds end) {
  if (end <= begin) return;
  if (!spans_.empty() && begin >= spans_.back().first && begin <= spans_.back().second)
    spans_.back().second = std::max(spans_.back().second, end);
  else
    spans_.emplace_back(begin, end);
}

Nanoseconds BusyTime::of(std::initializer_list<const BusyTime*> all, Nanoseconds from, Nanoseconds to) {
  std::vector<std::pair<Nanoseconds, Nanoseconds>> spans;
  for (const BusyTime* const each : all) spans.insert(spans.end(), each->spans_.begin(), each->spans_.end());
  std::ranges::sort(spans);
  Nanoseconds busy = 0;
  Nanoseconds counted = from;  // everything before it is counted
  for (const auto& [begin, end] : spans) {
    const Nanoseconds until = std::min(end, to);
    busy += std::max<Nanoseconds>(until - std::max(begin, counted), 0);
    counted = std::max(counted, until);
  }
  return busy;
}

}  // namespace tailrace::sim
