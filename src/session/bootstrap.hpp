// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <vector>

#include "comm/mpi_transport.hpp"
#include "comm/switchboard.hpp"
#include "session/select.hpp"

namespace tailrace::session {

/// Gets from MPI all that a session needs: the place of each rank, a transport, and the communicator that the
/// compute ranks get.
class Bootstrap {
 public:
  /// Local. `world`: the communicator that tr_init was given.
  explicit Bootstrap(MPI_Comm world);
  /// Collective: frees what connect() has made. Nothing may be on its way.
  ~Bootstrap();
  Bootstrap(const Bootstrap&) = delete;
  Bootstrap& operator=(const Bootstrap&) = delete;

  /// The caller's, in the world and in the transport.
  [[nodiscard]] int rank() const { return rank_; }
  /// Collective. Blocks until every rank has called tr_init; `board` watches meanwhile.
  void await_everybody(comm::Switchboard& board) const;
  /// Collective: the first failing rank's status, on all ranks. For the time before there is a line.
  [[nodiscard]] Status same_everywhere(const Status& mine) const;
  /// Collective: what every rank has packed, by rank.
  [[nodiscard]] std::vector<ByteVector> gather(const ByteVector& mine) const;
  /// Collective: what each rank says of itself.
  [[nodiscard]] std::vector<RankFacts> gather_facts() const;
  /// Collective: makes the transport, and the communicator of those that do not serve. The same Status on
  /// every rank.
  Status connect(bool serves);

  [[nodiscard]] comm::Transport& transport() { return *transport_; }
  /// MPI_COMM_NULL on servers.
  [[nodiscard]] MPI_Comm compute() const { return compute_; }

 private:
  MPI_Comm world_;
  MPI_Comm compute_ = MPI_COMM_NULL;
  int rank_ = 0;
  std::unique_ptr<comm::MpiTransport> transport_;
};

/// The name of the machine that this process runs on.
[[nodiscard]] std::string host_name();

}  // namespace tailrace::session
