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

/// Packs the ranks of a group, in their order, for a process that knows `all` compute ranks. A group of all
/// compute ranks takes a few bytes, another group a few bytes for each run of ranks at equal distances.
void pack_ranks(Packer& out, const std::vector<int>& ranks, const std::vector<int>& all);

/// Returns the ranks that `pack_ranks` has packed, for the same `all`. If `in` was cut off, in.ok() is false
/// afterwards, and the ranks mean nothing.
std::vector<int> unpack_ranks(Unpacker& in, const std::vector<int>& all);

/// Has the first server of each node answer the requests of other nodes, in place of the group's ranks on its
/// node. For that, the first rank of the group on each node hands the server the memory of one shared file or
/// global array. If one server cannot take the memory, all ranks answer themselves. All functions are local.
class NodeServers {
 public:
  /// `group` must outlive it. `epoch` is the file's or array's number in the group.
  NodeServers(Group& group, std::uint64_t epoch);
  /// Tells this rank's server to let go of the memory, and waits for nothing.
  ~NodeServers();
  NodeServers(const NodeServers&) = delete;
  NodeServers& operator=(const NodeServers&) = delete;

  /// Returns the rank to ask for pages or elements of `rank`, a rank of another node. That is the first rank
  /// of its node, which stands for the server there, or `rank` itself if the ranks answer themselves.
  [[nodiscard]] int asked_for(int rank) const { return asked_[static_cast<std::size_t>(rank)]; }
  /// On the first rank of a node with a server: hands the server the memory, and waits until the server has
  /// taken it. Logs the reason if the server cannot. Does nothing on other ranks. The ranks vote afterwards:
  /// bid(), conclude(). `more` has what a server needs to know of this kind of memory.
  void hand(node::Handed kind, const node::NodeMemory& memory, const Packer& more);
  /// Returns what the rank bids in the vote after hand(): 1 if its server could not take the memory.
  [[nodiscard]] std::int64_t bid() const { return has_failed_ ? 1 : 0; }
  /// Has bid() return 1: something else has failed between take_back() and hand().
  void give_up() { has_failed_ = true; }
  /// After the vote on bid(): sends `requests` to the servers, or takes the memory back if a server has
  /// failed.
  void conclude(std::int64_t largest_bid, exchange::Requests& requests);
  /// Returns true, on every rank, if the servers answer.
  [[nodiscard]] bool do_answer() const { return do_answer_; }
  /// Wakes the server of this node, if there is one. Any thread.
  void ring() const;
  /// If this rank's server has the memory, waits until the server has let go of it. Returns the bytes of the
  /// node's budget that the server had drawn for it: they are free now.
  Bytes take_back();

 private:
  [[nodiscard]] Packer description() const;

  Group& group_;
  const std::uint64_t epoch_;
  std::vector<int> asked_;     // by rank
  std::optional<int> server_;  // transport rank of the server that gets this rank's memory
  std::shared_ptr<const exchange::Requests::Answering> answering_;
  std::optional<std::uint64_t> handed_;
  bool has_failed_ = false;
  bool do_answer_ = false;
};

}  // namespace tailrace::files
