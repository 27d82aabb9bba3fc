// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "base/settings.hpp"
#include "exchange/roster.hpp"

namespace tailrace::session {

/// Each rank of the world tells these facts about itself.
struct RankFacts {
  int node = 0;
  std::string host;
  std::string program;  // file name of the executable
  int cpus = 0;         // CPUs on which the rank may run; 0 if the system does not tell
  int node_cpus = 0;    // CPUs on which any rank of its node may run
};

/// Returns which ranks become servers under `choice`; the same on every rank. Rank 0 computes unless it is
/// named. Returns Code::settings if the choice names nothing that exists or leaves nobody to compute.
Result<std::vector<char>> select_servers(const ServerChoice& choice, const std::vector<RankFacts>& world);

/// Makes the roster: compute ranks keep their order; without servers each is its own.
exchange::Roster make_roster(const std::vector<RankFacts>& world, const std::vector<char>& is_server);

/// Returns the staging memory of a node if no setting says it: an eighth of what is `available` there, and
/// for each of its `ranks` no more than some steps of a large share, because all of it is allocated at once.
Bytes default_staging(Bytes available, int ranks);

/// The parts into which a node's declared budget is cut.
struct Budget {
  std::vector<Bytes> lane;       // per compute rank: bytes of its quota, descriptors included
  std::vector<Bytes> workspace;  // per server
  std::vector<Bytes> kept{};     // per compute rank: bytes for definitions; empty if servers are not replaced

  /// Takes an eighth of each lane for the definitions of open streams.
  void keep_definitions();
  [[nodiscard]] Bytes kept_of(int c) const { return kept.empty() ? 0 : kept[static_cast<std::size_t>(c)]; }
};
/// Cuts each node's `staging`: three quarters for capture (by its own ranks and those that send to its
/// servers), a quarter for its servers. Without servers all of it is workspace of the ranks.
Budget cut_budget(const exchange::Roster& roster, Bytes staging);

/// Returns the plan in one line: a session prints it, and `tailrace plan` prints it without running.
std::string plan_text(const exchange::Roster& roster, const Budget& budget, Bytes staging, int threads);

}  // namespace tailrace::session
