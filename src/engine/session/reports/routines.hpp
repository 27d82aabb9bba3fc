// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/exchange/roster.hpp"
#include "engine/pipeline/statistics.hpp"

namespace tailrace::session {

enum class Role { compute, server, compute_and_server };
/// Returns the role of each process, by transport rank.
std::vector<Role> roles_of(const exchange::Roster& roster);
std::string_view name_of(Role role);

/// Names of routines, in the order of the report, and nanoseconds.
using RoutineTimes = std::vector<std::pair<std::string_view, std::int64_t>>;

/// Returns where the time of a process's own thread went. The sum is Process::elapsed.
RoutineTimes own_routines(Role role, const pipeline::Statistics& statistics);
/// Returns the number of the process's threads that work for files of streams.
std::int64_t threads_of(const pipeline::Statistics& statistics);
/// Returns where the time of these threads went. The sum is their number times Process::elapsed.
RoutineTimes thread_routines(const pipeline::Statistics& statistics);

/// Returns the nanoseconds that a compute rank has spent in calls of the library, without copying what it
/// puts.
std::int64_t waited(const pipeline::Statistics& statistics);

/// Returns why the session, a step or the end of a file has failed, or "".
std::string error_of(const exchange::Roster& roster, const std::map<int, pipeline::Statistics>& all);

/// Returns the line for the end of a session, as "4 files, 3.9 GB, durable; the model waited 0.4 s of 312 s".
/// Returns "" if no stream was written or read.
std::string summary_of(const exchange::Roster& roster, const std::map<int, pipeline::Statistics>& all);

}  // namespace tailrace::session
