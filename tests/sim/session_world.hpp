// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/session/session.hpp"
#include "faces/files/group.hpp"
#include "faces/files/service.hpp"
#include "fibre_world.hpp"
#include "ground/sim/collective.hpp"
#include "ground/sim/counters.hpp"
#include "ground/sim/disk.hpp"
#include "ground/sim/exposed.hpp"
#include "ground/storage/faulty.hpp"
#include "ground/storage/target.hpp"

namespace tailrace::sim {

struct NodeShape {
  int ranks = 1;  // compute ranks
  int servers = 0;
};

/// Returns nodes of `ranks` ranks that serve themselves, `ranks_per_node` on each node.
std::vector<NodeShape> nodes_of(int ranks, int ranks_per_node);

/// A job of the simulated world. All its ranks use the same storage.
struct Job {
  std::vector<NodeShape> nodes;              // if no node has a server, every rank serves itself
  std::string settings;                      // the options of tr_init
  std::map<int, std::string> more_settings;  // further settings of single ranks
  std::shared_ptr<storage::Target> storage = storage::memory_target();
  std::uint64_t seed = 1;
  Bytes staging = Bytes{1} << 20;    // of each node
  bool mixed = false;                // ranks are placed on the nodes at random
  bool crowded = false;              // ranks share cores, and announce their puts late
  int threads = 1;                   // of each server, for jobs that compute
  double disk_bytes_per_second = 0;  // above 0: `costs` are those of such a slow_disk()
  /// Without costs, turns and messages take random times, and storage takes none.
  std::optional<Costs> costs = std::nullopt;
  bool limits_parks = false;       // if false, a rank that misses a ring sleeps until a message comes
  bool keeps_steps = false;        // the only server may be replaced
  bool pauses_in_storage = false;  // calls of storage take time; not with servers or asynchronous calls
  /// Called on each server before it serves. The result is destroyed once the server has ended.
  std::function<std::shared_ptr<void>(session::Session&)> on_server = nullptr;
  /// Puts something between each server and its one-sided counters.
  std::function<std::unique_ptr<comm::Counters>(std::unique_ptr<comm::Counters>)> around_counters = nullptr;
  bool lacks_gets = false;  // the MPI has no one-sided gets
  bool parks_late = false;  // a planted mistake: see FibreRank::park_on_a_late_ticket()
};

/// One compute rank between tr_init and tr_finalize, with its session and its service for files.
class SessionRank {
 public:
  SessionRank(FibreRank& fibre, session::Session& session)
      : fibre_(fibre), session_(session), service_(session) {}

  [[nodiscard]] int rank() const { return session_.rank(); }
  [[nodiscard]] int ranks() const { return session_.ranks(); }
  [[nodiscard]] FibreRank& fibre() { return fibre_; }
  [[nodiscard]] session::Session& session() { return session_; }
  [[nodiscard]] files::Service& files() { return service_; }
  /// Computes for this long. The rank receives and sends nothing meanwhile.
  void compute(Nanoseconds duration) { fibre_.stall(duration); }
  /// Returns the group of `ranks`, which stand for a communicator of the program. Collective over `ranks` in
  /// the first call with them. Returns the same Status on each of them.
  Result<std::shared_ptr<files::Group>> group(const std::vector<int>& ranks);

 private:
  FibreRank& fibre_;
  session::Session& session_;
  files::Service service_;
  std::map<std::vector<int>, std::shared_ptr<files::Group>> groups_;
};

/// Runs a program on the library's own session, streams, files and checkpoints, in simulated time.
class SessionWorld {
 public:
  explicit SessionWorld(Job job);

  [[nodiscard]] FibreWorld& world() { return world_; }
  [[nodiscard]] const exchange::Roster& roster() const { return roster_; }
  [[nodiscard]] int ranks() const { return roster_.computes(); }
  [[nodiscard]] int servers() const { return roster_.servers(); }
  [[nodiscard]] storage::Target& storage() const { return *job_.storage; }
  /// Returns the storage as server `s` sees it. A test gives it a fault plan.
  [[nodiscard]] storage::FaultyTarget& storage_of(int s) const;
  /// Returns the storage as compute rank `c` sees it.
  [[nodiscard]] storage::FaultyTarget& storage_at(int c) const {
    return *targets_[static_cast<std::size_t>(roster_.compute_transport[static_cast<std::size_t>(c)])];
  }
  /// Stops compute rank `c` for ever, as if it were killed.
  void lose(int c) { world_.rank(roster_.compute_transport[static_cast<std::size_t>(c)]).lose(); }
  /// Destroys the only server, whatever it is doing, and makes another one. Returns false, and does nothing,
  /// if the server's session has not begun or is ending.
  bool replace_server();
  /// Replaces the server `times` times, with random times in between. `dice` must live as long as the world.
  void replace_at_random(Scheduler& dice, std::int64_t times);
  /// Counts the servers that were replaced.
  [[nodiscard]] int replaced() const { return replaced_; }
  /// Returns the session of compute rank `c`, while its program runs.
  [[nodiscard]] session::Session& session_of(int c) const {
    return *sessions_[static_cast<std::size_t>(roster_.compute_transport[static_cast<std::size_t>(c)])];
  }

  /// Runs `program` between tr_init and tr_finalize on each compute rank, once in a world. Returns the ranks
  /// that have not ended, as FibreWorld::run() does; if there are any, also what the servers wait for.
  /// failures() then has the errors of tr_init and tr_finalize.
  [[nodiscard]] std::vector<std::string> run(const std::function<void(SessionRank&)>& program,
                                             Nanoseconds limit = FibreWorld::hour);
  [[nodiscard]] const std::vector<Status>& failures() const { return failures_; }
  /// Returns what the processes of a job with costs have spent; they are numbered as in the transport.
  [[nodiscard]] Disk& disk() { return *disk_; }
  /// Returns the memory that ranks expose to servers.
  [[nodiscard]] const SharedExposed& exposed() const { return exposed_; }
  /// Counts the collective calls that the servers have made on files.
  [[nodiscard]] std::int64_t collective_calls() const { return meetings_->made(); }
  /// Says that the MPI has no shared file pointers.
  void break_shared_pointers() { meetings_->break_pointers(); }

 private:
  void deal_out_ranks();
  void seat(int rank);
  [[nodiscard]] session::Facts facts_of(int rank);
  void run_rank(FibreRank& fibre, const std::function<void(SessionRank&)>& program);
  void look_at_memory_of(int node);
  void meet(const char* what, int rank, int members);
  [[nodiscard]] std::vector<std::string> waiting_servers() const;

  Job job_;
  std::vector<session::RankFacts> ranks_;
  std::vector<char> serves_;
  exchange::Roster roster_;
  FibreWorld world_;
  std::shared_ptr<Disk> disk_;                // if the job has costs
  std::unique_ptr<Meetings> meetings_;        // of the servers, for collective calls on files
  std::unique_ptr<SharedCounters> counters_;  // of the servers
  SharedExposed exposed_{world_.scheduler(), static_cast<std::size_t>(world_.size())};
  std::vector<std::shared_ptr<storage::FaultyTarget>> targets_;  // by rank
  std::map<std::string, int> come_;                              // by what is made: the ranks that are there
  std::map<int, std::vector<int>> node_ranks_;
  std::map<int, Nanoseconds> clocks_;        // by node
  std::vector<session::Session*> sessions_;  // by rank
  std::vector<Status> failures_;
  int replaced_ = 0;
  int leaving_ = 0;  // how many compute ranks have come to the end of their session
};

}  // namespace tailrace::sim
