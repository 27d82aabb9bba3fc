// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "ground/base/status.hpp"

namespace tailrace::comm {

/// For debugging (TAILRACE_CHECK_WORLD): a thread that finds out in which call of MPI the program is, once it
/// has called the library no more for a while. It looks at the stack of the thread that made this, by a
/// signal. So it needs nothing of MPI, and sees calls from any language.
class CallWatch {
 public:
  /// Looks after `patience` nanoseconds without a call, and calls `tell` once, in its thread, with what
  /// follows the rank's name: "has not called ... and is in MPI_Barrier, called from ...". While the program
  /// computes there is nothing to tell, and it looks again. One at a time in a process.
  static Result<std::unique_ptr<CallWatch>> create(std::int64_t patience,
                                                   std::function<void(const std::string&)> tell);
  ~CallWatch();
  CallWatch(const CallWatch&) = delete;
  CallWatch& operator=(const CallWatch&) = delete;

  /// Says that the program is in a call of the library.
  void note_call() { calls_.fetch_add(1, std::memory_order_relaxed); }

 private:
  CallWatch(std::int64_t patience, std::function<void(const std::string&)> tell);
  void run();
  bool sleep_for(std::int64_t nanoseconds);
  bool look_twice(std::int64_t silent);

  const pthread_t watched_;
  const std::int64_t patience_;
  const std::function<void(const std::string&)> tell_;
  std::atomic<std::uint64_t> calls_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace tailrace::comm
