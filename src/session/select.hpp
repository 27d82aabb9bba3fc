// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "base/settings.hpp"
#include "exchange/roster.hpp"

namespace tailrace::session {

/// What a rank of the world says of itself.
struct RankFacts {
  int node = 0;
  std::string host;
  std::string program;  // file name of the executable
  int cpus = 0;         // on which it may run; 0 if the system does not tell
  int node_cpus = 0;    // on which any rank of its node may run
};

/// Which ranks become servers under `choice`; the same on every rank. Rank 0 computes unless it is named.
/// Code::settings if the choice names nothing that exists or leaves nobody to compute.
Result<std::vector<char>> select_servers(const ServerChoice& choice, const std::vector<RankFacts>& world);

/// Who is who: compute ranks keep their order; without servers each is its own.
exchange::Roster make_roster(const std::vector<RankFacts>& world, const std::vector<char>& is_server);

/// The staging memory of a node where the setting does not say: an eighth of what is `available` there, and
/// for each of its `ranks` no more than some steps of a large share, because all of it is allocated at once.
Bytes default_staging(Bytes available, int ranks);

/// How a node's declared budget is cut.
struct Budget {
  std::vector<Bytes> lane;       // per compute rank: bytes of its quota, descriptors included
  std::vector<Bytes> workspace;  // per server
};
/// Three quarters of each node's `staging` for capture (its own ranks and those that send to its servers), a
/// quarter for its servers. Without servers all of it is workspace of the ranks.
Budget cut_budget(const exchange::Roster& roster, Bytes staging);

/// The plan in one line: what a session prints, and what `tailrace plan` tells without running.
std::string plan_text(const exchange::Roster& roster, const Budget& budget, Bytes staging, int threads);

}  // namespace tailrace::session
