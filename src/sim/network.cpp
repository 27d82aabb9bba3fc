// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "sim/network.hpp"

#include <algorithm>

#include "comm/line.hpp"

namespace tailrace::sim {

using comm::Traffic;

int Port::size() const { return network_.size(); }

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
  if (destination == rank_) {
    if (traffic == Traffic::control) {
      control_.push_back({rank_, line, std::move(bytes)});
    } else {
      auto own = std::make_shared<Incoming>();
      own->bytes = std::move(bytes);
      own->here = true;
      data_[inbox(rank_, {line, traffic})].push_back(std::move(own));
    }
    hear();
    return;
  }
  ++messages_;
  bytes_ += static_cast<Bytes>(bytes.size());
  unsent_[{line, traffic}] += static_cast<Bytes>(bytes.size());
  ++leaving_;
  if (traffic == Traffic::control)
    network_.deliver_control(rank_, destination, line, std::move(bytes));
  else
    network_.deliver_data(rank_, destination, {line, traffic}, std::move(bytes));
}

bool Port::progress() {
  news_ = false;
  return std::exchange(departed_, false);
}

std::optional<comm::Envelope> Port::receive() {
  if (control_.empty()) return std::nullopt;
  comm::Envelope envelope = std::move(control_.front());
  control_.pop_front();
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

/// A message never arrives before what the same pair sent earlier as the same kind of traffic.
Nanoseconds Network::arrival_delay(int source, int destination, Traffic traffic) {
  Nanoseconds& last = last_arrival_[{source, destination, traffic}];
  last = std::max(last + 1, scheduler_.now() + scheduler_.message_delay());
  return last - scheduler_.now();
}

void Network::leave_later(Port& sender, const Port::Way& way, Bytes bytes) {
  scheduler_.after(scheduler_.step_delay(), [&sender, way, bytes] { sender.has_left(way, bytes); });
}

void Network::deliver_control(int source, int destination, comm::LineNumber line, ByteVector bytes) {
  leave_later(port(source), {line, Traffic::control}, static_cast<Bytes>(bytes.size()));
  auto message = std::make_shared<ByteVector>(std::move(bytes));
  scheduler_.after(arrival_delay(source, destination, Traffic::control),
                   [this, source, destination, line, message] {
                     Port& receiver = port(destination);
                     receiver.control_.push_back({source, line, std::move(*message)});
                     receiver.hear();
                   });
}

void Network::deliver_data(int source, int destination, const Port::Way& way, ByteVector bytes) {
  auto message = std::make_shared<Port::Incoming>();
  message->bytes = std::move(bytes);
  message->sender = &port(source);
  message->way = way;
  const auto size = static_cast<Bytes>(message->bytes.size());
  if (size <= eager) {
    leave_later(port(source), way, size);
    message->here = true;
  } else {
    message->held = size;
  }
  scheduler_.after(arrival_delay(source, destination, way.second), [this, source, destination, message] {
    Port& receiver = port(destination);
    receiver.data_[Port::inbox(source, message->way)].push_back(message);
    receiver.hear();
  });
}

}  // namespace tailrace::sim
