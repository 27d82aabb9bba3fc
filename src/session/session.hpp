// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/settings.hpp"
#include "comm/switchboard.hpp"
#include "executor/threads.hpp"
#include "node/budget.hpp"
#include "node/node_memory.hpp"
#include "pipeline/client.hpp"
#include "pipeline/outlet.hpp"
#include "pipeline/server.hpp"
#include "session/facts.hpp"
#include "session/node_plan.hpp"
#include "storage/faulty.hpp"

namespace tailrace::session {

/// The library's life inside one job, on one rank.
class Session {
 public:
  using LedgerFactory = std::function<Result<std::unique_ptr<pipeline::Ledger>>(
      const pipeline::Opening&, const std::shared_ptr<storage::Target>&)>;

  /// Collective over all ranks of `transport`, which must outlive the session. Returns the same Status on
  /// every rank. On servers, the caller then calls serve().
  static Result<std::unique_ptr<Session>> create(comm::Transport& transport, Facts facts,
                                                 LedgerFactory make_ledger);
  ~Session();

  [[nodiscard]] bool is_server() const { return is_server_; }
  [[nodiscard]] int rank() const { return me_; }  // among compute ranks
  [[nodiscard]] int ranks() const { return roster_.computes(); }
  [[nodiscard]] const exchange::Roster& roster() const { return roster_; }
  [[nodiscard]] const Settings& settings() const { return settings_; }
  /// Return the line of all ranks, and that of the compute ranks.
  [[nodiscard]] comm::Line& line() { return *line_; }
  [[nodiscard]] comm::Line& computes() { return *computes_; }
  [[nodiscard]] comm::Switchboard& board() { return board_; }
  [[nodiscard]] storage::Target& target() { return *target_; }
  [[nodiscard]] executor::Threads& threads() { return *threads_; }
  [[nodiscard]] pipeline::Outlet& outlet() { return *outlet_; }
  [[nodiscard]] pipeline::Statistics& statistics() { return statistics_; }
  [[nodiscard]] Bytes smallest_workspace() const;
  /// Returns the setting with which a `share` of the staging memory becomes `needed` bytes, for error texts.
  [[nodiscard]] std::string staging_for(Bytes needed, Bytes share) const;

  /// Collective over all ranks. Returns the first failing rank's status on all of them. Only for tr_init.
  Status same_everywhere(const Status& mine);
  /// On servers: works until all compute ranks have left.
  void serve();
  /// Collective over compute ranks. Hands in the caller's vote and returns the verdict, whose Status is the
  /// same on every rank. Blocks until all have voted. After an error, streams of which the ranks have begun
  /// different numbers of steps are out of step.
  comm::Verdict agree(comm::Vote vote);
  /// Collective over compute ranks. Returns true if the program is to save and stop. The Status is the same
  /// on every rank. Blocks until all have asked. Rank 0 logs the reason, once.
  Result<bool> should_stop();
  /// Returns the last answer of should_stop() without asking; false before the first.
  [[nodiscard]] bool is_stopping() const { return stops_->is_stopping(); }
  /// Local, on the thread that makes the calls. Notes how long a save has taken, for the margin before a time
  /// limit.
  void note_save_seconds(double seconds) { stops_->note_save_seconds(seconds); }
  /// Returns the node of a rank of the session's line.
  [[nodiscard]] int node_of(int transport_rank) const {
    return facts_[static_cast<std::size_t>(transport_rank)].node;
  }
  /// Returns the node of this rank: the same number on all ranks of the node, and on no others.
  [[nodiscard]] int my_node() const { return facts_[static_cast<std::size_t>(world_rank_)].node; }
  /// Returns the number of the node's ranks that take turns on a core: 1 if each has its own.
  [[nodiscard]] int ranks_of_a_core() const;
  [[nodiscard]] bool is_crowded() const { return ranks_of_a_core() > 1; }
  /// Returns the memory budget of this rank's node.
  [[nodiscard]] node::Budget& budget() { return *budget_; }
  [[nodiscard]] int ranks_of_my_node() const { return ranks_on(my_node()); }
  /// Blocks until `done` while moving everything else on. `what` is for the watchdog.
  void wait(const std::function<bool()>& done, const std::string& what) { board_.wait(done, what); }
  /// Collective. Blocks until `done`, which is known once all ranks have ended step `step` of `stream`.
  /// Returns false if the ranks turn out to be in different calls, and it is not `done`.
  bool wait_for_step(const pipeline::StreamClient& stream, std::int64_t step, std::string_view call,
                     const std::function<bool()>& done, const std::string& what);
  /// Returns the error that is set if ranks turned out to be in different collective calls. All ranks return
  /// it from then on.
  [[nodiscard]] const std::optional<Status>& broken() const { return board_.order().broken(); }
  /// Collective, once the order of calls is broken. Blocks until all compute ranks have come to it. Closes
  /// all streams towards the servers.
  void settle(const Status& why);
  /// Local. From here on the watchdog says that this rank is in `call`, whatever it waits for there.
  void enter(std::string call) { board_.watch().call = std::move(call); }
  /// Makes one pass over everything that may have become possible. Returns true if something moved.
  bool pump() { return board_.pump(); }
  /// Moves everything on for a program that calls nothing else for a while. Also announces the data that the
  /// program has put.
  void progress();
  /// Publishes in the outlet; waits while it is full. Returns the nanoseconds waited.
  std::int64_t publish(const std::function<bool()>& attempt);
  /// Collective over compute ranks. Allocates the memory into which streams capture, once. Blocks until all
  /// have. Call it before anything is put. Returns Code::memory on every rank if a node lacks it. `call` is
  /// the program's call.
  Status open_staging(const std::string& call);
  /// Collective over compute ranks. Blocks until all of them have come here. Ranks that are in other calls
  /// meanwhile get an error there, and may come here next. Returns the first error on the way.
  Status meet_in_finalize();
  /// Collective over compute ranks. Says that nothing is open any more.
  void leave();

