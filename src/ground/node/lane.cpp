// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/node/lane.hpp"

#include <algorithm>

#include "ground/base/text.hpp"

namespace tailrace::node {

Status LaneHeader::check(int expected) const {
  if (magic != magic_of_lanes) return {Code::corrupt, "the memory of a lane holds something else"};
  if (version != newest_version) {
    return {Code::corrupt,
            cat("a lane has version ", version, ", this library knows version ", newest_version)};
  }
  if (owner != expected)
    return {Code::corrupt, cat("the lane of compute rank ", expected, " names rank ", owner, " as its own")};
  return {};
}

void LaneProducer::reclaim() {
  ProducerState& made = state();
  std::uint64_t tail = made.head;
  for (int reader = 0; reader < header_->readers; ++reader) {
    tail = std::min(tail, header_->tail[reader].load(std::memory_order_acquire));
  }
  if (tail == made.reclaimed) return;
  const Descriptor& last = memory_.descriptor(tail - 1);
  made.freed = last.position + static_cast<std::uint64_t>(room_in_lane(last.bytes));
  made.reclaimed = tail;
}

Status LaneProducer::make_ready(Bytes bytes) {
  if (bytes <= ready_ || ready_ == memory_.data_bytes()) return {};
  // Grows by at least 4 MiB, because each growth costs a system call and its page faults.
  constexpr Bytes least = Bytes{4} << 20;
  const Bytes to = std::min(std::max(bytes, ready_ + least), memory_.data_bytes());
  TR_TRY(grow_(to));
  ready_ = to;
  return {};
}

bool LaneProducer::fits(std::uint64_t start, std::uint64_t size) {
  ProducerState& made = state();
  // If the ring is empty, it can be used from `start` on, whatever was skipped at its end.
  if (made.reclaimed == made.head) made.freed = start;
  return start + size - made.freed <= static_cast<std::uint64_t>(memory_.data_bytes()) &&
         made.head - made.reclaimed < memory_.descriptors();
}

/// Returns the position of the next `size` bytes, which may not fit there. Reuses released room at the
/// beginning of the ring before it allocates more memory: so the lane takes only as much memory as the
/// servers are behind.
std::uint64_t LaneProducer::place_for(std::uint64_t size) {
  const auto capacity = static_cast<std::uint64_t>(memory_.data_bytes());
  const std::uint64_t start = state().position;
  const std::uint64_t at = start % capacity;
  const std::uint64_t next_lap = start + (capacity - at);
  if (at + size > capacity) return next_lap;  // a piece lies in one part
  if (at + size <= static_cast<std::uint64_t>(ready_)) return start;
  reclaim();
  if (fits(next_lap, size)) return next_lap;
  const bool grows = fits(start, size) && make_ready(static_cast<Bytes>(at + size)).is_ok();
  return grows ? start : next_lap;
}

std::byte* LaneProducer::reserve(Bytes bytes) {
  ProducerState& made = state();
  const auto size = static_cast<std::uint64_t>(room_in_lane(bytes));
  const bool is_ready = make_ready(static_cast<Bytes>(size)).is_ok();
  const std::uint64_t start = place_for(size);
  bool there = is_ready && fits(start, size);
  if (is_ready && !there) {
    reclaim();
    there = fits(start, size);
  }
  hurry(!there);
  note_full(!there);
  if (!there) return nullptr;
  made.reserved = start;
  // Readers do not need to see the skipped end of the ring: it counts as announced.
  made.announced_to += start - made.position;
  made.position = start + size;
  return memory_.data(start);
}

void LaneProducer::publish(Descriptor descriptor) {
  ProducerState& made = state();
  descriptor.position = made.reserved;
  memory_.descriptor(made.head) = descriptor;
  ++made.head;
  if (announcing_ == Announcing::patient) {
    // A rank in haste raises its flag, then reads `written`. This rank stores `written`, then reads the flag.
    // So at least one of the two sees the other's store.
    header_->written.store(made.head, std::memory_order_seq_cst);
    if (may_wait(descriptor.kind) && bells_->in_haste.load(std::memory_order_seq_cst) == 0) return;
  }
  announce();
  // Set after the fence is in the ring: a server that takes over the lane finds the fence in the ring, or
  // counts it among the fences before.
  if (descriptor.kind == Descriptor::Kind::fence) header_->fences = descriptor.step;
}

bool LaneProducer::keep(Descriptor& descriptor, std::span<const std::byte> bytes) {
  drop_what_was_read();
  const Bytes place = kept_.keep(descriptor.stream, descriptor.level, state().head, bytes);
  if (place < 0) header_->lacks_definition = true;
  descriptor.lead = place + 1;
  return place >= 0;
}

void LaneProducer::drop(std::uint32_t stream) {
  if (!keeps()) return;
  dropped_.emplace_back(stream, state().head);
  drop_what_was_read();
}

/// Drops the definitions of streams whose descriptors were all read. For a stream that was begun, `decided`
/// shows that its definitions were read. For a stream that was never begun, only released descriptors show
/// it.
void LaneProducer::drop_what_was_read() {
  if (dropped_.empty()) return;
  reclaim();
  std::erase_if(dropped_, [this](const auto& each) {
    const KeptDefinitions::Progress* const progress = kept_.progress(each.first);
    if (progress == nullptr) return true;
    if (each.second > state().reclaimed && progress->decided == KeptDefinitions::Progress::not_open)
      return false;
    kept_.drop(each.first);
    return true;
  });
}

bool LaneProducer::may_wait(Descriptor::Kind kind) const {
  using Kind = Descriptor::Kind;
  if (kind != Kind::begin && kind != Kind::piece && kind != Kind::define) return false;
  const ProducerState& made = header_->made;
  return 2 * (made.position - made.announced_to) < static_cast<std::uint64_t>(ready_) &&
         2 * (made.head - made.announced) < memory_.descriptors();
}

void LaneProducer::announce() {
  ProducerState& made = state();
  if (made.announced == made.head) return;
  made.announced = made.head;
  made.announced_to = made.position;
  header_->head.store(made.head, std::memory_order_release);
  ring();
}

/// Only readers make room, and for this they may need pieces of other ranks. So all producers announce at
/// once while a producer is in haste.
void LaneProducer::hurry(bool in_haste) {
  if (announcing_ == Announcing::at_once || in_haste_ == in_haste) return;
  in_haste_ = in_haste;
  if (!in_haste) {
    bells_->in_haste.fetch_sub(1, std::memory_order_seq_cst);
    return;
  }
  bells_->in_haste.fetch_add(1, std::memory_order_seq_cst);
  announce();
  ring();
}

/// Tells readers whether this rank waits for room. Readers keep pieces as long as they use them. If another
/// server may take over the lane, they keep a part of a step until the step has its verdict. They release
/// both earlier if this rank cannot go on otherwise.
void LaneProducer::note_full(bool is_full) {
  if (is_full_ == is_full) return;
  header_->is_full = is_full_ = is_full;
  if (!is_full) return;
  announce();
  ring();
}

void LaneProducer::ring() {
  if (bells_ == nullptr) return;
  for (int reader = 0; reader < header_->readers; ++reader) bells_->reader[reader].ring();
}

bool LaneProducer::is_drained() const {
  for (int reader = 0; reader < header_->readers; ++reader) {
    if (header_->tail[reader].load(std::memory_order_acquire) != header_->made.head) return false;
  }
  return true;
}

std::uint64_t SharedLaneReader::head() const {
  const std::uint64_t announced = header_->head.load(std::memory_order_acquire);
  if (bells_ == nullptr || bells_->in_haste.load(std::memory_order_seq_cst) == 0) return announced;
  return std::max(announced, header_->written.load(std::memory_order_seq_cst));
}

std::span<const std::byte> SharedLaneReader::bytes(std::uint64_t number, ByteVector&) const {
  const Descriptor& descriptor = at(number);
  if (descriptor.kind == Descriptor::Kind::define && descriptor.lead > 0)
    return kept_.at(descriptor.lead - 1);
  return {memory_.data(descriptor.position), static_cast<std::size_t>(descriptor.bytes)};
}

void SharedLaneReader::place(std::uint64_t number, std::span<const layout::Rows> rows,
                             const layout::Stretch& stretch) const {
  const Descriptor& descriptor = at(number);
  layout::place_stretch(rows, {memory_.data(descriptor.position), {}, descriptor.bytes}, stretch);
}

void SharedLaneReader::release(std::uint64_t number) {
  header_->tail[reader_].store(number, std::memory_order_release);
  header_->space.ring();
}

LanePosition SharedLaneReader::position() const {
  LanePosition position{header_->tail[reader_], header_->fences};
  for (std::uint64_t number = position.first; number < head(); ++number) {
    if (at(number).kind != Descriptor::Kind::fence) continue;
    position.fences = at(number).step - 1;
    break;
  }
  return position;
}

}  // namespace tailrace::node
