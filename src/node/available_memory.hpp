// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <istream>
#include <string>

#include "base/types.hpp"

namespace tailrace::node {

/// Returns the bytes that this node can still give: the smaller of MemAvailable (proc(5)) and what the memory
/// limits of this process's control groups leave.
Bytes available_memory();

/// Returns what the memory limits leave for the control groups in `own` (the text of /proc/self/cgroup):
/// their own limits and those of every group above them. Slurm limits the job and the step, above the task.
/// `mounted` is the directory in which the system shows the groups, /sys/fs/cgroup. Returns the largest
/// number if there is no limit.
Bytes left_by_cgroups(std::istream& own, const std::string& mounted);

}  // namespace tailrace::node
