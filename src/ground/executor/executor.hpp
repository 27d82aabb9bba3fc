// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "ground/base/status.hpp"

namespace tailrace::executor {

/// Names a queue of jobs. Jobs with the same key run one after another, in the order of submission. Jobs with
/// different keys run side by side. Each file has a key, which is the same for the names `a` and `./a`.
using Key = std::uint64_t;
inline Key key_of(const std::string& path) {
  return std::hash<std::string>()(std::filesystem::path(path).lexically_normal().string()) >> 1;
}

/// Runs the jobs of all stages. A job is a function that never calls MPI. `worker` is the number of the
/// thread that runs it; two jobs of one worker never overlap. The submitting thread learns of finished jobs
/// in poll().
class Executor {
 public:
  using Job = std::function<Status(int worker)>;
  using Done = std::function<void(Status)>;
  virtual ~Executor() = default;
  /// Returns the number of workers for jobs that compute: the threads, or 1 for the caller.
  [[nodiscard]] virtual int count() const = 0;
  /// Returns the number of threads that were started: those for jobs that compute, and for jobs that wait.
  [[nodiscard]] virtual int threads() const { return count(); }
  /// Queues a job that computes. Jobs that compute start in the order of submission. Their `worker` is 0 ..
  /// count()-1. `done` runs later inside poll(), on the thread that calls poll().
  virtual void compute(Job job, Done done) = 0;
  /// Queues a job that waits: for storage, space or another program. While it waits, jobs that compute keep
  /// their threads, and jobs of other keys run. Its `worker` is count() or more. `done` runs as for
  /// compute().
  virtual void wait(Key key, Job job, Done done) = 0;
  /// Runs the `done` of finished jobs. Returns true if there was one.
  virtual bool poll() = 0;
};

}  // namespace tailrace::executor
