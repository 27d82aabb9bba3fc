// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <optional>
#include <vector>

#include "engine/session/select.hpp"

namespace tailrace::session {

/// The call to which all votes belong until a session has begun.
inline constexpr const char* init_call = "tr_init";

/// All ranks of a session as one of them sees them: where they run, and what they do. A rank of the world is
/// a rank of the session's transport. Compute ranks and servers also have numbers of their own, from 0.
class Topology {
 public:
  Topology(int world_rank, std::vector<RankFacts> ranks, const std::vector<char>& serves);

  [[nodiscard]] int world_rank() const { return world_rank_; }
  [[nodiscard]] int world_size() const { return static_cast<int>(ranks_.size()); }
  [[nodiscard]] const exchange::Roster& roster() const { return roster_; }
  [[nodiscard]] bool is_server() const { return is_server_; }
  /// Returns this rank's number among the servers if it is one, else among the compute ranks.
  [[nodiscard]] int me() const { return me_; }
  /// Returns the compute rank of a rank of the world, or nothing if that is a server.
  [[nodiscard]] std::optional<int> compute_rank(int world_rank) const;
  [[nodiscard]] const RankFacts& facts(int world_rank) const {
    return ranks_[static_cast<std::size_t>(world_rank)];
  }
  [[nodiscard]] const std::string& host() const { return facts(world_rank_).host; }
  [[nodiscard]] int node_of(int world_rank) const { return facts(world_rank).node; }
  /// Returns the node of this rank: the same number on all ranks of the node, and on no others.
  [[nodiscard]] int node() const { return node_of(world_rank_); }
  /// Returns the ranks of the world on this rank's node, in their order.
  [[nodiscard]] std::vector<int> ranks_of_node() const;
  [[nodiscard]] int ranks_on(int node) const;
  [[nodiscard]] int servers_on(int node) const;
  /// Returns the rank of the world that is the first server of a node, or nothing if the node has none.
  [[nodiscard]] std::optional<int> first_server_on(int node) const;
  /// Returns this server's number among those of its node.
  [[nodiscard]] int server_of_node() const;
  /// Returns the number of the node's ranks that take turns on a core: 1 if each has its own.
  [[nodiscard]] int ranks_of_a_core() const;
  [[nodiscard]] bool is_crowded() const { return ranks_of_a_core() > 1; }
  /// Returns the encoding threads of the server that has this rank in the world.
  [[nodiscard]] int encoder_threads(const Settings& settings, int world_rank) const;

 private:
  int world_rank_;
  std::vector<RankFacts> ranks_;
  exchange::Roster roster_;
  bool is_server_;
  int me_;
};

}  // namespace tailrace::session
