// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "comm/lane.hpp"

#include <algorithm>

namespace tailrace::comm {

void LaneProducer::reclaim() {
  std::uint64_t tail = head_;
  for (int reader = 0; reader < header_->readers; ++reader) {
    tail = std::min(tail, header_->tail[reader].load(std::memory_order_acquire));
  }
  for (; reclaimed_ < tail; ++reclaimed_) {
    freed_ = ends_.front();
    ends_.pop_front();
  }
}

std::byte* LaneProducer::reserve(Bytes bytes) {
  const auto size = static_cast<std::uint64_t>(room_in_lane(bytes));
  const auto capacity = static_cast<std::uint64_t>(memory_.data_bytes());
  std::uint64_t start = position_;
  if (start % capacity + size > capacity) start += capacity - start % capacity;  // pieces do not wrap
  const auto fits = [&] {
    // An empty ring may be used from its beginning whatever was skipped at its end.
    if (ends_.empty()) freed_ = start;
    return start + size - freed_ <= capacity && head_ - reclaimed_ < memory_.descriptors();
  };
  if (!fits()) {
    reclaim();
    if (!fits()) {
      hurry(true);
      return nullptr;
    }
  }
  hurry(false);
  reserved_ = start;
  position_ = start + size;
  return memory_.data(start);
}

void LaneProducer::publish(Descriptor descriptor) {
  descriptor.position = reserved_;
  memory_.descriptor(head_) = descriptor;
  ends_.push_back(position_);
  ++head_;
  if (announcing_ == Announcing::patient) {
    // A rank in haste raises its flag and then reads `written`; this rank stores `written` and then reads the
    // flag. One of the two sees the other.
    header_->written.store(head_, std::memory_order_seq_cst);
    if (may_wait(descriptor.kind) && bells_->in_haste.load(std::memory_order_seq_cst) == 0) return;
  }
  announce();
}

bool LaneProducer::may_wait(Descriptor::Kind kind) const {
  using Kind = Descriptor::Kind;
  if (kind != Kind::begin && kind != Kind::piece && kind != Kind::define) return false;
  return 2 * (position_ - announced_to_) < static_cast<std::uint64_t>(memory_.data_bytes()) &&
         2 * (head_ - announced_) < memory_.descriptors();
}

void LaneProducer::announce() {
  if (announced_ == head_) return;
  announced_ = head_;
  announced_to_ = position_;
  header_->head.store(head_, std::memory_order_release);
  ring();
}

/// Only readers make room, and they may need what other ranks have written.
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

void LaneProducer::ring() {
  if (bells_ == nullptr) return;
  for (int reader = 0; reader < header_->readers; ++reader) bells_->reader[reader].ring();
}

bool LaneProducer::is_drained() const {
  for (int reader = 0; reader < header_->readers; ++reader) {
    if (header_->tail[reader].load(std::memory_order_acquire) != head_) return false;
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
  return {memory_.data(descriptor.position), static_cast<std::size_t>(descriptor.bytes)};
}

void SharedLaneReader::release(std::uint64_t number) {
  header_->tail[reader_].store(number, std::memory_order_release);
  header_->space.ring();
}

}  // namespace tailrace::comm
