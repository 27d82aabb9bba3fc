// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/line.hpp"
#include "files/outcome.hpp"
#include "files/service.hpp"

namespace tailrace::files {

class Channel;

/// The ranks that open files together: those of one communicator of the program. Its files are told apart by
/// an epoch, so that thousands of them share one line.
class Group {
 public:
  /// The rank that opens files of the serial mode, and whose arguments of formatted output count.
  static constexpr int io_rank = 0;

  Group(Service& service, std::unique_ptr<comm::Line> line);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  [[nodiscard]] int rank() const { return line_->rank(); }
  [[nodiscard]] int size() const { return line_->size(); }
  [[nodiscard]] bool is_io_rank() const { return rank() == io_rank; }
  [[nodiscard]] Service& service() { return service_; }
  [[nodiscard]] comm::Line& line() { return *line_; }
  /// The node of each rank, named by the lowest of its ranks.
  [[nodiscard]] const std::vector<int>& nodes() const { return nodes_; }
  /// The ranks of the caller's node.
  [[nodiscard]] comm::Line& node() { return *node_; }
  std::uint64_t new_epoch() { return next_epoch_++; }

  /// Collective when it is called for the first time: the way of this group's arrays. `call` is for the
  /// watchdog.
  Result<Channel*> channel(const std::string& call);
  [[nodiscard]] bool has_channel() const { return channel_ != nullptr; }

  /// Collective: everybody's vote, and the verdict. Blocks until all have voted.
  comm::Verdict agree(comm::Vote vote);
  /// Collective: what the I/O rank says, on every rank. Blocks until it has said it.
  Result<ByteVector> broadcast(ByteVector bytes, const std::string& call);
  /// Collective: the I/O rank's outcome, on every rank.
  Outcome share(Outcome mine, const std::string& call);
  /// Blocks until `done` while moving everything else on. `what` is for the watchdog.
  void wait(const std::function<bool()>& done, const std::string& what);

 private:
  void find_nodes();

  Service& service_;
  std::unique_ptr<comm::Line> line_;
  std::unique_ptr<comm::Line> node_;
  std::vector<int> nodes_;
  std::uint64_t next_epoch_ = 0;
  std::unique_ptr<Channel> channel_;
};

}  // namespace tailrace::files
