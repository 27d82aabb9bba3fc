// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "engine/pipeline/server/server.hpp"
#include "engine/session/counting_executor.hpp"
#include "engine/session/facts.hpp"
#include "engine/session/parking.hpp"
#include "engine/session/reports/reporter.hpp"
#include "ground/executor/executor.hpp"
#include "ground/executor/threads.hpp"
#include "ground/node/budget.hpp"
#include "ground/node/handed_memory.hpp"
#include "ground/node/remote_lane.hpp"

namespace tailrace::session {

class Session;

/// Returns the nanoseconds between two signs. With a sign a compute rank tells its server, and each server
/// tells server 0, that the program calls the library. Returns 0 if nobody needs signs (watchdog=off
/// timeout=off).
std::int64_t sign_period(const Settings& settings);

using LedgerFactory = std::function<Result<std::unique_ptr<pipeline::Ledger>>(
    const pipeline::Opening&, const codec::Codec&, const std::shared_ptr<storage::Target>&)>;

/// The server that this rank runs: a server rank in a loop of its own, a rank of a session without servers
/// inside its calls. All functions are local.
class Serving {
 public:
  /// `session` must outlive this.
  Serving(Session& session, std::shared_ptr<storage::Target> target, LedgerFactory make_ledger,
          decltype(Facts::make_executor) make_executor, decltype(Facts::Collective::make) make_collective,
          decltype(Facts::make_counters) make_counters);

  /// Makes the server. With `takes_over` it goes on where another was destroyed.
  Status start(bool takes_over);
  /// On the session's only server, if Facts::keeps_steps. Destroys the server in the middle of its work, and
  /// makes another, which knows nothing but the lanes and the files. The files lose nothing, and get the same
  /// bytes.
  Status replace();
  /// On servers: works until all compute ranks have left.
  void run();
  /// Moves the server on. Returns true if something moved.
  bool advance() {
    bool moved = taker_ && taker_->advance();
    moved = (exposed_ && exposed_->poll()) || moved;
    return (server_ && server_->advance()) || moved;
  }
  /// On servers: takes memory that compute ranks of its node hand to it.
  [[nodiscard]] node::MemoryTaker& taker() { return *taker_; }
  /// On servers: before each park the server asks `limit` how long it may park at most.
  void park_at_most(std::function<std::chrono::nanoseconds()> limit) { most_park_ = std::move(limit); }
  /// On servers: ends a park, and has run() look at once. Any thread.
  void wake() { bell().ring(); }
  [[nodiscard]] bool is_over() const { return server_->is_over(); }
  [[nodiscard]] std::string waiting_for() const { return server_ ? server_->waiting_for() : std::string(); }
  /// Returns the number of threads that encode.
  [[nodiscard]] int encoding_threads() const { return executor_->count(); }
  /// Notes the threads of the server in the figures of its process.
  void count_threads(pipeline::Process& process) const;

 private:
  Status find_lanes(pipeline::Server::Setup& setup);
  Result<std::map<int, pipeline::Server::Setup::MoreLane>> make_lanes(node::LaneKind kind);
  pipeline::Server::Setup::MoreLane lane_of_rank(int c, node::LaneKind kind);
  Status make_executor();
  void warn_of_waiting(std::int64_t since);
  void note_sign(std::int64_t now);
  void look_for_silence(std::int64_t now);
  [[nodiscard]] comm::Doorbell& bell() { return bells_->reader[reader_]; }
  void make_reporter();
  void report(pipeline::Server::Setup& setup);
  void submit_report(std::function<void()> job);
  [[nodiscard]] comm::Routine why_parked() const;

  Session& session_;
  const std::shared_ptr<storage::Target> target_;
  const LedgerFactory make_ledger_;
  const decltype(Facts::make_executor) make_threads_;
  const decltype(Facts::Collective::make) make_collective_;
  const decltype(Facts::make_counters) make_counters_;
  node::NodeBells own_bells_;  // used if no memory is shared
  node::NodeBells* bells_ = nullptr;
  int reader_ = 0;  // this server's number on its node
  std::map<std::pair<node::LaneKind, int>, std::unique_ptr<node::PrivateLane>> received_;
  std::unique_ptr<comm::ExposedMemory> exposed_;
  std::optional<node::Draw> more_lanes_;  // of a node without compute ranks
  std::unique_ptr<pipeline::OpenFiles> files_;
  std::unique_ptr<Reporter> reporter_;  // on the rank that writes the report
  std::optional<executor::Key> report_key_;
  std::unique_ptr<executor::Threads> own_threads_;  // for the report, on a server
  std::unique_ptr<CountingExecutor> executor_;
  std::unique_ptr<pipeline::Server> server_;
  std::unique_ptr<node::MemoryTaker> taker_;
  std::function<std::chrono::nanoseconds()> most_park_ = [] { return Parking::longest; };
  bool warned_ = false;  // of what the server waits for
  // The server watches whether compute ranks still call the library.
  const std::int64_t sign_period_;
  std::int64_t heard_ = 0;      // when the last call was noticed
  std::int64_t next_sign_ = 0;  // when server 0 is told the next time
  bool sign_came_ = false;      // during the look that runs
  bool told_silence_ = false;
};

}  // namespace tailrace::session
