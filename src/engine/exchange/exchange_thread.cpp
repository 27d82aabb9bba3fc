// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/exchange/exchange_thread.hpp"

#include <chrono>

#include "ground/base/thread.hpp"

namespace tailrace::exchange {

Status ExchangeThread::start() {
  Result<std::thread> started = start_thread([this] { run(); });
  TR_TRY(started.status());
  thread_ = std::move(*started);
  return {};
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
  std::unique_lock lock(mutex_);
  for (;;) {
    work_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const std::shared_ptr<FarExchange> current = queue_.front();
    lock.unlock();
    while (!current->is_done()) {
      // No doorbell rings for a message from another node. The sleep leaves the core to the threads that
      // compute. It does not grow, because a rank may wait for the end of the exchange.
      if (!current->advance(line_)) std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    lock.lock();
    queue_.pop_front();
  }
}

}  // namespace tailrace::exchange
