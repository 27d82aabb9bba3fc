// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "engine/pipeline/statistics.hpp"
#include "engine/session/computing.hpp"
#include "engine/session/facts.hpp"
#include "engine/session/memory.hpp"
#include "engine/session/serving.hpp"
#include "formats/encoders/servers.hpp"
#include "ground/comm/call_watch.hpp"
#include "ground/comm/switchboard.hpp"
#include "ground/executor/threads.hpp"
#include "ground/node/handed_memory.hpp"
#include "ground/settings/settings.hpp"
#include "ground/storage/faulty.hpp"

namespace tailrace::session {

/// The storage of a session, as its settings ask for it.
class Storage {
 public:
  Storage() = default;
  /// Logs whether the failures that TAILRACE_FAULT asks for have struck.
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  /// Local. Opens `given`, or for nullptr the target that `settings` name. Throttles it, and makes its calls
  /// fail on this rank of the world, if `settings` ask for that.
  Status open(const Settings& settings, std::shared_ptr<storage::Target> given, int world_rank);
  [[nodiscard]] const std::shared_ptr<storage::Target>& target() const { return target_; }
  /// Returns the same storage as streams see it: their stores of objects are files.
  [[nodiscard]] const std::shared_ptr<storage::Target>& of_streams() const { return of_streams_; }

 private:
  std::shared_ptr<storage::Target> target_;
  std::shared_ptr<storage::Target> of_streams_;
  std::shared_ptr<storage::FaultyTarget> faulty_;  // set if TAILRACE_FAULT asks for failures
  int world_rank_ = 0;
};

/// The library's life inside one job, on one rank.
class Session {
 public:
  /// Collective over all ranks of `transport`, which must outlive the session. Returns the same Status on
  /// every rank. On servers, the caller then calls serving().run().
  static Result<std::unique_ptr<Session>> create(comm::Transport& transport, Facts facts,
                                                 LedgerFactory make_ledger);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  [[nodiscard]] const Settings& settings() const { return settings_; }
  [[nodiscard]] const Topology& topology() const { return *topology_; }
  [[nodiscard]] bool is_server() const { return topology_->is_server(); }
  /// Returns a name that no other session has, on all ranks the same.
  [[nodiscard]] const std::string& id() const { return id_; }
  [[nodiscard]] int rank() const { return topology_->me(); }                  // among compute ranks
  [[nodiscard]] int ranks() const { return topology_->roster().computes(); }  // compute ranks
  [[nodiscard]] comm::Switchboard& board() { return board_; }
  /// Return the lines of all ranks, of those of this node, and of the compute ranks.
  [[nodiscard]] comm::Line& line() { return *line_; }
  [[nodiscard]] comm::Line& node_line() { return *node_line_; }
  [[nodiscard]] comm::Line& computes() { return computing_->line(); }
  [[nodiscard]] Memory& memory() { return *memory_; }
  [[nodiscard]] storage::Target& target() { return *storage_.target(); }
  [[nodiscard]] storage::Target& streams_target() { return *storage_.of_streams(); }
  /// Returns the threads of a compute rank's files and checkpoints.
  [[nodiscard]] executor::Threads& threads() { return *threads_; }
  [[nodiscard]] Stops& stops() { return *stops_; }
  [[nodiscard]] pipeline::Statistics& statistics() { return statistics_; }
  /// Returns what this process has spent since the session began.
  [[nodiscard]] pipeline::Process spent();
  /// Returns Code::unsupported if the servers cannot write the file `path` together (Method::is_collective):
  /// the text says why.
  [[nodiscard]] Status check_collective(const std::string& path);
  /// On one compute rank. Blocks until all servers have tried to append to a new file of this name together,
  /// and removed it. Returns why they cannot (Method::appends).
  [[nodiscard]] Status try_appends(const std::string& path);
  /// Collective over all ranks. Does Facts::make_exposed for this rank.
  [[nodiscard]] Result<std::unique_ptr<comm::ExposedMemory>> make_exposed(Bytes bytes, std::vector<int> from,
                                                                          std::function<void()> wake = {}) {
    return make_exposed_(board_.transport(), bytes, std::move(from), std::move(wake));
  }
  [[nodiscard]] const encoders::OfServers& servers_encoders() const { return encoders_; }
  /// Returns the object that hands memory to servers. Only compute ranks of a session with servers have it.
  [[nodiscard]] node::MemoryGiver& giver() { return *giver_; }
  /// Returns the part of the session that only compute ranks have.
  [[nodiscard]] Computing& computing() { return *computing_; }
  /// Returns the server that this rank runs.
  [[nodiscard]] Serving& serving() { return *serving_; }

  /// Collective over all ranks. Returns the first failing rank's status on all of them. Only for tr_init.
  Status same_everywhere(const Status& mine);
  /// Collective over compute ranks. Does Computing::agree().
  comm::Verdict agree(comm::Vote vote) { return computing_->agree(std::move(vote)); }
  /// Blocks until `done` returns true, and moves the switchboard on meanwhile. `what` tells the watchdog what
  /// the caller waits for.
  void wait(const std::function<bool()>& done, const std::string& what) { board_.wait(done, what); }
  /// Local. Says that the program has made a call.
  void note_call() {
    if (is_watched_) computing_->note_call(coarse_now());
    if (call_watch_) call_watch_->note_call();
  }
  /// Moves everything on for a program that calls nothing else for a while. Also announces the data that the
  /// program has put.
  void progress();
  /// True if every message of this rank has left, and this rank's own server, if it has one, is done.
  [[nodiscard]] bool all_is_sent() { return board_.all_sent() && (!serving_ || serving_->is_over()); }

 private:
  Session() = default;
  Status start(comm::Transport& transport, Facts facts, LedgerFactory make_ledger);
  void open_lines(comm::Transport& transport);
  Status open_storage(std::shared_ptr<storage::Target> given);
  Status make_threads(decltype(Facts::make_executor) make_executor, LedgerFactory make_ledger);
  void take_told(const std::vector<ByteVector>& told);
  Status watch_calls();
  [[nodiscard]] static std::int64_t coarse_now();
  void print_plan() const;
  void print_node_plan();

  // Members are destroyed from the last: the server and the threads before what they use.
  Settings settings_;
  std::string id_;
  bool is_running_ = false;  // start() has succeeded
  std::unique_ptr<Stops> stops_;
  std::optional<Topology> topology_;
  comm::Switchboard board_;
  std::unique_ptr<comm::Line> line_;
  std::unique_ptr<comm::Line> node_line_;
  std::unique_ptr<node::MemoryGiver> giver_;
  std::unique_ptr<Memory> memory_;
  std::unique_ptr<Computing> computing_;         // compute ranks
  std::unique_ptr<comm::CallWatch> call_watch_;  // compute ranks, if TAILRACE_CHECK_WORLD asks for it
  bool is_watched_ = false;                      // servers look for silence of this compute rank
  Storage storage_;
  encoders::OfServers encoders_;
  Facts::Collective collective_;  // `missing` is that of the servers
  decltype(Facts::make_counters) make_counters_;
  decltype(Facts::make_exposed) make_exposed_;
  pipeline::Statistics statistics_;
  std::unique_ptr<executor::Threads> threads_;  // compute ranks: of files and checkpoints
  std::unique_ptr<Serving> serving_;            // servers, and ranks that serve themselves
};

}  // namespace tailrace::session
