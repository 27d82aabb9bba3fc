// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/exchange/node_ranks.hpp"
#include "ground/comm/line.hpp"
#include "ground/comm/switchboard.hpp"
#include "ground/executor/threads.hpp"
#include "ground/node/budget.hpp"
#include "ground/settings/settings.hpp"

namespace tailrace::exchange {

class Channel;

/// The ranks of one communicator of the program. They move arrays between their memory and files together.
class Group {
 public:
  /// The rank that opens files of the serial mode. Formatted output prints the arguments of this rank.
  static constexpr int io_rank = 0;

  /// `node_of` takes a rank of the transport. The other arguments must outlive the group.
  Group(std::unique_ptr<comm::Line> line, const std::function<int(int)>& node_of, executor::Threads& threads,
        const Settings& settings, node::Budget& budget);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  [[nodiscard]] int rank() const { return line_->rank(); }
  [[nodiscard]] int size() const { return line_->size(); }
  [[nodiscard]] bool is_io_rank() const { return rank() == io_rank; }
  [[nodiscard]] comm::Line& line() { return *line_; }
  /// Returns the node of each rank, named by the lowest of its ranks.
  [[nodiscard]] const std::vector<int>& nodes() const { return nodes_; }
  /// Returns the group's ranks by nodes. All files and arrays of the group share the result.
  [[nodiscard]] const NodeRanks& node_ranks();
  /// Returns the line of the ranks of the caller's node.
  [[nodiscard]] comm::Line& node() { return *node_; }
  [[nodiscard]] executor::Threads& threads() { return threads_; }
  [[nodiscard]] const Settings& settings() const { return settings_; }
  /// Returns the memory budget of the caller's node.
  [[nodiscard]] node::Budget& budget() { return budget_; }

  /// Returns the group's channel. The first call creates it and is collective. `call` names the program's
  /// call for the watchdog.
  Result<Channel*> channel(const std::string& call);
  [[nodiscard]] bool has_channel() const { return channel_ != nullptr; }

  /// Collective. Hands in the caller's vote and returns the verdict. Blocks until all have voted.
  comm::Verdict agree(comm::Vote vote) { return line_->agree(std::move(vote)); }
  /// Moves the switchboard on until `done` returns true. `what` tells the watchdog what the caller waits for.
  void wait(const std::function<bool()>& done, const std::string& what) { line_->board().wait(done, what); }

 private:
  std::unique_ptr<comm::Line> line_;
  std::unique_ptr<comm::Line> node_;
  std::vector<int> nodes_;
  std::unique_ptr<NodeRanks> node_ranks_;  // made by the first node_ranks()
  executor::Threads& threads_;
  const Settings& settings_;
  node::Budget& budget_;
  std::unique_ptr<Channel> channel_;
};

}  // namespace tailrace::exchange
