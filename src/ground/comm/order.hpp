// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "ground/base/status.hpp"
#include "ground/comm/transport.hpp"

namespace tailrace::comm {

class Line;
class Switchboard;

/// The place of a collective call among the calls of its line.
struct Entry {
  enum class Kind : std::uint32_t { agreement, broadcast, step };
  LineNumber line = 0;
  Kind kind = Kind::agreement;
  std::uint32_t stream = 0;  // the stream of a step
  std::uint64_t number = 0;
  friend bool operator==(const Entry&, const Entry&) = default;
};

/// A wait in a collective call.
struct OrderedWait {
  Entry entry;
  std::string_view call;
  std::vector<int> awaited;  // ranks of the line that may not have come yet
};

/// Finds ranks that would wait for each other for ever, in calls on different lines or in calls without an
/// agreement. The ranks of a session come to their collective calls in one order, whatever the calls are
/// about; a rank has come to a call once it has entered it.
///
/// A rank that has waited for a second asks the ranks that it waits for whether they have come to its call. A
/// rank that has not, and waits in another call that the asking rank must make too, answers with that call.
/// If the asking rank has not come to it either, the two make these calls in different order, and the asking
/// rank tells compute rank 0.
///
/// Compute rank 0 passes the first report on to all ranks. The order is broken from then on: rank 0 of each
/// line ends the line (Line::end), so that all of its ranks see the same calls succeed and the same calls
/// fail. Every later collective call fails with the same status on every rank.
class Order {
 public:
  explicit Order(Switchboard& board) : board_(board) {}
  Order(const Order&) = delete;
  Order& operator=(const Order&) = delete;

  /// Messages of the order travel on `computes`, which stays open as long as any other line. Before this call
  /// nobody asks.
  void connect(Line& computes);
  /// `has_come` tells that this rank has come to the end of a step. The lines tell it of other entries.
  void on_step(std::function<bool(const Entry& entry)> has_come) { has_come_to_step_ = std::move(has_come); }

  /// Says that this rank begins to wait, or with nullptr that it waits no more. Waits are not nested.
  void enter(const OrderedWait* wait);
  /// Called while this rank waits. Asks and answers once the rank has waited long enough.
  void look(std::int64_t waited_nanoseconds);

  /// Returns the calls that broke the order, or nothing while it holds.
  [[nodiscard]] const std::optional<Status>& broken() const { return broken_; }

 private:
  static constexpr std::uint32_t question_message = 5;
  static constexpr std::uint32_t answer_message = 6;
  static constexpr std::uint32_t broken_message = 7;
  struct Question {
    Entry entry;
    std::uint64_t asking = 0;    // the wait of the rank that asks
    std::uint64_t answered = 0;  // this rank's wait in which it answered
  };
  [[nodiscard]] bool has_come(const Entry& entry) const;
  void ask();
  void answer(int source, Question& question);
  void on_answer(int source, Unpacker& in);
  void on_broken(const Status& why);

  Switchboard& board_;
  Line* computes_ = nullptr;
  std::function<bool(const Entry&)> has_come_to_step_;
  const OrderedWait* wait_ = nullptr;
  std::uint64_t waits_ = 0;            // number of waits so far: tells this wait from an earlier one for the
                                       // same entry
  bool has_asked_ = false;             // in this wait
  std::map<int, Question> questions_;  // the last question of each compute rank, until this rank has come to
                                       // its entry
  std::optional<Status> broken_;
};

}  // namespace tailrace::comm
