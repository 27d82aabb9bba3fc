// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/comm/counters/blocking_call.hpp"

#include <algorithm>
#include <utility>

#include "ground/base/log.hpp"
#include "ground/base/text.hpp"
#include "ground/base/thread.hpp"
#include "ground/comm/end_job.hpp"

namespace tailrace::comm {

BlockingCall::BlockingCall(std::string who, std::string what, const Patience& patience)
    : who_(std::move(who)), what_(std::move(what)), patience_(patience) {
  if (!patience_.warn_seconds && !patience_.give_up_seconds) return;
  Result<std::thread> started = start_thread([this] { run(); });
  if (started.is_ok()) thread_ = *std::move(started);
}

BlockingCall::~BlockingCall() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

bool BlockingCall::is_over_within(std::int64_t seconds) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::seconds(seconds), [this] { return is_over_; });
}

void BlockingCall::run() {
  const std::optional<std::int64_t>& warns = patience_.warn_seconds;
  const std::optional<std::int64_t>& gives_up = patience_.give_up_seconds;
  std::int64_t waited = 0;
  if (warns && !(gives_up && *gives_up <= *warns)) {
    waited = *warns;
    if (is_over_within(waited)) return;
    log(LogLevel::warn, cat(who_, " has waited ", waited, " s for ", what_));
  }
  if (!gives_up || is_over_within(*gives_up - waited)) return;
  end_job(cat(who_, " gives up (TAILRACE_TIMEOUT) after waiting ", *gives_up, " s for ", what_));
}

RepeatedCall::RepeatedCall(std::string who, std::string what, const BlockingCall::Patience& patience)
    : who_(std::move(who)), what_(std::move(what)), patience_(patience) {
  if (!patience_.warn_seconds && !patience_.give_up_seconds) return;
  Result<std::thread> started = start_thread([this] { run(); });
  if (started.is_ok()) thread_ = *std::move(started);
}

RepeatedCall::~RepeatedCall() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void RepeatedCall::run() {
  std::uint64_t seen = 0;
  std::int64_t waited = 0;
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, std::chrono::seconds(1), [this] { return is_over_; })) {
    const std::uint64_t now = calls_.load(std::memory_order_relaxed);
    waited = now == seen && now % 2 == 1 ? waited + 1 : 0;
    seen = now;
    if (patience_.give_up_seconds && waited >= std::max<std::int64_t>(*patience_.give_up_seconds, 1))
      end_job(cat(who_, " gives up (TAILRACE_TIMEOUT) after waiting ", waited, " s for ", what_));
    if (patience_.warn_seconds && waited == std::max<std::int64_t>(*patience_.warn_seconds, 1))
      log(LogLevel::warn, cat(who_, " has waited ", waited, " s for ", what_));
  }
}

}  // namespace tailrace::comm
