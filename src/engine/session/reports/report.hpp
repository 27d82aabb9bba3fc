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

/// The rank that writes a report knows this of the session; all other figures come from the ranks.
struct ReportFacts {
  exchange::Roster roster;
  std::vector<int> nodes;  // by transport rank
  Bytes staging = 0;       // of the node of the rank that writes the report
  std::int64_t begun = 0;  // when the session began, in seconds since 1970
  std::string session;     // a name that no other session has
};

enum class State { running, ended, failed };

/// Returns the report in JSON, from the figures of all ranks that are known, by transport rank. Returns "" if
/// this build has no JSON library.
std::string report_text(const ReportFacts& facts, const std::map<int, pipeline::Statistics>& all,
                        State state);
/// Returns the report of the running session as that of one that has failed with `why`, or nothing if the
/// text is none of it.
std::optional<std::string> as_failed(const std::string& report, std::string_view session,
                                     std::string_view why);
/// So many bytes at the begin of a report have its state and its session.
inline constexpr std::size_t head_of_report = 512;
/// True if the text is the report of the running session, or its head; for "" of any running session.
bool is_running(std::string_view report, std::string_view session = {});
/// True if this build has a JSON library.
bool has_reports();

}  // namespace tailrace::session
