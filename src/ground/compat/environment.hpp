// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "ground/base/status.hpp"

namespace tailrace::compat {

/// Returns `environment` ("NAME=value" entries) and, as TAILRACE_* entries, what the names of the older
/// systems in it mean. DVM's DVMH_PARALLEL_IO_THRES and DVMH_IO_BUF_SIZE (bytes) and DVMH_IO_THREAD_COUNT are
/// known. A TAILRACE_* variable for the same setting wins.
std::vector<std::string> translated(std::vector<std::string> environment);

/// Returns the same for this process's environment.
std::vector<std::string> environment();
/// Returns this process's environment as it is.
std::vector<std::string> plain_environment();

/// Returns an error about a setting of translated(environment) with the name that was given for it.
Status as_given(const Status& status, const std::vector<std::string>& environment);

/// Returns a line for each variable that is no TAILRACE_* and nearly one: a slip in it would go unnoticed.
std::vector<std::string> near_misses(const std::vector<std::string>& environment);

/// Returns why the launcher of another MPI seems to have started this process, whose MPI_COMM_WORLD has one
/// rank, or "".
std::string other_launcher(const std::vector<std::string>& environment);

}  // namespace tailrace::compat
