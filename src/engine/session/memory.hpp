// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "engine/session/topology.hpp"
#include "ground/comm/line.hpp"
#include "ground/node/budget.hpp"
#include "ground/node/lane.hpp"
#include "ground/node/node_memory.hpp"

namespace tailrace::session {

/// The memory of this rank's node that a session uses: its budget, and the staging of streams. tr_init
/// allocates the headers and descriptors of the lanes. The data of the lanes, most of the staging memory, is
/// allocated for the fields that streams define, and more of it when servers are behind.
class Memory {
 public:
  /// `all` is the line of all ranks, `node` that of the ranks of this node.
  Memory(const Topology& topology, comm::Line& all, comm::Line& node)
      : topology_(topology), all_(all), node_(node) {}
  /// Logs, on the node's first rank, how much of the budget was taken at most.
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// Collective over all ranks. Cuts the memory that `settings` declare, or that is available, into quotas,
  /// and sets Settings::io_buffer. With `keeps_steps` each lane has room for the definitions that another
  /// server would need. Returns the same Status on every rank.
  Status declare(Settings& settings, bool keeps_steps);
  /// Collective over all ranks, after declare(). Makes the memory that the ranks of a node share. Returns the
  /// same Status on every rank.
  Status share();
  /// Collective over compute ranks, which vote by `agree`. The first call draws the staging memory on the
  /// budget, and allocates its first part; later calls do nothing. Blocks until all ranks have done so. Call
  /// it before anything is put. Returns Code::memory on every rank if a node lacks it. `call` is the
  /// program's call.
  Status open_staging(const std::string& call, const std::function<comm::Verdict(comm::Vote)>& agree);
  /// Local. Allocates the first `bytes` bytes of the data of this rank's lane. Returns Code::memory if the
  /// node does not have them any more.
  Status grow_lane(Bytes bytes);
  /// Local. Returns this rank's part of what the lanes of one more kind take on its node: a ring at each
  /// rank, and one of the same size at the rank's home.
  [[nodiscard]] Bytes share_of_more_lanes() const;
  /// Local. Returns Code::memory if the lanes of this many more kinds do not fit the budget of a node that
  /// has servers alone, which draw for them only after all compute ranks have voted. The same on every rank.
  [[nodiscard]] Status check_more_lanes(Bytes kinds) const;
  /// Local. Draws a server's share of the staging of a node that has no compute ranks.
  Status take_staging_without_ranks();

  [[nodiscard]] node::Budget& budget() { return *budget_; }
  [[nodiscard]] const Declared& declared() const { return declared_; }
  [[nodiscard]] const Quotas& quotas() const { return quotas_; }
  [[nodiscard]] Bytes smallest_workspace() const;
  /// Returns the setting with which a `share` of the staging memory becomes `needed` bytes, for error texts.
  [[nodiscard]] std::string staging_for(Bytes needed, Bytes share) const;
  /// Local. Keeps the draw of the coordinates of a layout, until forget_coordinates() or the session's end.
  void keep_coordinates(std::int64_t layout, std::unique_ptr<node::Draw> drawn) {
    coordinates_[layout] = std::move(drawn);
  }
  void forget_coordinates(std::int64_t layout) { coordinates_.erase(layout); }
  /// Returns the node's bells, or nullptr if the node has no lanes.
  [[nodiscard]] node::NodeBells* bells() const { return bells_; }
  /// Returns the memory of the lane of a node's rank: its header, and behind it its descriptors and data.
  [[nodiscard]] std::byte* lane_of(int node_rank) const;

 private:
  [[nodiscard]] Status check_staging(Bytes available) const;
  [[nodiscard]] Bytes my_staging() const;
  /// Returns the bytes of this rank's lane in its part of the memory, from its header on; 0 if it has none.
  [[nodiscard]] Bytes lane_size(int rank) const;
  /// Returns where the lane of this rank begins in its part of the memory.
  [[nodiscard]] Bytes lane_at() const;
  Status open_lane();
  void print_huge_pages(const std::vector<ByteVector>& contributions) const;

  const Topology& topology_;
  comm::Line& all_;
  comm::Line& node_;
  Declared declared_;
  Quotas quotas_;
  bool huge_pages_ = false;
  std::unique_ptr<node::NodeMemory> memory_;
  std::unique_ptr<node::Budget> budget_;
  std::map<std::int64_t, std::unique_ptr<node::Draw>> coordinates_;  // by the layout's number
  std::optional<node::Draw> staging_;                                // this rank's part of its node's staging
  Bytes there_ = 0;               // bytes that are allocated at the begin of this rank's part
  Bytes last_ = 0;                // in this rank's part: all from here on is allocated, for kept definitions
  bool staging_is_open_ = false;  // the same on all compute ranks
  node::NodeBells* bells_ = nullptr;
};

}  // namespace tailrace::session
