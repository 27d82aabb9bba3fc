// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <mpi.h>

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
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
  /// Blocks until all queued calls are made.
  ~MpiFiles() override;
  MpiFiles(const MpiFiles&) = delete;
  MpiFiles& operator=(const MpiFiles&) = delete;

  void open(std::string path, Hints hints, Own own, Done done) override;
  void write(std::string path, std::vector<Run> runs, int calls, Own own, Done done) override;
  void sync(std::string path, Own own, Done done) override;
  void close(std::string path, Own own, Done done) override;
  bool poll() override;

 private:
  MpiFiles(MPI_Comm comm, std::function<void()> wake) : comm_(comm), wake_(std::move(wake)) {}
  void enqueue(Own call, Done done);
  void run();
  void meet() const;
  Status open_now(const std::string& path, const Hints& hints, const Own& own);
  Status write_now(const std::string& path, const std::vector<Run>& runs, int calls, const Own& own);

  const MPI_Comm comm_;
  const std::function<void()> wake_;
  std::map<std::string, MPI_File> files_;  // the thread alone uses it
  std::mutex mutex_;
  std::condition_variable queued_;
  std::deque<std::pair<Own, Done>> calls_;
  std::deque<std::pair<Done, Status>> made_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace tailrace::comm
