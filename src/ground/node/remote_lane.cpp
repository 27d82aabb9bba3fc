// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/node/remote_lane.hpp"

#include <algorithm>

namespace tailrace::node {

PrivateLane::PrivateLane(Bytes capacity) : PrivateLane(capacity, nullptr) {
  memory_.reset(new std::byte[static_cast<std::size_t>(bytes_for(capacity))]);
  data_ = memory_.get();
}

PrivateLane::PrivateLane(Bytes capacity, std::byte* memory)
    : header_(std::make_unique<LaneHeader>()), data_(memory) {
  header_->capacity = capacity;
  header_->readers = 1;
}

/// Returns those bytes of a descriptor that travel with it.
std::span<const std::byte> LaneSender::sent_bytes(const Descriptor& descriptor) const {
  if (exposed_ != nullptr && descriptor.bytes >= least_) return {};
  return {lane_.memory().data(descriptor.position), static_cast<std::size_t>(descriptor.bytes)};
}

ByteVector LaneSender::next_message(std::uint64_t head) {
  const LaneMemory memory = lane_.memory();
  Packer out;
  out.put(kind_);
  Bytes together = 0;
  for (; sent_ < head; ++sent_) {
    const Descriptor& descriptor = memory.descriptor(sent_);
    const std::span<const std::byte> bytes = sent_bytes(descriptor);
    const Bytes more = static_cast<Bytes>(sizeof descriptor + bytes.size());
    if (together > 0 && together + more > most_together) break;
    out.put(descriptor).put_bytes(bytes);
    together += more;
  }
  return out.take();
}

bool LaneSender::advance() {
  const std::uint64_t head = lane_.header()->head.load(std::memory_order_acquire);
  if (sent_ == head) return false;
  if (exposed_ != nullptr) exposed_->show();
  bool moved = false;
  for (; sent_ < head && line_.unsent_data() < most_under_way; moved = true)
    line_.send_data(server_, next_message(head));
  return moved;
}

void LaneReceiver::take(Unpacker& in) {
  while (in.ok() && !in.rest().empty()) take_one(in);
  publish();
}

void LaneReceiver::take_one(Unpacker& in) {
  auto descriptor = in.get<Descriptor>();
  const auto bytes = in.get_bytes();
  const LaneMemory memory = lane_.memory();
  if (!bytes.empty())
    std::memcpy(memory.data(descriptor.position), bytes.data(), bytes.size());
  else if (descriptor.bytes > 0)
    missing_.push_back(come_);
  // The clocks of two nodes cannot be compared, so the time until a step is durable counts from here. The
  // stamp of a `begin` is not a clock and stays.
  if (descriptor.kind != Descriptor::Kind::begin) descriptor.stamp = line_.now();
  if (descriptor.kind == Descriptor::Kind::farewell) farewell_ = come_;
  memory.descriptor(come_++) = descriptor;
}

/// Takes pieces from `missing_`, and of the last one perhaps a part. Those that follow one another in the
/// ring become one range.
std::vector<comm::ExposedMemory::Range> LaneReceiver::next_batch() {
  const LaneMemory memory = lane_.memory();
  std::vector<comm::ExposedMemory::Range> ranges;
  for (Bytes left = most_; !missing_.empty() && left > 0;) {
    const Descriptor& descriptor = memory.descriptor(missing_.front());
    std::byte* const to = memory.data(descriptor.position) + begun_;
    const Bytes offset = to - lane_.data();
    const Bytes bytes = std::min(left, descriptor.bytes - begun_);
    left -= bytes;
    begun_ += bytes;
    if (begun_ == descriptor.bytes) {
      missing_.pop_front();
      begun_ = 0;
    }
    if (!ranges.empty()) {
      comm::ExposedMemory::Range& last = ranges.back();
      const Bytes end = offset + bytes;
      const bool follows = last.offset + room_in_lane(std::ssize(last.into)) == offset;
      if (follows) last.into = {last.into.data(), static_cast<std::size_t>(end - last.offset)};
      if (follows) continue;
    }
    ranges.push_back({offset, {to, static_cast<std::size_t>(bytes)}});
  }
  return ranges;
}

bool LaneReceiver::advance() {
  if (is_getting_ || missing_.empty()) return false;
  is_getting_ = true;
  exposed_->get(rank_, next_batch(), [this] {
    is_getting_ = false;
    publish();
  });
  return true;
}

/// Lets the server read up to the first descriptor whose bytes are not here.
void LaneReceiver::publish() {
  if (is_getting_) return;
  lane_.header()->head.store(missing_.empty() ? come_ : missing_.front(), std::memory_order_release);
}

std::optional<std::uint64_t> LaneReceiver::fresh_credit() {
  // A rank may leave after its farewell: no message must be sent to it then.
  const std::uint64_t tail = std::min(lane_.header()->tail[0].load(std::memory_order_acquire), farewell_);
  if (tail == credited_) return std::nullopt;
  credited_ = tail;
  return tail;
}

}  // namespace tailrace::node
