// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "comm/broadcast.hpp"

namespace tailrace::comm {

std::uint64_t Broadcasts::post(ByteVector bytes) {
  const std::uint64_t number = next_++;
  if (me_ == 0) {
    pass_on(number, bytes);
    arrived_[number] = std::move(bytes);
  }
  return number;
}

void Broadcasts::pass_on(std::uint64_t number, const ByteVector& bytes) {
  // Rank r hears from r without its lowest set bit, and tells r + 2^k for every 2^k below that bit.
  const int lowest = me_ == 0 ? size_ : me_ & -me_;
  int step = 1;
  while (step < lowest) step *= 2;
  for (step /= 2; step > 0; step /= 2) {
    if (me_ + step >= size_) continue;
    Packer out;
    out.put(broadcast_message).put(number).put_bytes(bytes);
    transport_.send(me_ + step, Channel::control, out.take());
  }
}

bool Broadcasts::on_message(std::uint32_t kind, Unpacker& in) {
  if (kind != broadcast_message) return false;
  const auto number = in.get<std::uint64_t>();
  const std::span<const std::byte> bytes = in.get_bytes();
  ByteVector& kept = arrived_[number];
  kept.assign(bytes.begin(), bytes.end());
  pass_on(number, kept);
  return true;
}

std::optional<ByteVector> Broadcasts::take(std::uint64_t number) {
  const auto found = arrived_.find(number);
  if (found == arrived_.end()) return std::nullopt;
  std::optional<ByteVector> bytes = std::move(found->second);
  arrived_.erase(found);
  return bytes;
}

}  // namespace tailrace::comm
