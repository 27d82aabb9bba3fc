// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace tailrace::comm {

/// Watches blocking calls of MPI, in which the calling thread can tell nothing itself, while the object
/// lives. A thread of its own warns once, and ends the job, if the calls take too long. If the system gives
/// no thread, nobody watches.
class BlockingCall {
 public:
  struct Patience {
    std::optional<std::int64_t> warn_seconds;
    std::optional<std::int64_t> give_up_seconds;
  };
  /// Local. `who` is the waiting rank, `what` follows "has waited 60 s for".
  BlockingCall(std::string who, std::string what, const Patience& patience);
  /// Local. The calls are over.
  ~BlockingCall();
  BlockingCall(const BlockingCall&) = delete;
  BlockingCall& operator=(const BlockingCall&) = delete;

 private:
  void run();
  bool is_over_within(std::int64_t seconds);

  const std::string who_;
  const std::string what_;
  const Patience patience_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;
  std::thread thread_;
};

/// Watches a blocking call of MPI that is made again and again, as BlockingCall watches one: it has one
/// thread for all of them, which looks once a second.
class RepeatedCall {
 public:
  /// Local. `who` is the waiting rank, `what` follows "has waited 60 s for".
  RepeatedCall(std::string who, std::string what, const BlockingCall::Patience& patience);
  ~RepeatedCall();
  RepeatedCall(const RepeatedCall&) = delete;
  RepeatedCall& operator=(const RepeatedCall&) = delete;

  /// Local. A call begins, or is over.
  void begin() { calls_.fetch_add(1, std::memory_order_relaxed); }
  void end() { calls_.fetch_add(1, std::memory_order_relaxed); }

 private:
  void run();

  const std::string who_;
  const std::string what_;
  const BlockingCall::Patience patience_;
  std::atomic<std::uint64_t> calls_{0};  // begins and ends: odd while a call is made
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace tailrace::comm
