// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "base/thread.hpp"

#include <pthread.h>

#include <cfenv>
#include <csignal>
#include <system_error>

#include "base/text.hpp"

namespace tailrace {

Result<std::thread> start_thread(std::function<void()> body) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // the thread inherits this mask
  Result<std::thread> started = guarded([&]() -> Result<std::thread> {
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
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

}  // namespace tailrace
