// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "engine/exchange/group.hpp"
#include "ground/node/stripe_pool.hpp"

namespace tailrace::exchange {

class ExchangeThread;

/// Stripes in the node's shared memory through which array calls go, and each aggregator's next stripe
/// number.
struct Ring {
  std::unique_ptr<node::StripePool> pool;
  std::vector<std::uint64_t> numbers;  // by aggregator: its next stripe
};

/// The way of a group's arrays to its files and back. It knows which ranks are aggregators, and has the
/// stripes of the aggregators on the caller's node. Aggregator 0 is the I/O rank. Array calls take stripe
/// numbers in the order of the program, which is the same on every rank.
class Channel {
 public:
  /// Collective over the group. Returns the same Status on every rank.
  static Result<std::unique_ptr<Channel>> create(Group& group);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  [[nodiscard]] Group& group() { return group_; }
  /// Returns the ring of the synchronous or asynchronous array calls. The first call with each value of
  /// `async` is collective. Synchronous calls have a few stripes, which stay in a cache. Asynchronous calls
  /// have as many stripes as TAILRACE_IO_BUFFER holds.
  Result<Ring*> ring(bool async);
  [[nodiscard]] int aggregators() const { return static_cast<int>(ranks_.size()); }
  [[nodiscard]] int rank_of(int aggregator) const { return ranks_[static_cast<std::size_t>(aggregator)]; }
  /// Returns the caller's number among the first `count` aggregators, if it is one of them.
  [[nodiscard]] std::optional<int> own(int count) const;
  [[nodiscard]] bool is_near(int aggregator) const { return node_of(rank_of(aggregator)) == my_node(); }
  /// Returns the aggregator's number on its node; the pool uses this number.
  [[nodiscard]] int seat(int aggregator) const { return seats_[static_cast<std::size_t>(aggregator)]; }
  /// Returns the ranks of all nodes but the caller's.
  [[nodiscard]] const std::vector<int>& far_ranks() const { return far_ranks_; }

  /// Returns the thread that drives the exchange between nodes, or nullptr if the callers of array calls do,
  /// or if there is one node only.
  [[nodiscard]] ExchangeThread* thread() const { return thread_.get(); }
  /// True if no exchange between nodes is under way, and all bytes that array calls have read are in the
  /// callers' arrays.
  [[nodiscard]] bool is_idle() const;

  /// Returns the key of the tasks that copy read bytes to the callers' arrays. All files share it, since a
  /// rank passes the stripes in order, whatever file they belong to.
  [[nodiscard]] executor::Key key() const { return key_; }

 private:
  explicit Channel(Group& group);
  Status start_thread();
  void choose_aggregators(int per_node);
  [[nodiscard]] int node_of(int rank) const { return group_.nodes()[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] int my_node() const { return node_of(group_.rank()); }

  Group& group_;
  executor::Key key_;
  std::array<Ring, 2> rings_;
  std::unique_ptr<ExchangeThread> thread_;
  std::vector<int> ranks_;  // of the aggregators
  std::vector<int> seats_;
  std::vector<int> far_ranks_;
};

}  // namespace tailrace::exchange
