// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>
#include <vector>

namespace tailrace::compat {

/// Returns `environment` ("NAME=value" entries) and, as TAILRACE_* entries, what the names of the older
/// systems in it mean. DVM's DVMH_PARALLEL_IO_THRES and DVMH_IO_BUF_SIZE (bytes) and DVMH_IO_THREAD_COUNT are
/// known. A TAILRACE_* variable for the same setting wins.
std::vector<std::string> translated(std::vector<std::string> environment);

/// Returns the same for this process's environment.
std::vector<std::string> environment();

}  // namespace tailrace::compat
