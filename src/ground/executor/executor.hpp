// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "ground/base/status.hpp"

namespace tailrace::executor {

/// Jobs with the same key run one after another, in the order of submission. Jobs with different keys run
/// side by side. Each file has a key, whichever of `a` and `./a` names it.
using Key = std::uint64_t;
inline Key key_of(const std::string& path) {
  return std::hash<std::string>()(std::filesystem::path(path).lexically_normal().string()) >> 1;
}

/// The executor runs the jobs of all stages. A job is a function that never calls MPI. `worker` is the number
/// of the thread that runs it, and two jobs of one worker never overlap. The submitting thread picks up
/// completions in poll().
class Executor {
 public:
  using Job = std::function<Status(int worker)>;
  using Done = std::function<void(Status)>;
  virtual ~Executor() = default;
  /// Returns the number of workers that compute: threads, or the caller.
  [[nodiscard]] virtual int count() const = 0;
  /// Queues a job that computes. Jobs that compute start in the order of submission, and their `worker` is 0
  /// .. count()-1. `done` runs later inside poll(), on the thread that calls it.
  virtual void compute(Job job, Done done) = 0;
  /// Queues a job that waits: for storage, space, another program. While it waits, jobs that compute keep
  /// their threads and jobs of other keys run. Its `worker` is count() or more. `done` runs as for compute().
  virtual void wait(Key key, Job job, Done done) = 0;
  /// Runs the `done` of finished jobs. Returns true if there was one.
  virtual bool poll() = 0;
};

}  // namespace tailrace::executor
