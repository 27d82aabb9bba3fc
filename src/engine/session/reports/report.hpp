// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/exchange/roster.hpp"
#include "engine/pipeline/statistics.hpp"
#include "ground/base/types.hpp"

namespace tailrace::session {

/// What a report tells beside the figures of the ranks.
struct ReportFacts {
  exchange::Roster roster;
  std::vector<int> nodes;  // by transport rank
  Bytes staging = 0;       // of the node of the rank that writes the report
  std::int64_t begun = 0;  // when the session began, in seconds since 1970
};

enum class State { running, ended, failed };

/// Returns the report in JSON, from the figures of all ranks that are known, by transport rank. Returns "" if
/// this build has no JSON library.
std::string report_text(const ReportFacts& facts, const std::map<int, pipeline::Statistics>& all,
                        State state);
/// Returns the report of a running session as that of one that has failed with `why`, or nothing if the text
/// is none of a running session.
std::optional<std::string> as_failed(const std::string& report, std::string_view why);
/// True if the text is the report of a running session.
bool is_running(const std::string& report);
/// True if this build has a JSON library.
bool has_reports();

}  // namespace tailrace::session
