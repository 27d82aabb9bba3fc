// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "files/exchange_thread.hpp"

#include <pthread.h>

#include <cfenv>
#include <chrono>
#include <csignal>
#include <system_error>

#include "base/text.hpp"

namespace tailrace::files {

Status ExchangeThread::start() {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // the thread inherits it: signals belong to the program
  Status status;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    status = Status(Code::memory, cat("no thread could be started: ", std::string_view(error.what())),
                    error.code().value());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return status;
}

ExchangeThread::~ExchangeThread() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  work_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void ExchangeThread::submit(std::shared_ptr<FarExchange> exchange) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(exchange));
  }
  work_.notify_one();
}

bool ExchangeThread::is_idle() const {
  const std::lock_guard lock(mutex_);
  return queue_.empty();
}

void ExchangeThread::run() {
  std::fesetenv(FE_DFL_ENV);  // a thread inherits the program's traps and flush-to-zero
  std::unique_lock lock(mutex_);
  for (;;) {
    work_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const std::shared_ptr<FarExchange> current = queue_.front();
    lock.unlock();
    while (!current->is_done()) {
      // Messages ring no bell; the sleep keeps the core for those who compute.
      if (!current->advance(line_)) std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    lock.lock();
    queue_.pop_front();
  }
}

}  // namespace tailrace::files
