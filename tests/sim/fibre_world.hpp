// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/switchboard.hpp"
#include "sim/fibre.hpp"
#include "sim/network.hpp"

namespace tailrace::sim {

/// A simulated rank: its switchboard, and its program on a fibre. The program calls what blocks as a real one
/// does: Switchboard::wait idles by letting the other ranks run.
class FibreRank {
 public:
  FibreRank(Scheduler& scheduler, Port& port);
  FibreRank(const FibreRank&) = delete;
  FibreRank& operator=(const FibreRank&) = delete;

  [[nodiscard]] int rank() const { return port_.rank(); }
  [[nodiscard]] Port& port() { return port_; }
  [[nodiscard]] comm::Switchboard& board() { return board_; }

  /// Called by its program: computes for this long, and neither hears nor sends meanwhile.
  void stall(Nanoseconds duration);
  /// Something happened, besides messages, that the rank may wait for.
  void poke();
  /// It is gone: its program goes no further.
  void lose() { actor_.lose(); }

 private:
  friend class FibreWorld;
  void start(std::function<void()> program);
  Task<> drive();
  void idle(Nanoseconds duration, const std::string& what);
  void sleep(std::function<bool()> awake, std::string what, Nanoseconds limit);
  /// "rank 3 waits for ..."; "" if its program has ended or it is lost.
  [[nodiscard]] std::string unfinished() const;

  Port& port_;
  comm::Switchboard board_;
  Actor actor_;
  Nanoseconds nap_ = 0;  // how long it idled last
  bool is_poked_ = false;
  // The program sleeps for these while it pauses.
  std::function<bool()> awake_;
  std::string what_;
  Nanoseconds limit_ = 0;
  std::unique_ptr<Fibre> fibre_;  // goes before what its program uses
};

/// Ranks that run the library's blocking calls in simulated time, with a network between them.
class FibreWorld {
 public:
  FibreWorld(int size, std::uint64_t seed);

  [[nodiscard]] int size() const { return static_cast<int>(ranks_.size()); }
  [[nodiscard]] FibreRank& rank(int number) { return *ranks_[static_cast<std::size_t>(number)]; }
  [[nodiscard]] comm::Switchboard& board(int number) { return rank(number).board(); }
  [[nodiscard]] Scheduler& scheduler() { return scheduler_; }

  /// Runs `program` on each rank, once in a world. Returns the ranks that have not ended after `limit` of
  /// simulated time, with what they wait for; their programs are unwound before it returns. Throws what a
  /// program throws.
  [[nodiscard]] std::vector<std::string> run(const std::function<void(FibreRank&)>& program,
                                             Nanoseconds limit = hour);
  /// Until nothing can happen any more.
  void settle();

  static constexpr Nanoseconds second = 1'000'000'000;
  static constexpr Nanoseconds hour = 3600 * second;

 private:
  [[nodiscard]] bool all_have_ended() const;

  Scheduler scheduler_;
  Network network_;
  std::vector<std::unique_ptr<FibreRank>> ranks_;
};

}  // namespace tailrace::sim
