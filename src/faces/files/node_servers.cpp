// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/files/node_servers.hpp"

#include <utility>

#include "ground/base/log.hpp"
#include "ground/base/text.hpp"

namespace tailrace::files {

namespace {

/// The ranks first, first + step, ..., `count` of them.
struct RankRun {
  int first = 0;
  int step = 0;
  int count = 1;
};

}  // namespace

void pack_ranks(Packer& out, const std::vector<int>& ranks, const std::vector<int>& all) {
  std::vector<RankRun> runs;
  if (ranks != all) {
    for (const int rank : ranks) {
      if (!runs.empty() && runs.back().count == 1) runs.back().step = rank - runs.back().first;
      if (!runs.empty() && rank == runs.back().first + runs.back().count * runs.back().step)
        ++runs.back().count;
      else
        runs.push_back({rank});
    }
  }
  out.put_list(std::span<const RankRun>(runs));
}

std::vector<int> unpack_ranks(Unpacker& in, const std::vector<int>& all) {
  const std::vector<RankRun> runs = in.get_list<RankRun>();
  if (runs.empty()) return all;
  std::vector<int> ranks;
  for (const RankRun& run : runs)
    for (int i = 0; i < run.count; ++i) ranks.push_back(run.first + i * run.step);
  return ranks;
}

NodeServers::NodeServers(Group& group, std::uint64_t epoch) : group_(group), epoch_(epoch) {
  const session::Topology& topology = group.service().session().topology();
  const comm::Members& members = *group.line().members();
  const exchange::NodeRanks& ranks = group.node_ranks();
  auto answering = std::make_shared<exchange::Requests::Answering>();
  answering->nodes = ranks.nodes();
  std::vector<std::optional<int>> servers;
  for (int node = 0; node < ranks.nodes(); ++node) {
    const int first = members.transport_rank(ranks.of(node).front());
    servers.push_back(topology.first_server_on(topology.node_of(first)));
    if (servers.back()) ++answering->nodes_with_server;
  }
  for (int rank = 0; rank < group.size(); ++rank) {
    const int node = ranks.seat(rank).node;
    const std::optional<int>& server = servers[static_cast<std::size_t>(node)];
    asked_.push_back(server ? ranks.of(node).front() : rank);
    answering->by_rank.push_back(server.value_or(members.transport_rank(rank)));
  }
  if (group.node().rank() == 0) server_ = servers[static_cast<std::size_t>(ranks.seat(group.rank()).node)];
  if (answering->nodes_with_server > 0) answering_ = std::move(answering);
}

NodeServers::~NodeServers() {
  if (handed_) group_.service().session().giver().abandon(*handed_);
}

/// Packs what a server needs to know of the group. It comes first, whatever the kind of memory.
Packer NodeServers::description() const {
  const comm::Members& members = *group_.line().members();
  std::vector<int> transport_ranks;
  for (int rank = 0; rank < group_.size(); ++rank) transport_ranks.push_back(members.transport_rank(rank));
  Packer out;
  out.put(group_.line().number()).put(epoch_);
  pack_ranks(out, transport_ranks, group_.service().session().topology().roster().compute_transport);
  return out;
}

void NodeServers::hand(node::Handed kind, const node::NodeMemory& memory, const Packer& more) {
  if (!server_) return;
  session::Session& session = group_.service().session();
  Packer out = description();
  out.put_bytes(more.bytes());
  const Result<std::uint64_t> handed = session.giver().hand(*server_, kind, memory, out.take());
  if (handed.is_ok()) {
    handed_ = *handed;
    return;
  }
  has_failed_ = true;
  log(LogLevel::warn,
      cat("server rank ", *server_, " on ", session.topology().host(),
          " cannot answer other nodes for its compute ranks (", handed.status().text(),
          "): all compute ranks answer themselves, in calls of this library, or by a service thread if MPI "
          "provides MPI_THREAD_MULTIPLE"));
}

void NodeServers::conclude(std::int64_t largest_bid, exchange::Requests& requests) {
  do_answer_ = answering_ != nullptr && largest_bid <= 0;
  if (!do_answer_) {
    (void)take_back();
    for (int rank = 0; rank < group_.size(); ++rank) asked_[static_cast<std::size_t>(rank)] = rank;
  }
  requests.send_to(do_answer_ ? answering_ : nullptr);
  requests.say_how();
}

void NodeServers::ring() const {
  node::NodeBells* const bells = group_.service().session().memory().bells();
  if (bells != nullptr) bells->reader[0].ring();  // the first server of a node is its reader 0
}

Bytes NodeServers::take_back() {
  if (!handed_) return 0;
  const ByteVector told = group_.service().session().giver().take_back(*std::exchange(handed_, {}));
  return Unpacker(told).get<Bytes>();
}

}  // namespace tailrace::files
