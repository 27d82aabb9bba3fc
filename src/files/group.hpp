// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/agreement.hpp"
#include "comm/broadcast.hpp"
#include "comm/mpi_transport.hpp"
#include "files/outcome.hpp"
#include "files/service.hpp"

namespace tailrace::files {

class Channel;

/// The ranks that open files together: those of one communicator. Its files are told apart by an epoch, so
/// that thousands of them need one private communicator (MPICH has 2,046 in all).
class Group {
 public:
  /// The rank that opens files of the serial mode, and whose arguments of formatted output count.
  static constexpr int io_rank = 0;

  /// Collective over `comm`. Blocks until all ranks of `comm` have called it. The same Status on every rank.
  /// `call` is the program's, for the watchdog.
  static Result<std::shared_ptr<Group>> create(Service& service, MPI_Comm comm, const std::string& call);
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  [[nodiscard]] int rank() const { return transport_->rank(); }
  [[nodiscard]] int size() const { return transport_->size(); }
  [[nodiscard]] bool is_io_rank() const { return rank() == io_rank; }
  [[nodiscard]] Service& service() { return service_; }
  [[nodiscard]] comm::MpiTransport& transport() { return *transport_; }
  /// The node of each rank, named by the lowest of its ranks.
  [[nodiscard]] const std::vector<int>& nodes() const { return nodes_; }
  /// The ranks of the caller's node, as a communicator.
  [[nodiscard]] MPI_Comm node() const { return node_; }
  std::uint64_t new_epoch() { return next_epoch_++; }

  /// Collective when it is called for the first time: the way of this group's arrays. `call` is for the
  /// watchdog.
  Result<Channel*> channel(const std::string& call);
  [[nodiscard]] bool has_channel() const { return channel_ != nullptr; }

  /// Collective: everybody's vote, and the verdict. Blocks until all have voted.
  comm::Verdict agree(comm::Vote vote);
  /// Collective: what the I/O rank says, on every rank. Blocks until it has said it.
  ByteVector broadcast(ByteVector bytes, const std::string& call);
  /// Collective: the I/O rank's outcome, on every rank.
  Outcome share(Outcome mine, const std::string& call);
  /// Blocks until `done` while moving everything else on. For the watchdog: `what`, and whom this rank has
  /// not heard from.
  void wait(const std::function<bool()>& done, const std::string& what,
            const std::function<std::string()>& missing = {});

 private:
  Group(Service& service, std::unique_ptr<comm::MpiTransport> transport);
  void find_nodes(MPI_Comm comm);
  void pump();
  [[nodiscard]] std::string missing(std::uint64_t agreement) const;

  Service& service_;
  std::unique_ptr<comm::MpiTransport> transport_;
  comm::Agreements agreements_;
  comm::Broadcasts broadcasts_;
  MPI_Comm node_ = MPI_COMM_NULL;
  std::vector<int> nodes_;
  std::uint64_t next_epoch_ = 0;
  std::unique_ptr<Channel> channel_;
};

}  // namespace tailrace::files
