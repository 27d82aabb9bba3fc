// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/arrays/array.hpp"
#include "engine/exchange/channel.hpp"
#include "engine/exchange/stripe_cut.hpp"

namespace tailrace::exchange {

using arrays::Array;
using arrays::ArrayPlan;
using arrays::Direction;

/// The range of an array's bytes in which all bytes of one rank lie.
struct Reach {
  Bytes begin = 0;
  Bytes end = 0;
  [[nodiscard]] bool meets(const Stripe& stripe) const { return begin < stripe.end && end > stripe.begin; }
};

/// The part of an array call that travels between nodes. Each rank exchanges its pieces of stripes whose
/// aggregators are on other nodes. An aggregator also exchanges the pieces of its own stripes with all ranks
/// of other nodes. This is a state machine that never waits. The group's thread drives it if there is one,
/// otherwise the caller of the array call. Messages between two ranks go in the order of the stripes, and
/// array calls follow one another.
class FarExchange {
 public:
  /// A read stores the elements in the array at `base`. A write does not use `base`.
  FarExchange(Channel& channel, node::StripePool& pool, std::shared_ptr<const ArrayPlan> plan, StripeCut cut,
              node::StripePool::Sequence sequence, Direction direction, std::byte* base);

  /// For a write: copies the caller's piece of `stripe`, whose aggregator is on another node. The caller may
  /// change the array afterwards. Returns false if the piece does not fit the node's budget. The piece is
  /// captured all the same, and the caller must wait until captured() is 0 before it captures another.
  [[nodiscard]] bool capture(const std::byte* base, const Stripe& stripe);
  /// Returns the bytes captured and not handed to MPI yet.
  [[nodiscard]] Bytes captured() const { return captured_; }
  /// Says that no capture() follows.
  void close() { closed_ = true; }

  /// Does what is possible now. The thread that drives the exchange calls it. Returns true if something
  /// moved.
  bool advance(comm::Line& line);
  /// True if all pieces were sent, received and passed. Any thread may call it.
  [[nodiscard]] bool is_done() const { return done_; }

 private:
  /// A rank of another node, as an aggregator sees it.
  struct Peer {
    int rank = 0;
    Reach reach;
    layout::TransferMap map;
  };
  struct Outgoing {
    int rank = 0;
    ByteVector bytes;
    Bytes captured = 0;
    bool is_drawn = false;
  };

  [[nodiscard]] Reach reach_of(int rank) const;
  void tell_rows(const std::vector<layout::Rows>& rows);
  bool learn_peers(comm::Line& line);
  bool send_next(comm::Line& line);
  bool serve(comm::Line& line);
  bool take_from(const Peer& peer, const Stripe& stripe, comm::Line& line);
  bool give_to(const Peer& peer, const Stripe& stripe, comm::Line& line);
  bool receive_next(comm::Line& line);
  [[nodiscard]] bool knows_peers() const;
  [[nodiscard]] bool is_served() const;

  Channel& channel_;
  node::StripePool& pool_;
  std::shared_ptr<const ArrayPlan> plan_;
  StripeCut cut_;
  node::StripePool::Sequence sequence_;
  Direction direction_;
  std::byte* base_;
  Reach told_;                // the caller's reach, as other nodes know it
  layout::TransferMap mine_;  // the caller's piece in a message
  std::optional<int> own_;    // the caller's aggregator number
  std::vector<Peer> peers_;
  std::int64_t served_ = 0;      // own stripes exchanged with all peers
  std::size_t next_peer_ = 0;    // the next peer for stripe `served_`
  std::deque<Stripe> expected_;  // stripes of other nodes whose pieces are still to be received
  ByteVector scratch_;

  std::mutex mutex_;
  std::deque<Outgoing> outgoing_;
  std::atomic<Bytes> captured_{0};
  node::Draw drawn_;  // captured_, without the pieces that did not fit the budget
  std::atomic<bool> closed_{false};
  std::atomic<bool> done_{false};
};

}  // namespace tailrace::exchange
