// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string_view>

#include "engine/exchange/roster.hpp"
#include "engine/pipeline/handoff.hpp"
#include "ground/node/remote_lane.hpp"

namespace tailrace::pipeline {

/// Local. Returns Code::unsupported, and names a rank, if the ranks of the session cannot hand data over so.
Status check_handoff(Handoff handoff, const exchange::Roster& roster);
/// Returns the lane in which a rank puts the data of a stream. Where no rank shares memory with a server, the
/// usual lanes carry messages already. Ranks that serve themselves hand nothing over.
node::LaneKind lane_of(Handoff handoff, const exchange::Roster& roster);
/// Returns how the data of a stream came to the servers, as the report says it.
std::string_view taken_handoff(Handoff handoff, const exchange::Roster& roster);

}  // namespace tailrace::pipeline
