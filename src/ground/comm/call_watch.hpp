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

/// A debugging aid (TAILRACE_CHECK_WORLD): if the program has not called the library for a while, a thread
/// finds out in which call of MPI it is. The thread interrupts the program's thread by a signal, whose
/// handler records the stack. So the watch needs nothing of MPI, and sees calls from any language.
class CallWatch {
 public:
  /// Starts to watch the calling thread. After `patience` nanoseconds without a call of the library, the
  /// watch looks at the stack. If the thread is inside MPI, the watch calls `tell` once, from its own thread,
  /// with the text that follows the rank's name: "has not called ... and is in MPI_Barrier, called from ...".
  /// If the program computes, there is nothing to tell, and the watch looks again later. At most one watch in
  /// a process.
  static Result<std::unique_ptr<CallWatch>> create(std::int64_t patience,
                                                   std::function<void(const std::string&)> tell);
  ~CallWatch();
  CallWatch(const CallWatch&) = delete;
  CallWatch& operator=(const CallWatch&) = delete;

  /// Notes that the program has called the library.
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
