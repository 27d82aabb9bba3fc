// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/pipeline/compute/lane_writer.hpp"

namespace tailrace::pipeline {

bool RingLaneWriter::put(node::Descriptor descriptor, const std::shared_ptr<const layout::MemoryMap>& map,
                         const std::byte* base, bool) {
  descriptor.bytes = map->count() * map->element;
  std::byte* const room = producer_.reserve(descriptor.bytes);
  if (room == nullptr) return false;
  // The sender of this rank reads the piece at once: it is packed through the caches. A server reads it
  // later: it is packed past them.
  if (sender_)
    layout::pack(*map, base, descriptor.level, room);
  else
    layout::pack_past_caches(*map, base, descriptor.level, room);
  producer_.publish(descriptor);
  return true;
}

/// Makes room for two steps, since servers still read the last step while the rank captures the next one. A
/// lane that needs more grows during the capture.
Status RingLaneWriter::expect(Bytes bytes) {
  constexpr Bytes steps = 2, messages = Bytes{256} << 10;
  TR_TRY(producer_.make_ready(steps * (expected_ + bytes) + messages));
  expected_ += bytes;
  return {};
}

bool RingLaneWriter::tell(node::Descriptor descriptor, std::span<const std::byte> bytes) {
  // A definition that is kept takes no room in the ring.
  if (descriptor.kind == node::Descriptor::Kind::define && producer_.keeps()) {
    if (producer_.reserve(0) == nullptr) return false;
    if (producer_.keep(descriptor, bytes)) {
      descriptor.bytes = 0;
      producer_.publish(descriptor);
      return true;
    }
  }
  descriptor.bytes = static_cast<Bytes>(bytes.size());
  std::byte* const room = producer_.reserve(descriptor.bytes);
  if (room == nullptr) return false;
  if (!bytes.empty()) std::memcpy(room, bytes.data(), bytes.size());
  producer_.publish(descriptor);
  return true;
}

void LentLane::Entry::pack(ByteVector& out) const {
  out.resize(static_cast<std::size_t>(descriptor.bytes));
  layout::pack(*map, base, descriptor.level, out.data());
}

void LentLane::Entry::take_in() {
  if (map == nullptr) return;
  pack(bytes);
  map = nullptr;
}

std::optional<layout::PackedRuns> LentLane::Entry::runs() const {
  if (map != nullptr) return layout::packed_runs(*map, base, descriptor.level);
  return layout::PackedRuns{bytes.data(), {}, static_cast<Bytes>(bytes.size())};
}

void LentLane::add(Entry entry) { entries_.push_back(std::move(entry)); }

void LentLane::release(std::uint64_t number) {
  for (; first_ < number; ++first_) entries_.pop_front();
}

void LentLane::take_in() {
  for (Entry& entry : entries_) entry.take_in();
}

void LentLane::place(std::uint64_t number, std::span<const layout::Rows> rows,
                     const layout::Stretch& stretch) const {
  layout::place_stretch(rows, *at(number).runs(), stretch);
}

bool LentLaneWriter::put(node::Descriptor descriptor, const std::shared_ptr<const layout::MemoryMap>& map,
                         const std::byte* base, bool may_lend) {
  descriptor.bytes = map->count() * map->element;
  LentLane::Entry entry{descriptor, map, base, {}};
  if (!may_lend) entry.take_in();
  lane_->add(std::move(entry));
  return true;
}

bool LentLaneWriter::tell(node::Descriptor descriptor, std::span<const std::byte> bytes) {
  descriptor.bytes = static_cast<Bytes>(bytes.size());
  lane_->add({descriptor, nullptr, nullptr, ByteVector(bytes.begin(), bytes.end())});
  return true;
}

std::span<const std::byte> LentLaneReader::bytes(std::uint64_t number, ByteVector& scratch) const {
  const LentLane::Entry& entry = lane_->at(number);
  if (const auto runs = entry.runs(); runs && runs->loops.empty())
    return {runs->base, static_cast<std::size_t>(runs->run)};
  entry.pack(scratch);
  return scratch;
}

}  // namespace tailrace::pipeline
