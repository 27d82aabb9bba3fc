// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include "ground/base/waiting.hpp"

namespace tailrace::checkpoint {

/// Stands between the writing of the first rank's part and its sealing, which makes the copy count. The
/// thread that writes waits here until the steps that the copy records are settled. The thread sees that by
/// itself, so that the program need not call the library. In such calls the rank's own thread opens or shuts
/// the gate, once it has heard how the steps went.
class SealGate {
 public:
  /// `settled` is Outputs::settled_for_threads().
  explicit SealGate(std::function<std::optional<bool>()> settled) : settled_(std::move(settled)) {}

  /// On the thread that writes. Blocks until the gate is open or shut. Returns true if it is open. Shuts the
  /// gate if a step has failed: what follows from that is the rank's to say.
  [[nodiscard]] bool pass() {
    const auto begin = std::chrono::steady_clock::now();
    GrowingPause pause(std::chrono::milliseconds(1), std::chrono::milliseconds(20));
    std::unique_lock lock(mutex_);
    has_come_ = true;
    while (state_ == State::closed) {
      if (const std::optional<bool> settled = settled_())
        state_ = *settled ? State::open : State::shut;
      else
        decided_.wait_for(lock, pause.next());
    }
    waited_ = std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
    return state_ == State::open;
  }

  /// On the rank's own thread, like all that follow. Opens the gate if it is closed, and calls `before`
  /// first. Returns true if it was closed.
  bool open(const std::function<void()>& before) { return decide(State::open, before); }
  /// Shuts the gate if it is closed: the thread then leaves the part unsealed.
  bool shut() { return decide(State::shut, {}); }
  /// True while the thread waits.
  [[nodiscard]] bool is_awaited() const {
    const std::lock_guard lock(mutex_);
    return has_come_ && state_ == State::closed;
  }
  [[nodiscard]] bool is_open() const {
    const std::lock_guard lock(mutex_);
    return state_ == State::open;
  }
  /// Returns the nanoseconds that the thread has waited, once it has passed.
  [[nodiscard]] std::int64_t waited() const {
    const std::lock_guard lock(mutex_);
    return waited_;
  }

 private:
  enum class State { closed, open, shut };

  bool decide(State state, const std::function<void()>& before) {
    const std::lock_guard lock(mutex_);
    if (state_ != State::closed) return false;
    if (before) before();
    state_ = state;
    decided_.notify_all();
    return true;
  }

  const std::function<std::optional<bool>()> settled_;
  mutable std::mutex mutex_;
  std::condition_variable decided_;
  State state_ = State::closed;
  bool has_come_ = false;
  std::int64_t waited_ = 0;
};

}  // namespace tailrace::checkpoint