  void add_stream(pipeline::StreamClient& stream) { client_->add(stream); }
  void remove_stream(std::uint32_t id) {
    client_->remove(id);
    if (outlet_) outlet_->drop(id);
  }

  /// Local, on the session's only server, if Facts::keeps_steps. Destroys the server where it stands, and
  /// makes another that knows the lanes and the files alone. Files lose nothing, and get the same bytes.
  Status replace_server();

 private:
  Session() = default;
  Status start(comm::Transport& transport, Facts facts, LedgerFactory make_ledger);
  Status make_storage();
  Status declare_memory(Bytes available);
  Status make_staging(bool keeps_steps);
  Status share_node_memory();
  Status check_staging(Bytes available) const;
  void make_outlet();
  Status make_executor();
  Status make_server();
  Status start_server(bool takes_over);
  Status find_lanes(pipeline::Server::Setup& setup);
  [[nodiscard]] int servers_on(int node) const;
  [[nodiscard]] int ranks_on(int node) const;
  [[nodiscard]] std::byte* lane_of(int node_rank) const;
  [[nodiscard]] Bytes my_staging() const;
  [[nodiscard]] int encoder_threads(int world_rank) const;
  void print_plan() const;
  [[nodiscard]] RankCpus cpus() const;
  void print_huge_pages(const std::vector<ByteVector>& contributions) const;
  comm::Verdict verdict_of(std::uint64_t agreement, const std::string& call);
  void tell(const std::vector<pipeline::Told>& all);
  void open_lines(comm::Transport& transport);

  Settings settings_;
  std::unique_ptr<Stops> stops_;
  int world_rank_ = 0;
  bool is_server_ = false;
  int me_ = 0;  // compute rank or server number
  std::vector<RankFacts> facts_;
  exchange::Roster roster_;
  Declared declared_;
  Quotas quotas_;
  comm::Switchboard board_;
  std::unique_ptr<comm::Line> line_;
  std::unique_ptr<comm::Line> node_line_;
  std::unique_ptr<comm::Line> computes_;
  std::unique_ptr<pipeline::Client> client_;  // compute ranks
  std::unique_ptr<node::NodeMemory> memory_;
  std::unique_ptr<node::Budget> budget_;
  std::optional<node::Draw> staging_;  // this rank's part of its node's staging
  bool staging_is_open_ = false;       // the same on all compute ranks
  node::NodeBells* bells_ = nullptr;
  node::NodeBells own_bells_;  // used if no memory is shared
  int reader_ = 0;             // this server's number on its node
  std::map<int, std::unique_ptr<node::PrivateLane>> received_;
  std::shared_ptr<storage::Target> target_;
  LedgerFactory make_ledger_;
  decltype(Facts::make_executor) make_threads_;
  std::shared_ptr<storage::FaultyTarget> faulty_;  // set if TAILRACE_FAULT asks for failures
  std::unique_ptr<pipeline::OpenFiles> files_;
  std::unique_ptr<executor::Threads> threads_;    // compute ranks: of files and checkpoints
  std::unique_ptr<executor::Executor> executor_;  // servers, and ranks that serve themselves: of streams
  pipeline::Statistics statistics_;
  std::unique_ptr<pipeline::Server> server_;
  std::unique_ptr<pipeline::Outlet> outlet_;
  std::shared_ptr<pipeline::LentLane> lent_;
};

}  // namespace tailrace::session
