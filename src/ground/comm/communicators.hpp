// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <mpi.h>

#include <list>
#include <memory>
#include <string>

#include "ground/comm/line.hpp"

namespace tailrace::comm {

/// Collective over `comm`. Blocks until every rank has come here. Call it before MPI calls that would wait in
/// silence for ranks that never come. `what` is for the watchdog.
void await_everybody(Switchboard& board, MPI_Comm comm, const std::string& what);

/// The program's communicators in which the library works. Objects kept for a communicator are attributes of
/// it, and go when the program frees it.
class Communicators {
 public:
  /// `compute` is the communicator of the compute ranks, and `computes` their line.
  Communicators(MPI_Comm compute, Line& computes) : compute_(compute), computes_(computes) {}
  /// Local. Lets go of all objects kept, in the order in which they came.
  ~Communicators();
  Communicators(const Communicators&) = delete;
  Communicators& operator=(const Communicators&) = delete;

  /// Local. Returns what is kept for `comm`, or nullptr.
  [[nodiscard]] std::shared_ptr<void> find(MPI_Comm comm) const;
  /// Local. Keeps `what` as long as `comm` lasts.
  void keep(MPI_Comm comm, std::shared_ptr<void> what);
  /// Collective over `comm`. Blocks until all its ranks have called it. Opens a line among them; no
  /// communicator is made. Returns the same Status on every rank. `call` is the program's call, for the
  /// watchdog.
  Result<std::unique_ptr<Line>> open_line(MPI_Comm comm, const std::string& call);

 private:
  struct Entry {
    Communicators* owner = nullptr;
    MPI_Comm comm = MPI_COMM_NULL;
    std::shared_ptr<void> what;
  };
  static int on_free(MPI_Comm comm, int key, void* entry, void* unused);
  Result<std::vector<int>> transport_ranks(MPI_Comm comm) const;

  MPI_Comm compute_;
  Line& computes_;
  int key_ = MPI_KEYVAL_INVALID;
  std::list<Entry> entries_;  // in the order of creation
};

}  // namespace tailrace::comm
