// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "comm/broadcast.hpp"

#include "comm/line.hpp"

namespace tailrace::comm {

Broadcasts::Broadcasts(Line& line) : line_(line) {
  line_.on(broadcast_message, [this](int source, Unpacker& in) { on_message(source, in); });
}

std::uint64_t Broadcasts::post(ByteVector bytes) {
  const std::uint64_t number = next_++;
  if (line_.rank() == 0) {
    pass_on(number, bytes);
    arrived_[number].bytes = std::move(bytes);
  }
  return number;
}

void Broadcasts::pass_on(std::uint64_t number, const ByteVector& bytes) {
  // Rank r hears from the rank without r's lowest set bit, and tells r + 2^k for every 2^k below that bit.
  const int me = line_.rank();
  const int lowest = me == 0 ? line_.size() : me & -me;
  int step = 1;
  while (step < lowest) step *= 2;
  for (step /= 2; step > 0; step /= 2) {
    if (me + step >= line_.size()) continue;
    const bool announced = bytes.size() > most_announced;
    Packer out;
    out.put(broadcast_message).put(number).put(announced);
    if (!announced) out.put_bytes(bytes);
    line_.send(me + step, out.take());
    if (announced) line_.send_large(me + step, number, bytes);
  }
}

void Broadcasts::on_message(int source, Unpacker& in) {
  const auto number = in.get<std::uint64_t>();
  Said& said = arrived_[number];
  if (in.get<bool>()) {
    said.holder = source;
    return;
  }
  const std::span<const std::byte> bytes = in.get_bytes();
  said.bytes.assign(bytes.begin(), bytes.end());
  pass_on(number, said.bytes);
}

bool Broadcasts::announces(const ByteVector& message) {
  Unpacker in(message);
  if (in.get<std::uint32_t>() != broadcast_message) return false;
  in.get<std::uint64_t>();  // its number
  return in.get<bool>();
}

std::vector<int> Broadcasts::holders() const {
  std::vector<int> list;
  for (const auto& [number, said] : arrived_) {
    if (said.holder) list.push_back(*said.holder);
  }
  return list;
}

std::optional<ByteVector> Broadcasts::take(std::uint64_t number) {
  const auto found = arrived_.find(number);
  if (found == arrived_.end()) return std::nullopt;
  Said& said = found->second;
  if (said.holder) {
    std::optional<ByteVector> large = line_.receive_large(*said.holder, number);
    if (!large) return std::nullopt;
    said.bytes = std::move(*large);
    pass_on(number, said.bytes);
  }
  std::optional<ByteVector> bytes = std::move(said.bytes);
  arrived_.erase(found);
  return bytes;
}

}  // namespace tailrace::comm
