// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <pthread.h>
#include <cerrno>
#include <ctime>

namespace tailrace::run {

/// A lock in memory that processes share. If a process is killed with the lock, the next one gets it, and
/// finds what was copied so far, as after a write that was killed.
class RobustLock {
 public:
  void make() {
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&mutex_, &kind);
    pthread_mutexattr_destroy(&kind);
  }
  /// Returns 0, or EDEADLK if this thread has it already: a signal handler has interrupted its holder.
  int lock() { return taken(pthread_mutex_lock(&mutex_)); }
  /// Returns 0, or EBUSY if another thread has it.
  int try_lock() { return taken(pthread_mutex_trylock(&mutex_)); }
  void unlock() { pthread_mutex_unlock(&mutex_); }

 private:
  int taken(int error) {
    if (error != EOWNERDEAD) return error;
    pthread_mutex_consistent(&mutex_);
    return 0;
  }
  pthread_mutex_t mutex_;
};

}  // namespace tailrace::run
