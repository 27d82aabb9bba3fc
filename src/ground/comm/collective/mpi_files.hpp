// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <mpi.h>

#include <memory>
#include <thread>

#include "ground/comm/collective/collective_files.hpp"

namespace tailrace::comm {

/// Collective files by MPI-IO. A thread of its own makes the calls, so MPI must have been initialised with
/// MPI_THREAD_MULTIPLE. Before each call the thread waits until the threads of all processes have come to it,
/// and sleeps meanwhile: inside of the call it would take a core.
class MpiFiles final : public CollectiveFiles {
 public:
  /// Local. `comm` must outlive the object; no other thread makes collective calls with it meanwhile. The
  /// thread calls `wake` after each call. Returns Code::memory if the system gives no thread.
  static Result<std::unique_ptr<CollectiveFiles>> create(MPI_Comm comm, std::function<void()> wake);
  /// Abandons the calls that are not made: the other processes may never come to them, if this one exits
  /// without tr_finalize. Blocks until the process's own part of a call is over, and for seconds while the
  /// thread is inside of MPI. A thread that stays there is left behind, with all that it uses.
  ~MpiFiles() override;
  MpiFiles(const MpiFiles&) = delete;
  MpiFiles& operator=(const MpiFiles&) = delete;

  void open(std::string path, Hints hints, Own own, Opened opened) override;
  void write(std::string path, std::vector<Run> runs, int calls, Own own, Done done) override;
  void append(std::string path, Bytes offset, Run::Parts parts, Own own, Done started, Done done) override;
  void seek(std::string path, Bytes offset, Done done) override;
  void try_appends(std::string path, Done done) override;
  void sync(std::string path, Own own, Done done) override;
  void close(std::string path, Own own, Done done) override;
  bool poll() override;

 private:
  class Calls;
  explicit MpiFiles(std::shared_ptr<Calls> calls) : calls_(std::move(calls)) {}

  const std::shared_ptr<Calls> calls_;  // the thread's, too
  std::thread thread_;
};

}  // namespace tailrace::comm
