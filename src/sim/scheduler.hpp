// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "sim/task.hpp"

namespace tailrace::sim {

/// Simulated time.
using Nanoseconds = std::int64_t;

/// Events in simulated time, in one thread. The seed decides everything that happens, and its order.
class Scheduler {
 public:
  explicit Scheduler(std::uint64_t seed);

  [[nodiscard]] Nanoseconds now() const { return now_; }
  /// Runs `event` after `delay`. Events of the same instant run in random order.
  void after(Nanoseconds delay, std::function<void()> event);
  /// Runs the earliest event. Returns false if nothing can happen any more.
  bool run_one();

  /// Returns a whole number in low .. high.
  std::int64_t random(std::int64_t low, std::int64_t high);
  /// Returns true in one of `times` cases.
  bool once_in(std::int64_t times) { return random(1, times) == 1; }
  /// Returns how long a step of a rank, a message or a task takes: mostly short, now and then long, since a
  /// process may lose its core or a message its way at any moment. The seed also decides how wild the delays
  /// get.
  Nanoseconds step_delay();
  Nanoseconds message_delay();

 private:
  struct Event {
    Nanoseconds when = 0;
    std::uint64_t tie = 0;
    std::size_t place =
        0;  // of its function in functions_: a heap moves its elements, and functions are large
  };

  std::mt19937_64 random_;
  Nanoseconds now_ = 0;
  Nanoseconds longest_message_ = 0;
  std::int64_t stall_once_in_ = 0;
  std::vector<Event> events_;  // a heap, the earliest on top
  std::vector<std::function<void()>> functions_;
  std::vector<std::size_t> free_places_;
};

/// Something that runs in steps of its own: a rank. Between two steps any other actor may run.
class Actor {
 public:
  Actor(Scheduler& scheduler, std::string name) : scheduler_(scheduler), name_(std::move(name)) {}
  Actor(const Actor&) = delete;
  Actor& operator=(const Actor&) = delete;

  void start(Task<> body);
  /// Sets a function that is called after each of its steps.
  void on_step(std::function<void()> hook) { on_step_ = std::move(hook); }

  struct Pause {
    Actor& actor;
    Nanoseconds at_least;
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> where);
    void await_resume() const noexcept {}
  };
  /// Ends this step; the next begins a little later.
  Pause step(Nanoseconds at_least = 0) { return {*this, at_least}; }

  struct Sleep {
    Actor& actor;
    std::function<bool()> awake;
    std::string what;
    Nanoseconds limit;
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> where);
    void await_resume() const noexcept {}
  };
  /// Sleeps until `awake` returns true. It is called when the sleep begins and whenever poke() is called.
  /// `what` says what the actor waits for, for a simulation that is stuck. With a limit above 0 a timer wakes
  /// it too.
  Sleep sleep(std::function<bool()> awake, std::string what, Nanoseconds limit = 0) {
    return {*this, std::move(awake), std::move(what), limit};
  }
  /// Says that something happened that may concern it.
  void poke();
  /// Marks it as gone: killed, or its node lost power. It never takes another step.
  void lose() { state_ = State::lost; }
  /// Ends its program wherever it stands. To be called before the things that it refers to are gone.
  void abandon() { body_ = {}; }

  [[nodiscard]] bool is_done() const { return state_ == State::done; }
  [[nodiscard]] bool is_lost() const { return state_ == State::lost; }
  [[nodiscard]] const std::string& name() const { return name_; }
  /// Returns what it sleeps on, or "" if it does not sleep.
  [[nodiscard]] std::string waits_for() const { return state_ == State::asleep ? what_ : ""; }

 private:
  enum class State { ready, asleep, done, lost };
  void schedule(Nanoseconds at_least);
  void resume();

  Scheduler& scheduler_;
  std::string name_;
  Task<> body_;
  std::coroutine_handle<> where_;
  State state_ = State::ready;
  std::uint64_t sleeps_ = 0;
  std::function<bool()> awake_;
  std::string what_;
  std::function<void()> on_step_;
};

}  // namespace tailrace::sim
