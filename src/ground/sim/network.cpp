// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/sim/network.hpp"

#include <algorithm>

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
  const auto size = static_cast<Bytes>(bytes.size());
  const auto message = std::make_shared<Incoming>();
  message->bytes = std::move(bytes);
  message->sender = this;
  message->way = {line, traffic};
  message->here = destination == rank_ || comm::is_from_anyone(traffic) || size <= eager;
  if (destination == rank_) {
    arrive(rank_, message);
    return;
  }
  ++messages_;
  bytes_ += size;
  unsent_[message->way] += size;
  ++leaving_;
  Scheduler& scheduler = network_.scheduler_;
  if (message->here)
    scheduler.after(scheduler.step_delay(), [this, way = message->way, size] { has_left(way, size); });
  else
    message->held = size;
  scheduler.after(network_.arrival_delay(rank_, destination, traffic),
                  [source = rank_, &receiver = network_.port(destination), message] {
                    receiver.arrive(source, message);
                  });
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

std::optional<comm::Envelope> Port::take_first(std::deque<comm::Envelope>& from) {
  if (from.empty()) return std::nullopt;
  comm::Envelope envelope = std::move(from.front());
  from.pop_front();
  return envelope;
}

std::optional<ByteVector> Port::receive_from(int source, comm::LineNumber line, Traffic traffic) {
  const auto found = data_.find(inbox(source, {line, traffic}));
  if (found == data_.end() || found->second.empty()) return std::nullopt;
  const std::shared_ptr<Incoming> first = found->second.front();
  if (first->here) {
    found->second.pop_front();
    return std::move(first->bytes);
  }
  if (!first->asked) {
    first->asked = true;
    network_.scheduler_.after(network_.scheduler_.message_delay(), [this, first] {
      first->here = true;
      first->sender->has_left(first->way, first->held);
      hear();
    });
  }
  return std::nullopt;
}

Network::Network(Scheduler& scheduler, int size) : scheduler_(scheduler) {
  for (int rank = 0; rank < size; ++rank) ports_.push_back(std::make_unique<Port>(*this, rank));
}

/// Returns the delay of the next message. It never arrives before an earlier message of the same pair and
/// kind of traffic.
Nanoseconds Network::arrival_delay(int source, int destination, Traffic traffic) {
  Nanoseconds& last = last_arrival_[{source, destination, traffic}];
  last = std::max(last + 1, scheduler_.now() + scheduler_.message_delay());
  return last - scheduler_.now();
}

}  // namespace tailrace::sim
