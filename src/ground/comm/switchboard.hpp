// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ground/comm/account.hpp"
#include "ground/comm/line_numbers.hpp"
#include "ground/comm/order.hpp"
#include "ground/comm/transport.hpp"

namespace tailrace::comm {

class Line;

/// All lines of one process over one Transport, and the one loop that moves them on. While any call of the
/// library waits, everything else moves on.
class Switchboard {
 public:
  /// The watchdog's settings: the name of a waiting rank, and how long it waits before it warns or ends the
  /// job.
  struct Watch {
    std::string who;            // "compute rank 3"
    std::string call;           // the program's call, if the text of the wait may not name it
    bool has_own_core = false;  // no other rank needs this rank's core
    std::optional<std::int64_t> warn_seconds;
    std::optional<std::int64_t> give_up_seconds;
    /// Called before each look: sends what the rank keeps back until it waits.
    std::function<void()> before_each_look = [] {};
    /// Names ranks that this rank waits for, besides those that the wait itself names.
    std::function<std::string()> missing;
  };

  Switchboard() = default;
  ~Switchboard();
  Switchboard(const Switchboard&) = delete;
  Switchboard& operator=(const Switchboard&) = delete;

  /// Sets the transport. Before this call there are no lines, and wait() moves nothing on.
  void connect(Transport& transport) { transport_.connect(transport); }
  [[nodiscard]] Transport& transport() { return transport_; }
  Watch& watch() { return watch_; }
  [[nodiscard]] Order& order() { return order_; }
  /// Returns where the time of the thread goes that uses this switchboard.
  [[nodiscard]] Account& account() { return account_; }
  [[nodiscard]] LineNumbers& numbers() { return numbers_; }
  /// Returns the line with this number if it is open here, otherwise nullptr.
  [[nodiscard]] Line* find(LineNumber line) const;
  /// Ends all lines, including those opened later, because the order of calls is broken. Two kinds of lines
  /// stay: the line on which the ranks settle the broken order, and the lines of asynchronous saves.
  void end_lines();

  /// Makes one pass over everything that may be able to move on. Returns true if something moved. Never
  /// blocks.
  bool pump();
  /// Blocks until `done` returns true, and moves everything on meanwhile. Unless the caller has turned to
  /// another routine, the wait counts as Routine::message. The watchdog prints `what`, the
  /// thing awaited, and the result of `missing`: the ranks that this rank has not heard from, as sentences
  /// with a space before each.
  void wait(const std::function<bool()>& done, const std::string& what,
            const std::function<std::string()>& missing = {});
  /// The same wait inside a collective call: Order also looks whether ranks wait for each other forever.
  void wait(const std::function<bool()>& done, const std::string& what, const OrderedWait& ordered,
            const std::function<std::string()>& missing = {});
  /// Makes every pass call `advance` too, until remove_work(). `advance` returns true if something moved, and
  /// must not wait. Returns the number for remove_work().
  int add_work(std::function<bool()> advance);
  void remove_work(int number) { work_.erase(number); }

  /// Returns the tags that no line of this process uses. Ranks that open a line agree on a tag that is free
  /// on all of them, and on a count that none of them has used.
  [[nodiscard]] line_number::Tags free_tags() const;

  /// True if all messages of all lines, open or closed, have left this process, and no other rank still holds
  /// a large broadcast for a line that was closed here.
  [[nodiscard]] bool all_sent() const;
  /// Returns how many control messages were of a kind that no receiver of their line takes.
  [[nodiscard]] std::int64_t strays() const { return strays_; }

 private:
  friend class Line;
  void open(Line& line);
  void close(Line& line);
  void end_if_broken(Line& line);
  /// Makes the passes take and drop a large broadcast for a line that was closed here, because its sender
  /// waits until it is taken.
  void abandon(int source, LineNumber line) { abandoned_.emplace_back(source, line); }
  bool move_on();
  void deliver(Envelope envelope);
  void deliver_early();
  [[nodiscard]] std::string waiting(std::int64_t nanoseconds, const std::string& what) const;

  SharedTransport transport_;
  Account account_{transport_};
  Watch watch_;
  Order order_{*this};
  LineNumbers numbers_;
  std::map<LineNumber, Line*> lines_;
  std::map<LineNumber, std::deque<Envelope>> early_;  // for lines that are not open here yet
  std::vector<LineNumber> opened_;  // lines opened since the last delivery of early messages
  std::vector<std::pair<int, LineNumber>> abandoned_;
  std::int64_t strays_ = 0;
  std::map<int, std::function<bool()>> work_;
  int next_work_ = 0;
};

}  // namespace tailrace::comm
