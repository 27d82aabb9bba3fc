// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <mpi.h>

#include <list>
#include <memory>
#include <string>

#include "ground/comm/line.hpp"

namespace tailrace::comm {

/// Collective over `comm`. Blocks until every rank of `comm` has called it. Call it before calls of MPI: they
/// would wait for missing ranks without a word, while this call lets the watchdog warn. `what` is the
/// watchdog's text.
void await_everybody(Switchboard& board, MPI_Comm comm, const std::string& what);

/// The program's communicators that the library works on. Objects that the library keeps for a communicator
/// are attributes of it: they are destroyed when the program frees the communicator.
class Communicators {
 public:
  /// `compute` is the communicator of the compute ranks, and `computes` their line.
  Communicators(MPI_Comm compute, Line& computes) : compute_(compute), computes_(computes) {}
  /// Local. Drops all objects, in the order in which they came.
  ~Communicators();
  Communicators(const Communicators&) = delete;
  Communicators& operator=(const Communicators&) = delete;

  /// Local. Returns the object kept for `comm`, or nullptr.
  [[nodiscard]] std::shared_ptr<void> find(MPI_Comm comm) const;
  /// Local. Keeps `what` until `comm` is freed.
  void keep(MPI_Comm comm, std::shared_ptr<void> what);
  /// Collective over `comm`. Opens a line among its ranks; creates no communicator. Blocks until all ranks
  /// have called it. Returns the same Status on every rank. `call` is the program's call, for the watchdog.
  Result<std::unique_ptr<Line>> open_line(MPI_Comm comm, const std::string& call);

 private:
  struct Attribute {
    Communicators* owner = nullptr;
    MPI_Comm comm = MPI_COMM_NULL;
    std::shared_ptr<void> what;
  };
  static int on_free(MPI_Comm comm, int key, void* value, void* unused);
  Result<std::vector<int>> transport_ranks(MPI_Comm comm) const;

  MPI_Comm compute_;
  Line& computes_;
  int key_ = MPI_KEYVAL_INVALID;
  std::list<Attribute> attributes_;  // in the order of creation
};

}  // namespace tailrace::comm
