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

/// Memory through which the ranks of a node hand parts of a file to the aggregators that write them, and
/// take parts from those that read them. Each aggregator has a ring of stripes, numbered on for ever in an
/// order that every rank computes by itself: stripe n lies where stripe n - slots() lay before.
///
///   writing:  opened -> every rank packs its part and passes -> the aggregator writes, frees
///   reading:  opened -> the aggregator loads -> every rank takes its part and passes, the last one frees
///
/// A rank without a part in a stripe passes it without waiting. Any thread of a process may call the methods.
/// There are two sequences: for parts that a rank takes by itself, and for parts that a thread takes for it
/// later. A rank passes the stripes of each sequence in their order, and every rank knows the sequence of
/// each stripe.
class StripePool {
 public:
  enum class Sequence { now, later };

  /// Collective over `node`. The first `aggregators` ranks get `slots` stripes of `stripe` bytes each, drawn
  /// on `budget`. With `proxies` ranks of other nodes take part too; the aggregator passes for all of them as
  /// rank ranks(). Returns the same Status on every rank of the node.
  static Result<std::unique_ptr<StripePool>> create(comm::Line& node, int aggregators, Bytes stripe,
                                                    int slots, bool proxies, bool huge_pages, Budget& budget);

  [[nodiscard]] Bytes stripe() const { return stripe_; }
  [[nodiscard]] int slots() const { return slots_; }
  /// Return the caller's number on its node, and that of the proxy.
  [[nodiscard]] int me() const { return me_; }
  [[nodiscard]] int proxy() const { return ranks_; }

  [[nodiscard]] std::byte* data(int aggregator, std::uint64_t number) const;
  /// Returns true if stripe `number` may be packed, or loaded.
  [[nodiscard]] bool is_open(int aggregator, std::uint64_t number) const;
  [[nodiscard]] bool is_loaded(int aggregator, std::uint64_t number) const {
    return slot(aggregator, number).loaded.load() == number + 1;
  }
  /// Returns the bytes of a loaded stripe that the file had, counted from the stripe's first.
  [[nodiscard]] Bytes loaded_bytes(int aggregator, std::uint64_t number) const {
    return slot(aggregator, number).bytes;
  }
  [[nodiscard]] bool all_passed(int aggregator, Sequence sequence, std::uint64_t number) const;

  /// Says that `rank` has packed or taken its part of stripe `number` and of all stripes before it in the
  /// sequence.
  void pass(int aggregator, Sequence sequence, int rank, std::uint64_t number);
  /// Says that the aggregator has written the stripe.
  void free(int aggregator, std::uint64_t number);
  /// Says that the aggregator has read `bytes` into the stripe. The stripe frees itself once all have passed.
  void set_loaded(int aggregator, Sequence sequence, std::uint64_t number, Bytes bytes);

  /// Sleeps until something happened to a stripe of `aggregator` after `ready` returned false, or a little
  /// while has passed. Returns what `ready` returns then.
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
  /// For threads that have nothing else to move on. Blocks until `ready` returns true.
  template <typename Ready>
  void wait(int aggregator, const Ready& ready) const {
    while (!ready() && !sleep_unless(aggregator, ready)) {
    }
  }

 private:
  struct alignas(64) Slot {
    std::atomic<std::uint64_t> turn{0};    // the stripe that may lie here now
    std::atomic<std::uint64_t> loaded{0};  // the last stripe that was read, plus one
    std::atomic<Bytes> bytes{0};           // valid once `loaded` is set, like the sequence
    std::atomic<Sequence> sequence{Sequence::now};
  };
  struct alignas(64) Passed {
    std::atomic<std::uint64_t> before[2] = {};  // by sequence: the rank has passed stripes before this one
  };
  struct Board {
    alignas(64) comm::Doorbell bell;
    Slot* slots() { return reinterpret_cast<Slot*>(this + 1); }
  };

  explicit StripePool(Budget& budget) : drawn_(budget, Use::stripes) {}
  [[nodiscard]] Bytes board_bytes() const;
  [[nodiscard]] Bytes ring_bytes() const { return board_bytes() + slots_ * stripe_; }
  /// The parts of the ranks follow each other.
  [[nodiscard]] std::byte* ring(int aggregator) const { return memory_->part(0) + aggregator * ring_bytes(); }
  [[nodiscard]] Board& board(int aggregator) const;
  [[nodiscard]] Slot& slot(int aggregator, std::uint64_t number) const;
  [[nodiscard]] Passed& passed(int aggregator, int rank) const;
  void free_if_taken(int aggregator, std::uint64_t number);

  Draw drawn_;  // an aggregator draws the bytes of its ring
  std::unique_ptr<NodeMemory> memory_;
  Bytes stripe_ = 0;
  int slots_ = 0;
  int ranks_ = 0;
  int me_ = 0;
  int passing_ = 0;  // number of ranks, and the proxy
  int batch_ = 1;    // stripes that become free between two rings
  comm::Transport* transport_ = nullptr;
};

}  // namespace tailrace::node
