// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/exchange/far_exchange.hpp"

#include <cstring>

#include "ground/comm/switchboard.hpp"

namespace tailrace::exchange {

FarExchange::FarExchange(Channel& channel, node::StripePool& pool, std::shared_ptr<const ArrayPlan> plan,
                         StripeCut cut, node::StripePool::Sequence sequence, Direction direction,
                         std::byte* base)
    : channel_(channel),
      pool_(pool),
      plan_(std::move(plan)),
      cut_(std::move(cut)),
      sequence_(sequence),
      direction_(direction),
      base_(base),
      drawn_(channel_.group().budget(), node::Use::stripes) {
  const int me = channel_.group().rank();
  const std::vector<layout::Rows> rows = plan_->layout.rows(plan_->everywhere ? 0 : me);
  mine_ = layout::TransferMap::of_rows(rows, plan_->element);
  told_ = reach_of(me);
  own_ = channel_.own(cut_.aggregators());
  if (plan_->in_parts) tell_rows(rows);
  if (direction_ == Direction::write) return;
  closed_ = true;
  std::vector<Stripe> stripes;
  for (std::int64_t round = 0; round < cut_.rounds(); ++round) {
    cut_.stripes(round, stripes);
    for (const Stripe& stripe : stripes) {
      if (!channel_.is_near(stripe.aggregator) && told_.meets(stripe)) expected_.push_back(stripe);
    }
  }
}

/// Returns the range of the array's bytes in which all bytes of `rank` lie. Every rank computes the same:
/// exactly the rank's range if it owns a box, otherwise the whole array.
Reach FarExchange::reach_of(int rank) const {
  if (plan_->in_parts) return {0, cut_.bytes()};
  const layout::Layout& layout = plan_->layout;
  const int owner = plan_->everywhere ? 0 : rank;
  if (layout.count(owner) == 0) return {};
  if (!layout.is_box()) return {0, cut_.bytes()};
  const layout::Box box = layout.box(owner);
  Index first = 0;
  Index last = 0;
  for (std::size_t d = 0; d < box.lower.size(); ++d) {
    first = first * layout.shape()[d] + box.lower[d];
    last = last * layout.shape()[d] + box.upper[d] - 1;
  }
  return {first * plan_->element, (last + 1) * plan_->element};
}

/// Sends the aggregators of other nodes the rows that only this rank knows.
void FarExchange::tell_rows(const std::vector<layout::Rows>& rows) {
  for (int a = 0; a < cut_.aggregators(); ++a) {
    if (channel_.is_near(a)) continue;
    Packer out;
    out.put_list(std::span<const layout::Rows>(rows));
    outgoing_.push_back({channel_.rank_of(a), out.take()});
  }
}

bool FarExchange::capture(const std::byte* base, const Stripe& stripe) {
  if (!told_.meets(stripe)) return true;
  scratch_.resize(static_cast<std::size_t>(stripe.end - stripe.begin));
  plan_->mine.gather(base, stripe.begin, stripe.end, scratch_.data());
  ByteVector piece(static_cast<std::size_t>(mine_.bytes_in(stripe.begin, stripe.end)));
  mine_.take_from(scratch_.data(), stripe.begin, stripe.end, piece.data());
  const auto bytes = static_cast<Bytes>(piece.size());
  captured_ += bytes;
  const bool is_drawn = drawn_.take(bytes).is_ok();
  const std::lock_guard lock(mutex_);
  outgoing_.push_back({channel_.rank_of(stripe.aggregator), std::move(piece), bytes, is_drawn});
  return is_drawn;
}

bool FarExchange::advance(comm::Line& line) {
  if (done_) return false;
  bool moved = line.board().transport().progress();
  moved = send_next(line) || moved;
  moved = serve(line) || moved;
  moved = receive_next(line) || moved;
  if (!closed_ || captured_ > 0 || !is_served() || !expected_.empty() || line.unsent_data() > 0) return moved;
  const std::lock_guard lock(mutex_);
  done_ = outgoing_.empty();
  return true;
}

bool FarExchange::knows_peers() const { return !own_ || peers_.size() == channel_.far_ranks().size(); }

bool FarExchange::is_served() const { return knows_peers() && (!own_ || served_ == cut_.count(*own_)); }

bool FarExchange::send_next(comm::Line& line) {
  if (line.unsent_data() > 2 * pool_.stripe()) return false;
  Outgoing next;
  {
    const std::lock_guard lock(mutex_);
    if (outgoing_.empty()) return false;
    next = std::move(outgoing_.front());
    outgoing_.pop_front();
  }
  line.send_data(next.rank, std::move(next.bytes));
  if (next.is_drawn) drawn_.give_back(next.captured);
  captured_ -= next.captured;
  return true;
}

/// On an aggregator: learns what each rank of other nodes owns, and returns true once it knows all. If the
/// array is in parts, each rank sends its rows before all other messages of the call.
bool FarExchange::learn_peers(comm::Line& line) {
  const std::vector<int>& ranks = channel_.far_ranks();
  while (peers_.size() < ranks.size()) {
    const int rank = ranks[peers_.size()];
    std::vector<layout::Rows> rows;
    if (plan_->in_parts) {
      const std::optional<ByteVector> said = line.receive_data(rank);
      if (!said) return false;
      Unpacker in(*said);
      rows = in.get_list<layout::Rows>();
    } else {
      rows = plan_->layout.rows(plan_->everywhere ? 0 : rank);
    }
    peers_.push_back({rank, reach_of(rank), layout::TransferMap::of_rows(rows, plan_->element)});
  }
  return true;
}

/// On an aggregator: exchanges one peer's piece of its next stripe. In a write the peer sends the piece, in a
/// read the aggregator does.
bool FarExchange::serve(comm::Line& line) {
  if (is_served() || !learn_peers(line) || is_served()) return false;
  const int seat = channel_.seat(*own_);
  const Stripe stripe = cut_.stripe(*own_, served_);
  const bool writing = direction_ == Direction::write;
  if (!(writing ? pool_.is_open(seat, stripe.number) : pool_.is_loaded(seat, stripe.number))) return false;
  while (next_peer_ < peers_.size() && !peers_[next_peer_].reach.meets(stripe)) ++next_peer_;
  if (next_peer_ == peers_.size()) {
    pool_.pass(seat, sequence_, pool_.proxy(), stripe.number);
    ++served_;
    next_peer_ = 0;
    return true;
  }
  const Peer& peer = peers_[next_peer_];
  if (!(writing ? take_from(peer, stripe, line) : give_to(peer, stripe, line))) return false;
  ++next_peer_;
  return true;
}

bool FarExchange::take_from(const Peer& peer, const Stripe& stripe, comm::Line& line) {
  const std::optional<ByteVector> piece = line.receive_data(peer.rank);
  if (!piece) return false;
  std::byte* const data = pool_.data(channel_.seat(stripe.aggregator), stripe.number);
  peer.map.put_into(data, stripe.begin, stripe.end, piece->data());
  return true;
}

bool FarExchange::give_to(const Peer& peer, const Stripe& stripe, comm::Line& line) {
  // The rows of this rank (tell_rows) leave first: the peer would take this message for them.
  if (!outgoing_.empty() || line.unsent_data() > 2 * pool_.stripe()) return false;
  const int seat = channel_.seat(stripe.aggregator);
  const Bytes bytes = pool_.loaded_bytes(seat, stripe.number);
  const Bytes end = stripe.begin + bytes;
  ByteVector message(sizeof bytes + static_cast<std::size_t>(peer.map.bytes_in(stripe.begin, end)));
  std::memcpy(message.data(), &bytes, sizeof bytes);
  peer.map.take_from(pool_.data(seat, stripe.number), stripe.begin, end, message.data() + sizeof bytes);
  line.send_data(peer.rank, std::move(message));
  return true;
}

/// Receives the caller's piece of a stripe that an aggregator of another node has read.
bool FarExchange::receive_next(comm::Line& line) {
  if (expected_.empty() || !knows_peers()) return false;
  const Stripe& stripe = expected_.front();
  const std::optional<ByteVector> piece = line.receive_data(channel_.rank_of(stripe.aggregator));
  if (!piece) return false;
  Unpacker in(*piece);
  const Bytes end = stripe.begin + in.get<Bytes>();
  scratch_.resize(static_cast<std::size_t>(stripe.end - stripe.begin));
  mine_.put_into(scratch_.data(), stripe.begin, end, in.rest().data());
  plan_->mine.scatter(base_, stripe.begin, end, scratch_.data());
  expected_.pop_front();
  return true;
}

}  // namespace tailrace::exchange
