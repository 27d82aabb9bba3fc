// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/sim/network.hpp"

#include <algorithm>
#include <utility>

#include "ground/comm/line.hpp"

namespace tailrace::sim {

using comm::Traffic;

std::int64_t Port::now() const { return network_.scheduler_.now() + clock_offset_; }

void Port::hear() {
  news_ = true;
  waiter_->look();
}

Bytes Port::unsent(comm::LineNumber line, Traffic traffic) const {
  const auto found = unsent_.find({line, traffic});
  return found == unsent_.end() ? 0 : found->second;
}

void Port::has_left(const Way& way, Bytes bytes) {
  unsent_[way] -= bytes;
  --leaving_;
  departed_ = true;
  hear();
}

std::tuple<int, comm::LineNumber, Traffic> Port::inbox(int source, const Way& way) {
  return {source, comm::line_number::tag_of(way.first), way.second};
}

void Port::send(int destination, comm::LineNumber line, Traffic traffic, ByteVector bytes) {
  if (network_.on_send_) network_.on_send_(rank_, destination, traffic, bytes);
  const auto size = static_cast<Bytes>(bytes.size());
  const auto message = std::make_shared<Incoming>();
  message->bytes = std::move(bytes);
  message->sender = this;
  message->way = {line, traffic};
  message->here = destination == rank_ || network_.is_eager(traffic, size);
  if (destination == rank_) {
    arrive(rank_, message);
    return;
  }
  ++messages_;
  ++handled_;
  bytes_ += size;
  unsent_[message->way] += size;
  ++leaving_;
  Network::Event left;
  if (message->here)
    left = [this, way = message->way, size] { has_left(way, size); };
  else
    message->held = size;
  Port& receiver = network_.port(destination);
  network_.carry(*this, receiver, traffic, message->here ? size : 0, std::move(left),
                 [source = rank_, &receiver, message] { receiver.arrive(source, message); });
}

void Port::arrive(int source, const std::shared_ptr<Incoming>& message) {
  const Traffic traffic = message->way.second;
  if (comm::is_from_anyone(traffic))
    (traffic == Traffic::control ? control_ : requests_)
        .push_back({source, message->way.first, std::move(message->bytes)});
  else
    data_[inbox(source, message->way)].push_back(message);
  hear();
}

bool Port::progress() {
  news_ = false;
  return std::exchange(departed_, false);
}

Nanoseconds Port::take_handling() {
  const Costs* const costs = network_.scheduler_.costs();
  const Nanoseconds spent = std::exchange(handled_, 0) * (costs != nullptr ? costs->message_gap : 0);
  handling_.add(network_.scheduler_.now(), network_.scheduler_.now() + spent);
  return spent;
}

std::optional<comm::Envelope> Port::take_first(std::deque<comm::Envelope>& from) {
  if (from.empty()) return std::nullopt;
  comm::Envelope envelope = std::move(from.front());
  from.pop_front();
  if (envelope.source != rank_) ++handled_;
  return envelope;
}

std::optional<ByteVector> Port::receive_from(int source, comm::LineNumber line, Traffic traffic) {
  const auto found = data_.find(inbox(source, {line, traffic}));
  if (found == data_.end()) return std::nullopt;
  const std::shared_ptr<Incoming> first = found->second.front();
  if (first->here) {
    found->second.pop_front();
    if (found->second.empty()) data_.erase(found);
    if (source != rank_) ++handled_;
    return std::move(first->bytes);
  }
  if (!std::exchange(first->asked, true)) ask_for(source, first);
  return std::nullopt;
}

/// Asks the sender for a large message. With costs, the question and the message pass the adapters.
void Port::ask_for(int source, const std::shared_ptr<Incoming>& message) {
  const auto came = [this, message] {
    message->here = true;
    hear();
  };
  const auto left = [message] { message->sender->has_left(message->way, message->held); };
  if (network_.scheduler_.costs() == nullptr) {
    network_.scheduler_.after(network_.scheduler_.message_delay(), [came, left] {
      left();
      came();
    });
    return;
  }
  Port& sender = network_.port(source);
  network_.carry(*this, sender, Traffic::control, 0, nullptr, [this, &sender, message, left, came] {
    network_.carry(sender, *this, message->way.second, message->held, left, came);
  });
}

Network::Network(Scheduler& scheduler, int size) : scheduler_(scheduler) {
  for (int rank = 0; rank < size; ++rank) ports_.push_back(std::make_unique<Port>(*this, rank));
}

/// Returns the size that a message would have if it were no miniature.
Bytes Network::in_full(Traffic traffic, Bytes bytes) const {
  const Costs* const costs = scheduler_.costs();
  return costs != nullptr && traffic == Traffic::data ? costs->in_full(bytes) : bytes;
}

bool Network::is_eager(Traffic traffic, Bytes bytes) const {
  if (comm::is_from_anyone(traffic)) return true;
  const Costs* const costs = scheduler_.costs();
  return in_full(traffic, bytes) <= (costs != nullptr ? costs->eager : Port::eager);
}

/// Returns the time at which the next message arrives. It never arrives before an earlier message of the same
/// pair and kind of traffic.
Nanoseconds Network::in_order(int source, int destination, Traffic traffic, Nanoseconds arrival) {
  Nanoseconds& last = last_arrival_[{source, destination, traffic}];
  return last = std::max(last + 1, arrival);
}

/// Carries `bytes` of a message. `left` runs once they have left their sender, unless it is empty, and
/// `arrived` once they have arrived.
void Network::carry(Port& from, Port& to, Traffic traffic, Bytes bytes, Event left, Event arrived) {
  const Nanoseconds now = scheduler_.now();
  const Costs* const costs = scheduler_.costs();
  if (costs == nullptr) {
    if (left) scheduler_.after(scheduler_.step_delay(), std::move(left));
    const Nanoseconds at = in_order(from.rank_, to.rank_, traffic, now + scheduler_.message_delay());
    scheduler_.after(at - now, std::move(arrived));
    return;
  }
  const Bytes full = in_full(traffic, bytes);
  const Nanoseconds occupies = std::max(costs->message_gap, time_for(full, costs->adapter_bytes_per_second));
  const Nanoseconds begin = std::max(now, from.sends_until_);
  from.sends_until_ = begin + occupies;
  const std::size_t kind = traffic == Traffic::data ? 1 : 0;
  from.carrying_[kind].sending.add(begin, from.sends_until_);
  if (left) scheduler_.after(from.sends_until_ - now, std::move(left));
  // The receiver's adapter takes messages in the order in which their heads come to it.
  scheduler_.after(begin + costs->message_latency - now, [this, &from, &to, traffic, kind, full, occupies,
                                                          arrived = std::move(arrived)]() mutable {
    const Nanoseconds came = scheduler_.now();
    const Nanoseconds taken = std::max(came, to.receives_until_);
    to.receives_until_ = taken + occupies;
    to.carrying_[kind].receiving.add(taken, to.receives_until_);
    const Nanoseconds whole =
        std::max(to.receives_until_, taken + time_for(full, scheduler_.costs()->link_bytes_per_second));
    scheduler_.after(in_order(from.rank_, to.rank_, traffic, whole) - came, std::move(arrived));
  });
}

}  // namespace tailrace::sim
