// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/status.hpp"

namespace tailrace::executor {

/// Whose turn a job waits for: the jobs of one key run one after another in the order of submission, those of
/// different keys side by side. A file has one.
using Key = std::uint64_t;
inline Key key_of(const std::string& path) { return std::hash<std::string>()(path) >> 1; }

/// Where stages run. A job is a function that never calls MPI; `worker` tells the thread that runs it, and no
/// two jobs of one worker overlap. Completions are picked up by the submitting thread in poll().
class Executor {
 public:
  using Job = std::function<Status(int worker)>;
  using Done = std::function<void(Status)>;
  virtual ~Executor() = default;
  /// Workers that compute: threads, or the caller.
  [[nodiscard]] virtual int count() const = 0;
  /// Queues a job that computes; such jobs start in the order of submission, and their `worker` is 0 ..
  /// count()-1. `done` runs later inside poll(), on the thread that calls it.
  virtual void compute(Job job, Done done) = 0;
  /// The same for a job that waits: for storage, space, another program. It keeps none that computes from
  /// the cores, and none of another key from running; a thread for it has count() or more as `worker`.
  virtual void wait(Key key, Job job, Done done) = 0;
  /// Runs the `done` of finished jobs; true if there was one.
  virtual bool poll() = 0;
};

}  // namespace tailrace::executor
