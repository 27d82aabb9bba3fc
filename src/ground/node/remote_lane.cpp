// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/node/remote_lane.hpp"

#include <algorithm>

namespace tailrace::node {

PrivateLane::PrivateLane(Bytes capacity)
    : header_(std::make_unique<LaneHeader>()),
      memory_(new std::byte[static_cast<std::size_t>(std::max(capacity, least_lane))]) {
  header_->capacity = capacity;
  header_->readers = 1;
}

bool LaneSender::advance() {
  const std::uint64_t head = lane_.header()->head.load(std::memory_order_acquire);
  const LaneMemory memory = lane_.memory();
  bool moved = false;
  for (; sent_ < head && line_.unsent_data() < most_under_way; ++sent_, moved = true) {
    const Descriptor& descriptor = memory.descriptor(sent_);
    Packer out;
    out.put(descriptor)
        .put_bytes({memory.data(descriptor.position), static_cast<std::size_t>(descriptor.bytes)});
    line_.send_data(server_, out.take());
  }
  return moved;
}

void LaneReceiver::take(Unpacker in) {
  auto descriptor = in.get<Descriptor>();
  const auto bytes = in.get_bytes();
  const LaneMemory memory = lane_.memory();
  if (!bytes.empty()) std::memcpy(memory.data(descriptor.position), bytes.data(), bytes.size());
  // The clocks of two nodes cannot be compared, so the time until a step is durable counts from here. The
  // stamp of a `begin` is not a clock and stays.
  if (descriptor.kind != Descriptor::Kind::begin) descriptor.stamp = line_.now();
  if (descriptor.kind == Descriptor::Kind::farewell) farewell_ = head_;
  memory.descriptor(head_) = descriptor;
  lane_.header()->head.store(++head_, std::memory_order_release);
}

std::optional<std::uint64_t> LaneReceiver::fresh_credit() {
  // A rank may leave after its farewell: no message must be sent to it then.
  const std::uint64_t tail = std::min(lane_.header()->tail[0].load(std::memory_order_acquire), farewell_);
  if (tail == credited_) return std::nullopt;
  credited_ = tail;
  return tail;
}

}  // namespace tailrace::node
