// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "engine/exchange/roster.hpp"
#include "ground/settings/settings.hpp"

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

/// Makes the roster: compute ranks keep their order; without servers each compute rank is its own server.
exchange::Roster make_roster(const std::vector<RankFacts>& world, const std::vector<char>& is_server);

/// The memory that a session may use on each node, in bytes.
struct Declared {
  Bytes memory = 0;   // the budget of the node
  Bytes staging = 0;  // the part of it that streams and servers use
};
/// Local. Returns the sizes that `settings` give. A size that they do not give is chosen for a node with
/// `available` bytes and `ranks` ranks.
Declared declare(const Settings& settings, Bytes available, int ranks);
/// Local. Returns the bytes of an aggregator's stripes. If `settings` do not give them, the stripes of all
/// aggregators of a node take at most a quarter of `memory`.
Bytes io_buffer_of(const Settings& settings, Bytes memory);

/// The parts into which a node's staging is cut.
struct Quotas {
  std::vector<Bytes> lane;       // per compute rank: bytes of its quota, descriptors included
  std::vector<Bytes> workspace;  // per server
  std::vector<Bytes> kept{};     // per compute rank: bytes for definitions; empty if servers are not replaced

  /// Takes an eighth of each lane for the definitions of open streams.
  void keep_definitions();
  [[nodiscard]] Bytes kept_of(int c) const { return kept.empty() ? 0 : kept[static_cast<std::size_t>(c)]; }
};
/// Cuts each node's `staging`: three quarters for capture (by its own ranks and those that send to its
/// servers), a quarter for its servers. Without servers all of it is workspace of the ranks.
Quotas cut_staging(const exchange::Roster& roster, Bytes staging);
/// Returns the bytes that the lanes of one more kind take on a node: those of its ranks, and the rings in
/// which its servers take them.
Bytes more_lanes_on(int node, const exchange::Roster& roster, const Quotas& quotas);

/// Returns the line of the plan that names the servers. A session prints the plan, and `tailrace plan` prints
/// it without running.
std::string plan_text(const exchange::Roster& roster, int threads);
/// Returns the line of the plan that gives the budget of each node and its uses.
std::string memory_text(const exchange::Roster& roster, const Quotas& quotas, const Declared& declared,
                        const Settings& settings);

}  // namespace tailrace::session
