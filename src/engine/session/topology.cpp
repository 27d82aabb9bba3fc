// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/session/topology.hpp"

#include <algorithm>
#include <utility>

#include "engine/session/affinity.hpp"

namespace tailrace::session {

Topology::Topology(int world_rank, std::vector<RankFacts> ranks, const std::vector<char>& serves)
    : world_rank_(world_rank),
      ranks_(std::move(ranks)),
      roster_(make_roster(ranks_, serves)),
      is_server_(serves[static_cast<std::size_t>(world_rank)] != 0) {
  const auto& list = is_server_ ? roster_.server_transport : roster_.compute_transport;
  me_ = static_cast<int>(std::find(list.begin(), list.end(), world_rank_) - list.begin());
}

std::optional<int> Topology::compute_rank(int world_rank) const {
  const auto& computes = roster_.compute_transport;
  const auto found = std::find(computes.begin(), computes.end(), world_rank);
  if (found == computes.end()) return {};
  return static_cast<int>(found - computes.begin());
}

std::vector<int> Topology::ranks_of_node() const {
  std::vector<int> list;
  for (int rank = 0; rank < world_size(); ++rank) {
    if (node_of(rank) == node()) list.push_back(rank);
  }
  return list;
}

int Topology::ranks_on(int node) const {
  return static_cast<int>(std::ranges::count(ranks_, node, &RankFacts::node));
}

int Topology::servers_on(int node) const {
  if (roster_.self_served) return 0;
  return static_cast<int>(std::count(roster_.server_node.begin(), roster_.server_node.end(), node));
}

std::optional<int> Topology::first_server_on(int node) const {
  if (servers_on(node) == 0) return {};
  const auto first = std::ranges::find(roster_.server_node, node) - roster_.server_node.begin();
  return roster_.server_transport[static_cast<std::size_t>(first)];
}

int Topology::server_of_node() const {
  const auto servers = roster_.server_node.begin();
  return static_cast<int>(std::count(servers, servers + me_, node()));
}

int Topology::ranks_of_a_core() const {
  const int cores = facts(world_rank_).node_cpus;
  return (ranks_on(node()) + cores - 1) / cores;
}

int Topology::encoder_threads(const Settings& settings, int world_rank) const {
  if (settings.threads > 0) return settings.threads;
  const RankFacts& server = facts(world_rank);
  return spare_threads(server.node_cpus, ranks_on(server.node), servers_on(server.node), server.cpus);
}

}  // namespace tailrace::session
