// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "ground/comm/transport.hpp"

namespace tailrace::comm {

/// A process's own thread is always in exactly one of these.
enum class Routine : std::uint8_t {
  model,              // compute ranks: the program's own work
  message,            // looking at messages and lanes, and what the library does beside the others
  barrier,            // waiting for other ranks in an agreement
  capture,            // packing what is put, or accumulating it
  staging_full,       // waiting for free staging memory
  skew,               // waiting for the other ranks' end of a step
  get_wait,           // waiting for a field that is read, or reading it
  wait_for_storage,   // waiting for steps to become durable; on a server: for its writes and syncs
  wait_for_messages,  // servers: waiting for other servers
  wait_for_encoding,  // servers: waiting for the own workers that encode
  assemble,           // servers: packing pieces for other servers
  work,               // ranks that serve themselves: jobs that a server's workers would do
  idle,               // servers: nothing to do
  count
};

/// Nanoseconds by routine. No moment counts twice.
struct Spent {
  std::array<std::int64_t, static_cast<std::size_t>(Routine::count)> nanoseconds{};

  std::int64_t& operator[](Routine routine) { return nanoseconds[static_cast<std::size_t>(routine)]; }
  std::int64_t operator[](Routine routine) const { return nanoseconds[static_cast<std::size_t>(routine)]; }
};

/// Adds up where the time of a process's own thread goes. Only this thread uses it. All routines together are
/// the time since begin(): a change of the routine reads the clock once, and ends one and begins the other.
class Account {
 public:
  /// `clock` must outlive this.
  explicit Account(const Transport& clock) : clock_(clock) {}

  void begin(Routine routine) {
    spent_ = {};
    begun_ = since_ = clock_.now();
    current_ = routine;
  }
  [[nodiscard]] Routine current() const { return current_; }
  /// Ends the current routine and begins another. Returns the time.
  std::int64_t turn_to(Routine routine) {
    const std::int64_t now = clock_.now();
    spent_[current_] += now - std::exchange(since_, now);
    current_ = routine;
    return now;
  }
  /// Returns the nanoseconds of each routine up to now. Together they are elapsed(), asked next.
  [[nodiscard]] Spent spent() {
    turn_to(current_);
    return spent_;
  }
  /// Returns the nanoseconds from begin() to the last change of the routine.
  [[nodiscard]] std::int64_t elapsed() const { return since_ - begun_; }

  /// Turns to a routine, and at its end back to the one before.
  class Turn {
   public:
    Turn(Account& account, Routine routine)
        : account_(account), before_(account.current()), begin_(account.turn_to(routine)) {}
    ~Turn() { end(); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    [[nodiscard]] Routine before() const { return before_; }
    [[nodiscard]] std::int64_t begin() const { return begin_; }
    /// Turns back now. Returns the time; later calls return the same.
    std::int64_t end() {
      if (!std::exchange(is_over_, true)) end_ = account_.turn_to(before_);
      return end_;
    }

   private:
    Account& account_;
    const Routine before_;
    const std::int64_t begin_;
    std::int64_t end_ = 0;
    bool is_over_ = false;
  };

 private:
  const Transport& clock_;
  std::int64_t begun_ = 0;
  std::int64_t since_ = 0;
  Routine current_ = Routine::model;
  Spent spent_;
};

}  // namespace tailrace::comm
