// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <istream>
#include <span>
#include <string>
#include <string_view>

#include "ground/base/status.hpp"
#include "ground/base/types.hpp"

namespace tailrace::node {

/// Returns the bytes that this node can still give: the smaller of MemAvailable (proc(5)) and what the memory
/// limits of this process's control groups leave.
Bytes available_memory();

/// Returns what the memory limits leave for the control groups in `own` (the text of /proc/self/cgroup):
/// their own limits and those of every group above them. Slurm limits the job and the step, above the task.
/// `mounted` is the directory in which the system shows the groups, /sys/fs/cgroup. Returns the largest
/// number if there is no limit.
Bytes left_by_cgroups(std::istream& own, const std::string& mounted);

/// A rank's vote on memory.
struct MemoryNeed {
  std::int32_t node = 0;
  Bytes bytes = 0;      // that the rank will touch
  Bytes available = 0;  // on its node, before any rank touches anything
};
/// Local. Compares the sum of each node's needs with the memory available there, and returns the same Status
/// on every rank that passes the same needs. A node that lacks memory gives Code::memory. The text begins
/// with `who`, as "an asynchronous save captures", and ends with `way_out`: the setting that helps.
Status check_nodes(std::span<const MemoryNeed> needs, std::string_view who, std::string_view way_out);

}  // namespace tailrace::node
