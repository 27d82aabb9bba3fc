// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ground/comm/switchboard.hpp"
#include "ground/sim/fibre.hpp"
#include "ground/sim/network.hpp"

namespace tailrace::sim {

/// A simulated rank: its switchboard, and its program on a fibre. The program makes blocking calls as a real
/// one does: Switchboard::wait idles by letting the other ranks run.
class FibreRank final : private Waiter {
 public:
  FibreRank(Scheduler& scheduler, Port& port);
  FibreRank(const FibreRank&) = delete;
  FibreRank& operator=(const FibreRank&) = delete;

  [[nodiscard]] int rank() const { return port_.rank(); }
  [[nodiscard]] Port& port() { return port_; }
  [[nodiscard]] comm::Switchboard& board() { return board_; }

  /// Called by the rank's program: computes for this long. The rank receives and sends nothing meanwhile.
  void stall(Nanoseconds duration);
  /// Begins to measure the processor time of the program. That takes two system calls a step.
  void measure_work() { measures_work_ = true; }
  /// Returns the processor time measured so far in seconds, without the current step.
  [[nodiscard]] double worked() const { return worked_; }
  /// Makes the rank look again at what it waits for: something other than a message has happened.
  void poke();
  /// Marks the rank as gone (killed, or its node lost power): its program goes no further.
  void lose() { state_ = State::lost; }
  /// Sets a function that returns how long the calls since its last call take. The program then waits for so
  /// long.
  void on_cost(std::function<Nanoseconds()> cost) { cost_ = std::move(cost); }
  /// Sets a function that is called after each step of its program, in which it may have written to shared
  /// memory.
  void on_step(std::function<void()> hook) { on_step_ = std::move(hook); }
  /// Makes the rank look again: shared memory was written to, or a message has arrived or left.
  void look() override;
  /// Parks without the limits that heal a lost wake-up.
  void park_without_limit() { limits_parks_ = false; }
  /// A planted mistake: parks on a ticket of its own, which forgets rings since the caller's ticket.
  void park_on_a_late_ticket() { parks_late_ = true; }

 private:
  friend class FibreWorld;
  enum class State { ready, asleep, done, lost };
  void start(std::function<void()> program);
  void schedule(Nanoseconds at_least);
  void step();
  void take_step();
  void resume();
  void fall_asleep();
  [[nodiscard]] bool has_ended() const { return state_ == State::done || state_ == State::lost; }
  void idle(Nanoseconds duration, const std::string& what) override;
  void park(comm::Doorbell& bell, std::uint32_t ticket, Nanoseconds limit) override;
  void let_others_run() override;
  void sleep(std::function<bool()> awake, std::string what, Nanoseconds limit);
  /// Returns "rank 3 waits for ...", or "" if its program has ended or it is lost.
  [[nodiscard]] std::string unfinished() const;

  Scheduler& scheduler_;
  Port& port_;
  comm::Switchboard board_;
  State state_ = State::ready;
  std::function<void()> on_step_;
  std::function<Nanoseconds()> cost_ = [] { return 0; };
  double worked_ = 0;
  bool measures_work_ = false;
  bool limits_parks_ = true;
  bool parks_late_ = false;
  Nanoseconds nap_ = 0;   // how long the rank has idled last
  bool is_turn_ = false;  // the rank only lets others run, and waits for nothing
  bool pays_ = false;     // the rank waits for the time that its step has cost, and sleeps afterwards
  bool is_poked_ = false;
  // The pausing program sleeps until this returns true, or for `limit_` if that is above 0.
  std::function<bool()> awake_;
  std::string what_;
  Nanoseconds limit_ = 0;
  std::uint64_t sleeps_ = 0;
  std::unique_ptr<Fibre> fibre_;  // destroyed before the objects that its program uses
};

/// Ranks that run the library's blocking calls in simulated time, with a network between them.
class FibreWorld {
 public:
  FibreWorld(int size, std::uint64_t seed);

  [[nodiscard]] int size() const { return static_cast<int>(ranks_.size()); }
  [[nodiscard]] FibreRank& rank(int number) { return *ranks_[static_cast<std::size_t>(number)]; }
  [[nodiscard]] comm::Switchboard& board(int number) { return rank(number).board(); }
  [[nodiscard]] Scheduler& scheduler() { return scheduler_; }
  /// Sets a function that is called for each message that a rank sends.
  void on_send(Network::OnSend hook) { network_.on_send(std::move(hook)); }
  /// Counts the messages that ranks have sent to other ranks so far.
  [[nodiscard]] std::int64_t messages() const;

  /// Runs `program` on each rank, once in a world. Returns the ranks that have not ended after `limit` of
  /// simulated time, with what they wait for; their programs are unwound before it returns. Throws what a
  /// program throws.
  [[nodiscard]] std::vector<std::string> run(const std::function<void(FibreRank&)>& program,
                                             Nanoseconds limit = hour);
  /// Runs until nothing can happen any more.
  void settle();
  /// Sets a function that is called at the end of run(), while programs that have not ended still wait.
  void before_unwinding(std::function<void()> hook) { before_unwinding_ = std::move(hook); }

  static constexpr Nanoseconds second = 1'000'000'000;
  static constexpr Nanoseconds hour = 3600 * second;

 private:
  [[nodiscard]] bool all_have_ended() const;

  Scheduler scheduler_;
  Network network_;
  std::vector<std::unique_ptr<FibreRank>> ranks_;
  std::function<void()> before_unwinding_ = [] {};
};

}  // namespace tailrace::sim
