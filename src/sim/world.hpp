// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "exchange/roster.hpp"
#include "pipeline/server.hpp"
#include "sim/disk.hpp"
#include "sim/network.hpp"
#include "sim/rank.hpp"
#include "storage/faulty.hpp"

namespace tailrace::sim {

struct NodeShape {
  int ranks = 1;  // compute ranks
  int servers = 0;
};

/// How a server goes to sleep. All but the first are planted mistakes, which the simulation must find.
enum class SleepOrder { production, no_second_look, ticket_after_second_look };

struct Shape {
  std::vector<NodeShape> nodes;  // no servers at all: every rank serves itself
  std::uint64_t seed = 1;
  Bytes lane = 1 << 16;       // bytes of data that each rank's staging holds
  Bytes workspace = 1 << 20;  // bytes of each server
  int threads = 1;            // workers of each server
  bool mixed = false;         // world ranks dealt out to the nodes at random instead of node by node
  double disk_bytes_per_second = 1e9;
  Nanoseconds disk_latency = 100'000;
  bool reporting = false;  // counters travel while the run goes on
  SleepOrder sleep_order = SleepOrder::production;
  std::shared_ptr<storage::Target> storage = nullptr;  // what an earlier world has left; none: empty
  bool patient = false;                                // producers announce late, as where ranks share cores
  Nanoseconds timer = 0;  // sleepers on a doorbell also wake after this; 0: only when rung or by a message
};

/// What a simulation came to.
struct Outcome {
  bool finished = false;  // everybody came to the end of their program
  std::string stuck;      // otherwise: who waits for what
};

/// Memory that the ranks of one node share. Fresh pages of the kernel are zero, which is how lanes and bells
/// begin; a lane's pages exist once they are used, so that thousands of lanes fit into one process.
class Segment {
 public:
  Segment(int lanes, Bytes capacity);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;
  [[nodiscard]] comm::NodeBells* bells() const { return reinterpret_cast<comm::NodeBells*>(base_); }
  [[nodiscard]] comm::LaneHeader* header(int lane) const;
  [[nodiscard]] std::byte* data(int lane) const;

 private:
  std::byte* base_ = nullptr;
  Bytes size_ = 0;
  Bytes stride_ = 0;
};

/// A parallel machine in one thread: nodes with ranks and servers, shared memory, a network, a disk. The
/// servers, lanes, doorbells, agreements, codec and ledger in it are those of production; clock, scheduler,
/// network, threads and disk are simulated, and so are the callers' loops of session::Session and the calls
/// of streams::Stream (class Rank), which cannot be had without MPI.
class World {
 public:
  explicit World(const Shape& shape);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// Runs `program` on every compute rank until all are done or nothing can happen any more.
  Outcome run(std::function<Task<>(Rank&)> program);

  [[nodiscard]] int ranks() const { return roster_.computes(); }
  [[nodiscard]] int servers() const { return roster_.servers(); }
  [[nodiscard]] const exchange::Roster& roster() const { return roster_; }
  [[nodiscard]] Rank& rank(int c) { return *ranks_[static_cast<std::size_t>(c)]; }
  [[nodiscard]] const pipeline::Server& server(int s) const {
    return *servers_[static_cast<std::size_t>(s)].server;
  }
  [[nodiscard]] Scheduler& scheduler() { return scheduler_; }
  [[nodiscard]] Network& network() { return *network_; }
  /// Compute rank `c` stops for ever at its next step.
  void lose(int c);
  /// The storage as everybody sees it, without faults and without a clock.
  [[nodiscard]] storage::Target& storage() const { return *storage_; }
  /// The storage as server `s` sees it: give it a fault plan.
  [[nodiscard]] storage::FaultyTarget& storage_of(int s) const {
    return *servers_[static_cast<std::size_t>(s)].target;
  }
  /// Counters that server 0 gathered at the end, by transport rank.
  [[nodiscard]] const std::map<int, pipeline::Statistics>& statistics() const { return gathered_; }
  /// Why a server would have ended the job; "" if none would.
  [[nodiscard]] const std::string& given_up() const { return given_up_; }
  /// What the watchdogs of all servers would print.
  [[nodiscard]] std::string waiting_for() const;

 private:
  struct Node {
    std::unique_ptr<Segment> segment;  // none without servers
    std::vector<Actor*> actors;
  };
  struct ServerSeat {
    std::shared_ptr<storage::FaultyTarget> target;
    std::unique_ptr<pipeline::OpenFiles> files;
    std::unique_ptr<executor::Executor> executor;
    std::unique_ptr<pipeline::Statistics> statistics;
    std::map<int, std::unique_ptr<comm::PrivateLane>> mirrored;
    std::unique_ptr<comm::Switchboard> board;  // of a server rank
    std::unique_ptr<comm::Line> line;
    std::unique_ptr<pipeline::Server> server;
    std::unique_ptr<Actor> actor;  // none where ranks serve themselves
    comm::Doorbell* bell = nullptr;
  };

  void deal_out_ranks();
  void make_segments();
  void make_server(int s);
  void make_rank(int c);
  void seat(Actor& actor, int node, int transport_rank);
  void poke_node(int node);
  [[nodiscard]] int lane_number(int c) const;
  Task<> serve(int s);

  Shape shape_;
  Scheduler scheduler_;
  exchange::Roster roster_;
  std::unique_ptr<Network> network_;
  std::shared_ptr<const comm::Members> all_;
  std::shared_ptr<const comm::Members> computes_;
  std::shared_ptr<storage::Target> storage_;
  std::shared_ptr<Disk> disk_;
  std::vector<Node> nodes_;
  std::vector<ServerSeat> servers_;
  std::vector<std::shared_ptr<pipeline::LentLane>> lent_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::map<int, pipeline::Statistics> gathered_;
  std::string given_up_;
  std::function<Task<>(Rank&)> program_;
};

}  // namespace tailrace::sim
