// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <atomic>
#include <chrono>
#include <memory>

#include "ground/comm/doorbell.hpp"
#include "ground/comm/transport.hpp"
#include "ground/node/budget.hpp"
#include "ground/node/node_memory.hpp"

namespace tailrace::node {

/// Memory through which the ranks of a node exchange parts of a file with aggregators. Ranks hand the parts
/// to the aggregators that write them, and take parts from the aggregators that read them. Each aggregator
/// has a ring of stripes. Their numbers never start again, and every rank computes their order by itself.
/// Stripe n lies where stripe n - slots() lay before.
///
///   writing:  opened -> every rank packs its part and passes -> the aggregator writes, frees
///   reading:  opened -> the aggregator loads -> every rank takes its part and passes, the last one frees
///
/// A rank without a part in a stripe passes it without waiting. Any thread of a process may call the methods.
/// There are two sequences of stripes: one for parts that a rank takes itself, one for parts that a thread
/// takes for it later. A rank passes the stripes of each sequence in their order. Every rank knows the
/// sequence of each stripe.
class StripePool {
 public:
  enum class Sequence { now, later };

  /// Collective over `node`. The first `aggregators` ranks get `slots` stripes of `stripe` bytes each, which
  /// they draw on `budget`. With `proxies`, ranks of other nodes take part too, and the aggregator passes for
  /// all of them as rank ranks(). Blocks until all ranks have called it. Returns the same Status on every
  /// rank of the node.
  static Result<std::unique_ptr<StripePool>> create(comm::Line& node, int aggregators, Bytes stripe,
                                                    int slots, bool proxies, bool huge_pages, Budget& budget);

  [[nodiscard]] Bytes stripe() const { return stripe_; }
  [[nodiscard]] int slots() const { return slots_; }
  /// Return the caller's rank on its node, and the rank of the proxy.
  [[nodiscard]] int me() const { return me_; }
  [[nodiscard]] int proxy() const { return ranks_; }

  [[nodiscard]] std::byte* data(int aggregator, std::uint64_t number) const;
  /// True if stripe `number` may be packed, or loaded.
  [[nodiscard]] bool is_open(int aggregator, std::uint64_t number) const;
  [[nodiscard]] bool is_loaded(int aggregator, std::uint64_t number) const {
    return slot(aggregator, number).loaded.load() == number + 1;
  }
  /// Returns how many bytes of a loaded stripe the file had, counted from the stripe's first.
  [[nodiscard]] Bytes loaded_bytes(int aggregator, std::uint64_t number) const {
    return slot(aggregator, number).bytes;
  }
  [[nodiscard]] bool all_passed(int aggregator, Sequence sequence, std::uint64_t number) const;

  /// Notes that `rank` has packed or taken its part of stripe `number`, and of all stripes before it in the
  /// sequence.
  void pass(int aggregator, Sequence sequence, int rank, std::uint64_t number);
  /// Notes that the aggregator has written the stripe: its place is free.
  void free(int aggregator, std::uint64_t number);
  /// Notes that the aggregator has read `bytes` into the stripe. Its place becomes free once all ranks have
  /// passed it.
  void set_loaded(int aggregator, Sequence sequence, std::uint64_t number, Bytes bytes);

  /// Sleeps until something happens to a stripe of `aggregator`, or a little while has passed. Does not sleep
  /// if `ready` returns true. Returns what `ready` returns at the end.
  template <typename Ready>
  bool sleep_unless(int aggregator, const Ready& ready) const {
    comm::Doorbell& bell = board(aggregator).bell;
    const std::uint32_t ticket = bell.ticket();
    if (ready()) {
      bell.cancel();
      return true;
    }
    transport_->park(bell, ticket, std::chrono::milliseconds(1));
    return ready();
  }
  /// Blocks until `ready` returns true. For threads that have nothing else to move on.
  template <typename Ready>
  void wait(int aggregator, const Ready& ready) const {
    while (!ready() && !sleep_unless(aggregator, ready)) {
    }
  }

 private:
  struct alignas(64) Slot {
    std::atomic<std::uint64_t> turn{0};    // the stripe that may use this slot now
    std::atomic<std::uint64_t> loaded{0};  // the last stripe that was read into it, plus 1
    std::atomic<Bytes> bytes{0};           // valid once `loaded` is set, as is the sequence
    std::atomic<Sequence> sequence{Sequence::now};
  };
  struct alignas(64) Passed {
    /// For each sequence: the rank has passed all stripes before this one.
    std::atomic<std::uint64_t> before[2] = {};
  };
  struct Board {
    alignas(64) comm::Doorbell bell;
    Slot* slots() { return reinterpret_cast<Slot*>(this + 1); }
  };

  explicit StripePool(Budget& budget) : drawn_(budget, Use::stripes) {}
  [[nodiscard]] Bytes board_bytes() const;
  [[nodiscard]] Bytes ring_bytes() const { return board_bytes() + slots_ * stripe_; }
  /// The parts of the ranks follow one another, so the rings lie in them as in one memory.
  [[nodiscard]] std::byte* ring(int aggregator) const { return memory_->part(0) + aggregator * ring_bytes(); }
  [[nodiscard]] Board& board(int aggregator) const;
  [[nodiscard]] Slot& slot(int aggregator, std::uint64_t number) const;
  [[nodiscard]] Passed& passed(int aggregator, int rank) const;
  void free_if_taken(int aggregator, std::uint64_t number);

  Draw drawn_;  // draws the bytes of the ring, on an aggregator
  std::unique_ptr<NodeMemory> memory_;
  Bytes stripe_ = 0;
  int slots_ = 0;
  int ranks_ = 0;
  int me_ = 0;
  int passing_ = 0;  // number of ranks, with the proxy
  int batch_ = 1;    // number of stripes freed between two rings
  comm::Transport* transport_ = nullptr;
};

}  // namespace tailrace::node
