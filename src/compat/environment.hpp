// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <span>
#include <string>
#include <vector>

namespace tailrace::compat {

/// `environment` ("NAME=value" entries), and what the names of the older systems in it mean as TAILRACE_*
/// entries. DVM's DVMH_PARALLEL_IO_THRES and DVMH_IO_BUF_SIZE (bytes) and DVMH_IO_THREAD_COUNT are known; a
/// TAILRACE_* variable for the same setting wins.
std::vector<std::string> translated(std::vector<std::string> environment);

/// The same of this process's environment.
std::vector<std::string> environment();

}  // namespace tailrace::compat
