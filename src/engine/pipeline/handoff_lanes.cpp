// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/pipeline/handoff_lanes.hpp"

#include <algorithm>

#include "ground/base/text.hpp"

namespace tailrace::pipeline {

namespace {

/// Returns the first compute rank that shares no memory with a server, or -1.
int first_apart(const exchange::Roster& roster) {
  const auto found = std::ranges::find(roster.shares_node, 0);
  return found == roster.shares_node.end() ? -1 : static_cast<int>(found - roster.shares_node.begin());
}

bool nobody_shares(const exchange::Roster& roster) { return std::ranges::count(roster.shares_node, 1) == 0; }

}  // namespace

Status check_handoff(Handoff handoff, const exchange::Roster& roster) {
  const int apart = roster.self_served ? -1 : first_apart(roster);
  if (handoff != Handoff::shared || apart < 0) return {};
  return {Code::unsupported,
          cat("compute rank ", apart,
              " runs on a node without a server, with which it could share memory: give each node one "
              "(TAILRACE_SERVERS=node:1), or choose handoff=auto or messages")};
}

node::LaneKind lane_of(Handoff handoff, const exchange::Roster& roster) {
  if (roster.self_served) return node::LaneKind::usual;
  if (handoff == Handoff::onesided) return node::LaneKind::onesided;
  if (handoff == Handoff::messages && !nobody_shares(roster)) return node::LaneKind::messages;
  return node::LaneKind::usual;
}

std::string_view taken_handoff(Handoff handoff, const exchange::Roster& roster) {
  if (roster.self_served) return "lent";
  if (handoff != Handoff::automatic) return name_of(handoff);
  if (nobody_shares(roster)) return name_of(Handoff::messages);
  return first_apart(roster) < 0 ? name_of(Handoff::shared) : "shared, messages between nodes";
}

}  // namespace tailrace::pipeline
