// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "engine/exchange/far_exchange.hpp"

namespace tailrace::exchange {

/// Drives the far exchanges of array calls, one after another, so that the program need not stay inside a
/// call. It exists only if MPI provides MPI_THREAD_MULTIPLE (MPI 3.1, 12.4.3).
class ExchangeThread {
 public:
  explicit ExchangeThread(comm::Line& line) : line_(line) {}
  ~ExchangeThread();
  ExchangeThread(const ExchangeThread&) = delete;
  ExchangeThread& operator=(const ExchangeThread&) = delete;

  /// Local. Call it once, before anything else.
  Status start();
  void submit(std::shared_ptr<FarExchange> exchange);
  [[nodiscard]] bool is_idle() const;

 private:
  void run();

  comm::Line& line_;
  mutable std::mutex mutex_;
  std::condition_variable work_;
  std::deque<std::shared_ptr<FarExchange>> queue_;  // the thread drives the first one
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace tailrace::exchange
