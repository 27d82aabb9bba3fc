// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <vector>

#include "engine/session/facts.hpp"
#include "ground/comm/counters/blocking_call.hpp"
#include "ground/comm/counters/mpi_counters.hpp"
#include "ground/comm/exposed/mpi_exposed.hpp"
#include "ground/comm/mpi_transport.hpp"

namespace tailrace::session {

/// Gets from MPI everything that a session needs: the facts, a transport, and the communicator for the
/// compute ranks.
class Bootstrap {
 public:
  /// Collective over `world`, the communicator that tr_init was given. Blocks until every rank has called it.
  /// Returns the same Status on every rank.
  static Result<std::unique_ptr<Bootstrap>> create(MPI_Comm world, const char* options);
  /// Frees what create() has made, but for windows: a rank that exits without tr_finalize comes here alone,
  /// and MPI_Win_free would wait for the others. No message may be on its way.
  ~Bootstrap();
  Bootstrap(const Bootstrap&) = delete;
  Bootstrap& operator=(const Bootstrap&) = delete;

  /// Returns the session's facts. Call it once.
  [[nodiscard]] Facts take_facts() { return std::move(facts_); }
  [[nodiscard]] comm::Transport& transport() { return *transport_; }
  /// Collective, once the session is gone. Blocks until all ranks have called it: no message is on its way
  /// afterwards.
  void meet_at_the_end();
  /// Collective. Blocks until all ranks with windows have called it. Frees the windows of counters and of
  /// exposed memory, if there are any. Call it where a session fails on all ranks; meet_at_the_end() does the
  /// same.
  void free_windows();
  /// Returns MPI_COMM_NULL on servers.
  [[nodiscard]] MPI_Comm compute() const { return compute_; }

 private:
  explicit Bootstrap(MPI_Comm world);
  Status start(const char* options);
  Status read_settings(const char* options);
  void await_everybody() const;
  [[nodiscard]] Status same_everywhere(const Status& mine) const;
  [[nodiscard]] std::vector<ByteVector> gather(const ByteVector& mine) const;
  Status take_common_settings();
  [[nodiscard]] std::vector<RankFacts> gather_facts() const;
  void find_collective();
  void find_counters();
  void find_exposed();
  Status make_window();
  Status expose(comm::Transport& transport, const comm::ExposedWindow::Part& part);
  [[nodiscard]] comm::BlockingCall watch(const std::string& call, const std::string& use) const;

  MPI_Comm world_;
  MPI_Comm compute_ = MPI_COMM_NULL;
  MPI_Comm servers_ = MPI_COMM_NULL;   // on servers, unless each rank is one
  MPI_Comm counting_ = MPI_COMM_NULL;  // of the window alone
  std::unique_ptr<comm::CounterWindow> window_;
  MPI_Comm exposing_ = MPI_COMM_NULL;  // of the window below alone
  std::unique_ptr<comm::ExposedWindow> exposed_;
  comm::BlockingCall::Patience patience_;
  Facts facts_;
  std::unique_ptr<comm::MpiTransport> transport_;
};

}  // namespace tailrace::session
