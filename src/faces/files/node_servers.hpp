// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/exchange/requests.hpp"
#include "faces/files/group.hpp"
#include "ground/node/handed_memory.hpp"

namespace tailrace::files {

/// Packs the ranks of a group, in their order, for somebody who knows `all` ranks that compute. That takes a
/// few bytes for a group of all of them, and for each run of ranks at one distance from each other.
void pack_ranks(Packer& out, const std::vector<int>& ranks, const std::vector<int>& all);

/// Returns the ranks that `pack_ranks` has packed, for the same `all`. If `in` was cut off, it is not ok()
/// behind this, and the ranks mean nothing.
std::vector<int> unpack_ranks(Unpacker& in, const std::vector<int>& all);

/// The servers of a group's nodes, which answer other nodes for the ranks of theirs: the first server of each
/// node. The first rank of the group on each node hands it the memory of one shared file or global array.
/// If one server cannot take it, all ranks answer themselves. All functions are local.
class NodeServers {
 public:
  /// `group` must outlive it. `epoch` is the file's or array's number in the group.
  NodeServers(Group& group, std::uint64_t epoch);
  /// Tells this rank's server to let go of the memory, and waits for nothing.
  ~NodeServers();
  NodeServers(const NodeServers&) = delete;
  NodeServers& operator=(const NodeServers&) = delete;

  /// Returns the rank that is asked for what belongs to `rank`, a rank of another node. The first rank of a
  /// node stands for its server; where the ranks answer themselves, it is `rank`.
  [[nodiscard]] int asked_for(int rank) const { return asked_[static_cast<std::size_t>(rank)]; }
  /// On the first rank of a node with a server: hands it the memory, and waits until it answers for it; the
  /// ranks agree afterwards. On all others it does nothing. Logs the reason if the server cannot. `more` is
  /// what the kind of memory needs.
  void hand(node::Handed kind, const node::NodeMemory& memory, const Packer& more);
  /// Returns what the rank bids in the vote after hand(): 1 if its server could not take the memory.
  [[nodiscard]] std::int64_t bid() const { return has_failed_ ? 1 : 0; }
  /// Something else has failed between take_back() and hand(): bid() returns 1, too.
  void give_up() { has_failed_ = true; }
  /// After that vote: has `requests` go to the servers, or takes the memory back if a server has failed.
  void conclude(std::int64_t largest_bid, exchange::Requests& requests);
  /// Returns true, on every rank, if the servers answer.
  [[nodiscard]] bool do_answer() const { return do_answer_; }
  /// Wakes the server of this node, if there is one. Any thread.
  void ring() const;
  /// Waits until this rank's server, if it has the memory, has let go of it. Returns the bytes of the node's
  /// budget that it has drawn for it: they are free now.
  Bytes take_back();

 private:
  [[nodiscard]] Packer description() const;

  Group& group_;
  const std::uint64_t epoch_;
  std::vector<int> asked_;     // by rank
  std::optional<int> server_;  // to which this rank hands the memory, in the transport
  std::shared_ptr<const exchange::Requests::Answering> answering_;
  std::optional<std::uint64_t> handed_;
  bool has_failed_ = false;
  bool do_answer_ = false;
};

}  // namespace tailrace::files
