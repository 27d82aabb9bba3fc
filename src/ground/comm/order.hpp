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

/// The place of a collective call among all calls on its line.
struct OrderedCall {
  enum class Kind : std::uint32_t { agreement, broadcast, step };
  LineNumber line = 0;
  Kind kind = Kind::agreement;
  std::uint32_t stream = 0;  // the stream of a step
  std::uint64_t number = 0;
  friend bool operator==(const OrderedCall&, const OrderedCall&) = default;
};

/// A rank's wait in a collective call.
struct OrderedWait {
  OrderedCall entry;
  std::string_view call;
  std::vector<int> awaited;  // ranks of the line that may not have entered the call yet
};

/// Finds ranks that would wait for each other forever, in calls on different lines or in calls without an
/// agreement. All ranks of a session must make their collective calls in one order, whatever the calls are
/// about. "A rank has come to a call" means: it has entered the call.
///
/// A rank that has waited for a second asks the ranks for which it waits whether they have come to its call.
/// An asked rank answers if it has not come to that call, and itself waits in another call that the asking
/// rank must make too. It answers with its call. If the asking rank has not come to that call either, the two
/// ranks make the two calls in different order. Then the asking rank tells compute rank 0.
///
/// Compute rank 0 passes the first report on to all ranks. From then on the order is broken: rank 0 of each
/// line ends the line (Line::end), so that all ranks of the line see the same calls succeed and the same
/// calls fail. Every later collective call fails with the same status on every rank.
class Order {
 public:
  explicit Order(Switchboard& board) : board_(board) {}
  Order(const Order&) = delete;
  Order& operator=(const Order&) = delete;

  /// Gives the line on which questions, answers and reports travel. It stays open as long as any other line.
  /// Before this call no rank asks.
  void connect(Line& computes);
  /// Sets the function that tells whether this rank has come to the end of a step. For other entries the
  /// lines tell it.
  void on_step(std::function<bool(const OrderedCall& entry)> has_come) {
    has_come_to_step_ = std::move(has_come);
  }

  /// Notes that this rank begins to wait, or, with nullptr, that its wait is over. Waits are not nested.
  void enter(const OrderedWait* wait);
  /// Called again and again while this rank waits. Once it has waited long enough, it asks, and answers
  /// questions.
  void look(std::int64_t waited_nanoseconds);

  /// Returns the error that names the calls that broke the order, or nothing while the order holds.
  [[nodiscard]] const std::optional<Status>& broken() const { return broken_; }

 private:
  static constexpr std::uint32_t question_message = 5;
  static constexpr std::uint32_t answer_message = 6;
  static constexpr std::uint32_t broken_message = 7;
  struct Question {
    OrderedCall entry;
    std::uint64_t asking = 0;    // the number of the asking rank's wait
    std::uint64_t answered = 0;  // the number of this rank's wait in which it answered
  };
  [[nodiscard]] bool has_come(const OrderedCall& entry) const;
  void ask();
  void answer(int source, Question& question);
  void on_answer(int source, Unpacker& in);
  void on_broken(const Status& why);

  Switchboard& board_;
  Line* computes_ = nullptr;
  std::function<bool(const OrderedCall&)> has_come_to_step_;
  const OrderedWait* wait_ = nullptr;
  /// Number of waits so far. It tells a wait from an earlier one for the same entry.
  std::uint64_t waits_ = 0;
  bool has_asked_ = false;  // this rank has asked in this wait
  /// The last question of each compute rank, until this rank has come to the entry asked about.
  std::map<int, Question> questions_;
  std::optional<Status> broken_;
};

}  // namespace tailrace::comm
