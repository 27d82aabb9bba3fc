// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/exchange/group.hpp"

#include <map>

#include "engine/exchange/channel.hpp"

namespace tailrace::exchange {

Group::Group(std::unique_ptr<comm::Line> line, const std::function<int(int)>& node_of,
             executor::Threads& threads, const Settings& settings, node::Budget& budget)
    : line_(std::move(line)), threads_(threads), settings_(settings), budget_(budget) {
  std::map<int, int> lowest;  // the group's lowest rank on each node of the session
  std::vector<int> mine;      // ranks of the node: in the transport, and in the group
  std::vector<int> ranks;
  const int my_node = node_of(line_->members()->transport_rank(rank()));
  for (int r = 0; r < size(); ++r) {
    const int place = line_->members()->transport_rank(r);
    const int node = node_of(place);
    nodes_.push_back(lowest.try_emplace(node, r).first->second);
    if (node != my_node) continue;
    mine.push_back(place);
    ranks.push_back(r);
  }
  node_ = std::make_unique<comm::Line>(line_->board(), line_->number() | comm::line_number::node_bit,
                                       std::make_shared<const comm::Members>(std::move(mine)));
  node_->name_ranks(
      [this, ranks](int rank) { return line_->name_of(ranks[static_cast<std::size_t>(rank)]); });
}

Group::~Group() = default;

const NodeRanks& Group::node_ranks() {
  if (node_ranks_ == nullptr) node_ranks_ = std::make_unique<NodeRanks>(nodes_);
  return *node_ranks_;
}

Result<Channel*> Group::channel(const std::string& call) {
  if (channel_ == nullptr) {
    TR_TRY(agree({{}, call, {}}).status);
    Result<std::unique_ptr<Channel>> made = Channel::create(*this);
    TR_TRY(made.status());
    channel_ = std::move(*made);
  }
  return channel_.get();
}

}  // namespace tailrace::exchange
