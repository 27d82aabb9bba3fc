// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cfenv>
#include <functional>
#include <thread>

#include "ground/base/status.hpp"

namespace tailrace {

/// Starts a thread of the library's own. Its floating-point state is the default and all signals are blocked
/// in it: otherwise it would inherit the program's traps and flush-to-zero, and receive signals that belong
/// to the program. Returns Code::memory, with errno, if the system gives no thread. The stack has the size of
/// the process's stack limit. If that is unlimited, the C library would take 2 MiB: then the stack has
/// `unlimited_stack` bytes if that is more.
Result<std::thread> start_thread(std::function<void()> body, std::size_t unlimited_stack = 0);

/// Returns an object of the calling thread's own, which begins as T(). `Of` is the user's type, so that each
/// user has its own object. exit(3) destroys the main thread's objects before it calls handlers of atexit(3),
/// in which programs may end the library. From then on the function returns another object, which is never
/// destroyed.
template <typename T, typename Of>
T& of_this_thread() {
  /// Readable even after the thread's objects are destroyed, because it has no destructor.
  thread_local bool is_gone = false;
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

/// Sets the calling thread's floating-point environment to the default until the end of the scope: traps
/// masked, no flush-to-zero, round to nearest. On x86-64 the environment includes MXCSR, and with it the
/// flush-to-zero that the start-up code of -Ofast sets.
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
