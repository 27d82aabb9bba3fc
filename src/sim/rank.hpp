// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "codec/codec.hpp"
#include "comm/switchboard.hpp"
#include "layout/layout.hpp"
#include "pipeline/client.hpp"
#include "pipeline/outlet.hpp"
#include "pipeline/server.hpp"
#include "sim/disk.hpp"
#include "sim/network.hpp"
#include "streams/parse.hpp"

namespace tailrace::sim {

/// A compute rank: what session::Session is on a real one, with every place where that looks, yields or
/// sleeps made a step of its own.
class Rank {
 public:
  /// `all` and `computes`: the members of the session's lines.
  Rank(int me, const exchange::Roster& roster, Scheduler& scheduler, Port& port,
       std::shared_ptr<const comm::Members> all, std::shared_ptr<const comm::Members> computes);

  [[nodiscard]] int me() const { return me_; }
  [[nodiscard]] int ranks() const { return roster_.computes(); }
  [[nodiscard]] const exchange::Roster& roster() const { return roster_; }
  [[nodiscard]] Actor& actor() { return actor_; }
  [[nodiscard]] Port& port() { return port_; }
  [[nodiscard]] pipeline::Outlet& outlet() { return *outlet_; }
  [[nodiscard]] pipeline::Statistics& statistics() { return *statistics_; }
  [[nodiscard]] pipeline::Client& client() { return client_; }
  [[nodiscard]] comm::Line& line() { return line_; }
  [[nodiscard]] comm::Agreements& agreements() { return computes_.agreements(); }
  /// The number of the agreement it waits in; none if it waits in none.
  [[nodiscard]] std::optional<std::uint64_t> open_agreement() const { return open_agreement_; }
  /// Times that a put or another call found the staging full.
  [[nodiscard]] std::int64_t times_full() const { return times_full_; }

  /// Something else than output, for about this long.
  Actor::Pause compute(Nanoseconds time) { return actor_.step(time); }
  Task<comm::Verdict> agree(comm::Vote vote);
  Task<> publish(std::function<bool()> attempt);
  Task<> tell(pipeline::Told told);
  Task<> leave();
  /// Waits for messages until `done`; with `memory`, also for what the servers do in shared memory.
  Task<> wait(std::function<bool()> done, std::string what, bool memory = false);
  bool pump();

  // What the world gives it.
  void set_outlet(std::unique_ptr<pipeline::Outlet> outlet);
  void set_server(pipeline::Server* server, pipeline::Statistics* statistics, std::shared_ptr<Disk> disk);
  void set_timer(Nanoseconds timer) { timer_ = timer; }

 private:
  Task<comm::Verdict> verdict_of(std::uint64_t agreement, std::string what);
  Task<> wait_for_space(const std::function<bool()>& attempt, comm::Doorbell& bell);

  int me_;
  const exchange::Roster& roster_;
  Port& port_;
  Actor actor_;
  comm::Switchboard board_;
  comm::Line line_;
  comm::Line computes_;
  pipeline::Client client_;
  std::unique_ptr<pipeline::Outlet> outlet_;
  pipeline::Server* server_ = nullptr;  // its own, where there are no server ranks
  std::shared_ptr<Disk> disk_;
  pipeline::Statistics own_statistics_;
  pipeline::Statistics* statistics_ = &own_statistics_;
  Nanoseconds timer_ = 0;
  std::optional<std::uint64_t> open_agreement_;
  std::int64_t times_full_ = 0;
};

}  // namespace tailrace::sim
