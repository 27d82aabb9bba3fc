// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cfenv>
#include <functional>
#include <thread>

#include "ground/base/status.hpp"

namespace tailrace {

/// Starts a thread of the library's own, with default floating-point state and all signals blocked: a thread
/// would inherit the program's traps and flush-to-zero, and signals belong to the program. Returns
/// Code::memory, with errno, if the system gives no thread. Its stack is as large as the limit of the process
/// says. If that is unlimited, where the C library takes 2 MiB, it has `unlimited_stack` bytes; 0: those 2
/// MiB.
Result<std::thread> start_thread(std::function<void()> body, std::size_t unlimited_stack = 0);

/// Returns an object of the calling thread's own, which begins as T(). Programs may end the library in
/// handlers of atexit(3), and exit(3) destroys the main thread's objects before it calls them: from then on
/// this is another object, which is never destroyed. `Of` is the user's type, so that each has its own.
template <typename T, typename Of>
T& of_this_thread() {
  thread_local bool is_gone = false;  // stays readable: it has no destructor
  struct Held {
    T value{};
    ~Held() { is_gone = true; }
  };
  if (is_gone) {
    static T* const at_exit = new T();
    return *at_exit;
  }
  thread_local Held held;
  return held.value;
}

/// Sets the calling thread's floating-point environment to the default (traps masked, no flush-to-zero, round
/// to nearest) and back. The environment of x86-64 includes MXCSR, and so the flush-to-zero that start-up
/// code of -Ofast sets.
class DefaultArithmetic {
 public:
  DefaultArithmetic() {
    std::fegetenv(&before_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultArithmetic() { std::fesetenv(&before_); }
  DefaultArithmetic(const DefaultArithmetic&) = delete;
  DefaultArithmetic& operator=(const DefaultArithmetic&) = delete;

 private:
  std::fenv_t before_ = {};
};

}  // namespace tailrace
