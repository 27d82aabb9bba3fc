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

/// Returns the bytes that processes can still get on this node: the smaller of MemAvailable (proc(5)) and
/// what the memory limits of this process's control groups leave.
Bytes available_memory();

/// Returns the bytes that memory limits leave to the control groups in `own` (the text of /proc/self/cgroup).
/// Counts the limits of these groups and of every group above them: Slurm limits the job and the step, which
/// are above the task. `mounted` is the directory in which the system shows the groups, /sys/fs/cgroup.
/// Without a limit, returns the largest number.
Bytes left_by_cgroups(std::istream& own, const std::string& mounted);

/// The memory that a rank needs, as it tells the other ranks.
struct MemoryNeed {
  std::int32_t node = 0;
  Bytes bytes = 0;      // bytes that the rank will touch
  Bytes available = 0;  // available on its node, before any rank touches memory
};
/// Local. Compares, for each node, the sum of its ranks' needs with the memory available there. Returns the
/// same Status on every rank that passes the same needs. If a node lacks memory, returns Code::memory. The
/// text begins with `who`, such as "an asynchronous save captures", and ends with `way_out`, the setting that
/// helps.
Status check_nodes(std::span<const MemoryNeed> needs, std::string_view who, std::string_view way_out);

}  // namespace tailrace::node
