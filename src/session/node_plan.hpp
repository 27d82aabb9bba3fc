// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>

#include "comm/line.hpp"
#include "session/affinity.hpp"

namespace tailrace::session {

/// Collective over `node`, the ranks of one node. Its first rank prints where they run, if it logs at this
/// level. Blocks until all have told theirs.
void print_node_plan(comm::Line& node, const std::string& host, const RankCpus& mine);

}  // namespace tailrace::session
