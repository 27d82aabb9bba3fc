// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <map>
#include <vector>

#include "ground/comm/counters/counters.hpp"
#include "ground/comm/line.hpp"

namespace tailrace::comm {

/// Counters by messages of a line: a process asks the one at which the counter lies, which answers. That
/// process has to make progress with its messages.
class MessageCounters final : public Counters {
 public:
  /// The first words of the two kinds of messages, which nothing else on the line has.
  struct Kinds {
    std::uint32_t add = 0;
    std::uint32_t added = 0;
  };
  /// Local. `ranks` are the processes' numbers in the line, which must outlive the object.
  MessageCounters(Line& line, std::vector<int> ranks, Kinds kinds);
  /// Has the line drop messages that come later.
  ~MessageCounters() override;
  MessageCounters(const MessageCounters&) = delete;
  MessageCounters& operator=(const MessageCounters&) = delete;

  void set(int counter, std::int64_t value) override { values_[static_cast<std::size_t>(counter)] = value; }
  void add(int process, int counter, std::int64_t amount, Taken taken) override;
  [[nodiscard]] bool are_one_sided() const override { return false; }

 private:
  std::int64_t add_here(int counter, std::int64_t amount);
  void on_add(int source, Unpacker& in);
  void on_added(Unpacker& in);

  Line& line_;
  const std::vector<int> ranks_;
  const Kinds kinds_;
  std::vector<std::int64_t> values_;
  std::int64_t last_ = 0;                     // number of the last question of this process
  std::map<std::int64_t, Taken> unanswered_;  // by question
};

}  // namespace tailrace::comm
