// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <mpi.h>

#include <list>
#include <memory>
#include <string>

#include "comm/line.hpp"

namespace tailrace::comm {

/// Collective over `comm`. Blocks until every rank has come here, before MPI calls that would wait in
/// silence for those that never do. `what` is for the watchdog.
void await_everybody(Switchboard& board, MPI_Comm comm, const std::string& what);

/// The program's communicators in which the library works. What is kept for one is an attribute of it, and
/// goes when the program frees it.
class Communicators {
 public:
  /// `compute`: the communicator of the compute ranks, whose line is `computes`.
  Communicators(MPI_Comm compute, Line& computes) : compute_(compute), computes_(computes) {}
  /// Local. Lets go of all that is kept, in the order in which that came.
  ~Communicators();
  Communicators(const Communicators&) = delete;
  Communicators& operator=(const Communicators&) = delete;

  /// Local. What is kept for `comm`; nullptr: nothing.
  [[nodiscard]] std::shared_ptr<void> find(MPI_Comm comm) const;
  /// Local. Keeps `what` as long as `comm` lasts.
  void keep(MPI_Comm comm, std::shared_ptr<void> what);
  /// Collective over `comm`. Blocks until all its ranks have called it. Opens a line among them; no
  /// communicator is made. The same Status on every rank. `call` is the program's, for the watchdog.
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
