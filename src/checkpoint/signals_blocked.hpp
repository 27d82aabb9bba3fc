// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <pthread.h>

#include <csignal>

namespace tailrace::checkpoint {

/// While one exists, threads that start have all signals blocked: handlers of the program must not run on
/// them.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace tailrace::checkpoint
