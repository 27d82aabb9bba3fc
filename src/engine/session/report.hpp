// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <map>

#include "engine/exchange/roster.hpp"
#include "engine/pipeline/statistics.hpp"
#include "ground/settings/settings.hpp"

namespace tailrace::session {

/// Returns success if the files that TAILRACE_REPORT and TAILRACE_TRACE name can be written. Leaves nothing
/// behind.
Status check_report(const Settings& settings);

/// Writes the files of TAILRACE_REPORT and TAILRACE_TRACE from the statistics of all ranks, by transport
/// rank. Files are replaced atomically. Returns success if neither is asked for, and Code::unsupported if
/// this build has no JSON library.
Status write_report(const Settings& settings, const exchange::Roster& roster,
                    const std::map<int, pipeline::Statistics>& all);

}  // namespace tailrace::session
