// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <mpi.h>

#include <string>

#include "base/types.hpp"
#include "session/affinity.hpp"

namespace tailrace::session {

/// What a rank adds to the plan of its node.
struct NodeShare {
  RankCpus place;
  Bytes staging = 0;     // of the node's shared memory; the same on all its ranks, 0 if there is none
  Bytes huge_pages = 0;  // of it, mapped by this rank in huge pages
  bool huge_pages_asked = false;
};

/// Collective over `node`, the ranks of one node; its first rank prints, if it logs at this level. Blocks
/// until all have told theirs.
void print_node_plan(MPI_Comm node, const std::string& host, const NodeShare& mine);

}  // namespace tailrace::session
