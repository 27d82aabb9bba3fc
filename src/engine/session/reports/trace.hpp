// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <map>
#include <string>

#include "engine/exchange/roster.hpp"
#include "engine/pipeline/statistics.hpp"

namespace tailrace::session {

/// Returns the trace in the JSON that Perfetto and chrome://tracing read, from the spans of all ranks, by
/// transport rank. Returns "" if this build has no JSON library.
std::string trace_text(const exchange::Roster& roster, const std::map<int, pipeline::Statistics>& all);

}  // namespace tailrace::session
