// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ground/comm/line_numbers.hpp"
#include "ground/comm/order.hpp"
#include "ground/comm/transport.hpp"

namespace tailrace::comm {

class Line;

/// All lines of one process over one Transport, and the one loop that moves them on. Whichever call of the
/// library waits, everything else goes on meanwhile.
class Switchboard {
 public:
  /// The watchdog's settings: how a waiting rank names itself, and how long it waits before it warns or ends
  /// the job.
  struct Watch {
    std::string who;            // "compute rank 3"
    std::string call;           // the program's call, if its name is not in the text of what is waited for
    bool has_own_core = false;  // if this rank yields in vain, no other rank needs its core
    std::optional<std::int64_t> warn_seconds;
    std::optional<std::int64_t> give_up_seconds;
    std::function<void()> before_each_look = [] {};  // lets go of what is kept back until this rank waits
    std::function<std::string()> missing;            // the ranks that it waits for besides those of the wait
                                                     // itself
  };

  Switchboard() = default;
  ~Switchboard();
  Switchboard(const Switchboard&) = delete;
  Switchboard& operator=(const Switchboard&) = delete;

  /// Before this call there are no lines, and wait() moves nothing on.
  void connect(Transport& transport) { transport_.connect(transport); }
  [[nodiscard]] Transport& transport() { return transport_; }
  Watch& watch() { return watch_; }
  [[nodiscard]] Order& order() { return order_; }
  [[nodiscard]] LineNumbers& numbers() { return numbers_; }
  /// Returns the line that is open here, or nullptr.
  [[nodiscard]] Line* find(LineNumber line) const;
  /// Ends all lines, also those that are opened later, because the order is broken. Two kinds stay: the line
  /// on which the ranks settle the break, and the lines of saves that go on behind the program.
  void end_lines();

  /// Makes one pass over everything that may have become possible. Returns true if something moved. Never
  /// blocks.
  bool pump();
  /// Blocks until `done` while moving everything on. The rest is for the watchdog: `what`, and the ranks that
  /// this rank has not heard from, as sentences with a space before each.
  void wait(const std::function<bool()>& done, const std::string& what,
            const std::function<std::string()>& missing = {});
  /// Does the same in a collective call.
  void wait(const std::function<bool()>& done, const std::string& what, const OrderedWait& ordered,
            const std::function<std::string()>& missing = {});
  /// Makes every pass call `advance` too, until remove_work(). `advance` returns true if something moved, and
  /// must not wait.
  int add_work(std::function<bool()> advance);
  void remove_work(int number) { work_.erase(number); }

  /// Ranks that have no line yet agree on a tag that is free on all of them, and on a count that none has
  /// used.
  [[nodiscard]] line_number::Tags free_tags() const;

  /// Returns true if everything that any line, open or closed, has sent has left this process, and no other
  /// rank holds a large broadcast for a line that has closed here.
  [[nodiscard]] bool all_sent() const;
  /// Returns the number of control messages that no line took.
  [[nodiscard]] std::int64_t strays() const { return strays_; }

 private:
  friend class Line;
  void open(Line& line);
  void close(Line& line);
  void end_if_broken(Line& line);
  /// Makes the passes take and drop a large broadcast of a line that has closed: its sender waits for that.
  void abandon(int source, LineNumber line) { abandoned_.emplace_back(source, line); }
  bool move_on();
  void deliver(Envelope envelope);
  void deliver_early();
  [[nodiscard]] std::string waiting(std::int64_t nanoseconds, const std::string& what) const;

  SharedTransport transport_;
  Watch watch_;
  Order order_{*this};
  LineNumbers numbers_;
  std::map<LineNumber, Line*> lines_;
  std::map<LineNumber, std::deque<Envelope>> early_;  // for lines that are not open here yet
  std::vector<LineNumber> opened_;                    // opened since early messages were delivered last
  std::vector<std::pair<int, LineNumber>> abandoned_;
  std::int64_t strays_ = 0;
  std::map<int, std::function<bool()>> work_;
  int next_work_ = 0;
};

}  // namespace tailrace::comm
