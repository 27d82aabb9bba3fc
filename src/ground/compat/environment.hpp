// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "ground/base/status.hpp"

namespace tailrace::compat {

/// Returns `environment` ("NAME=value" entries) with TAILRACE_* entries added for the settings of older
/// systems in it. It knows those of DVM, a system of directives for Fortran and C by the Keldysh
/// Institute (Moscow): DVMH_PARALLEL_IO_THRES and DVMH_IO_BUF_SIZE (bytes), and DVMH_IO_THREAD_COUNT. If a
/// TAILRACE_* variable sets the same, that one counts.
std::vector<std::string> translated(std::vector<std::string> environment);

/// Returns translated() of this process's environment.
std::vector<std::string> environment();
/// Returns this process's environment as it is.
std::vector<std::string> plain_environment();

/// Returns an error about a setting of translated(environment), with the name of the variable that the user
/// has set.
Status as_given(const Status& status, const std::vector<std::string>& environment);

/// Returns a warning for each variable that is not named TAILRACE_* but almost a setting, because a slip of
/// the pen would go unnoticed.
std::vector<std::string> near_misses(const std::vector<std::string>& environment);

/// Returns the reason why another MPI's launcher seems to have started this process, or "". Call it if
/// MPI_COMM_WORLD has one rank.
std::string other_launcher(const std::vector<std::string>& environment);

}  // namespace tailrace::compat
