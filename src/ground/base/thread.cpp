// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/base/thread.hpp"

#include <pthread.h>
#include <sys/resource.h>

#include <cfenv>
#include <csignal>
#include <system_error>

#include "ground/base/text.hpp"

namespace tailrace {

namespace {

/// Makes the stacks of new threads larger until the end of the scope, because std::thread takes no size. A
/// thread that the program starts in the meantime also gets a larger stack.
class LargeStacks {
 public:
  explicit LargeStacks(std::size_t unlimited_stack) {
    rlimit limit{};
    if (unlimited_stack == 0 || getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY)
      return;
    pthread_attr_t attributes;
    if (pthread_getattr_default_np(&attributes) != 0) return;
    pthread_attr_getstacksize(&attributes, &before_);
    if (before_ < unlimited_stack) is_set_ = set(attributes, unlimited_stack);
    pthread_attr_destroy(&attributes);
  }
  ~LargeStacks() {
    pthread_attr_t attributes;
    if (!is_set_ || pthread_getattr_default_np(&attributes) != 0) return;
    set(attributes, before_);
    pthread_attr_destroy(&attributes);
  }
  LargeStacks(const LargeStacks&) = delete;
  LargeStacks& operator=(const LargeStacks&) = delete;

 private:
  static bool set(pthread_attr_t& attributes, std::size_t bytes) {
    return pthread_attr_setstacksize(&attributes, bytes) == 0 && pthread_setattr_default_np(&attributes) == 0;
  }

  std::size_t before_ = 0;
  bool is_set_ = false;
};

/// Blocks all signals until the end of the scope. A thread started in the scope inherits the blocked signals.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

Result<std::thread> start_thread(std::function<void()> body, std::size_t unlimited_stack) {
  const LargeStacks stacks(unlimited_stack);
  const BlockedSignals blocked;
  return guarded([&]() -> Result<std::thread> {
    try {
      return std::thread([body = std::move(body)] {
        std::fesetenv(FE_DFL_ENV);
        body();
      });
    } catch (const std::system_error& error) {
      return Status(Code::memory, cat("no thread could be started: ", std::string_view(error.what())),
                    error.code().value());
    }
  });
}

}  // namespace tailrace
