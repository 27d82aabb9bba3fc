// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "exchange/far_exchange.hpp"

namespace tailrace::exchange {

/// Drives what travels between nodes, call after call, so that the program need not be inside a call
/// meanwhile. Where MPI provides MPI_THREAD_MULTIPLE only (MPI 3.1, 12.4.3).
class ExchangeThread {
 public:
  explicit ExchangeThread(comm::Line& line) : line_(line) {}
  ~ExchangeThread();
  ExchangeThread(const ExchangeThread&) = delete;
  ExchangeThread& operator=(const ExchangeThread&) = delete;

  /// Local. To be called once, before anything else.
  Status start();
  void submit(std::shared_ptr<FarExchange> exchange);
  [[nodiscard]] bool is_idle() const;

 private:
  void run();

  comm::Line& line_;
  mutable std::mutex mutex_;
  std::condition_variable work_;
  std::deque<std::shared_ptr<FarExchange>> queue_;  // the first is being driven
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace tailrace::exchange
