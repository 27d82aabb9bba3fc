// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <memory>

#include "base/status.hpp"

namespace tailrace::executor {

/// Where stages run. A task is a function that never calls MPI; `worker` is 0 .. count()-1 and no two tasks
/// of one worker overlap, so that it selects per-thread state. Completions are picked up by the submitting
/// thread in poll().
class Workers {
 public:
  using Task = std::function<Status(int worker)>;
  using Done = std::function<void(Status)>;
  virtual ~Workers() = default;
  [[nodiscard]] virtual int count() const = 0;
  /// Queues a task; tasks start in the order of submission. `done` runs later inside poll(), on the thread
  /// that calls it.
  virtual void submit(Task task, Done done) = 0;
  /// The same for a task that waits for storage: it does not keep the others from the cores. Such tasks run
  /// one after another; their `worker` is count().
  virtual void submit_io(Task task, Done done) { submit(std::move(task), std::move(done)); }
  /// Runs the `done` of finished tasks; true if there was one.
  virtual bool poll() = 0;
  /// Tasks submitted whose `done` has not run.
  [[nodiscard]] virtual int pending() const = 0;
};

/// Tasks run inside submit(), on the caller, with its floating-point state saved and set to the default
/// meanwhile.
std::unique_ptr<Workers> inline_workers();
/// `threads` threads, and one for storage, with default floating-point state and all signals blocked. `wake`
/// is called (from the worker thread) after each finished task.
Result<std::unique_ptr<Workers>> thread_workers(int threads, std::function<void()> wake = {});

/// Sets the calling thread's floating-point environment to the default (traps masked, no flush-to-zero, round
/// to nearest) and back.
class DefaultFloatingPoint {
 public:
  DefaultFloatingPoint();
  ~DefaultFloatingPoint();
  DefaultFloatingPoint(const DefaultFloatingPoint&) = delete;
  DefaultFloatingPoint& operator=(const DefaultFloatingPoint&) = delete;

 private:
  alignas(16) unsigned char saved_[64];
};

}  // namespace tailrace::executor
