// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/comm/broadcast.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "ground/comm/line.hpp"
#include "ground/comm/switchboard.hpp"

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
  // The child with the most ranks behind it comes first.
  std::vector<int> children = line_.agreements().children();
  std::reverse(children.begin(), children.end());
  for (const int child : children) {
    const bool announced = bytes.size() > most_announced;
    Packer out;
    out.put(broadcast_message).put(number).put(announced);
    if (!announced) out.put_bytes(bytes);
    line_.send(child, out.take());
    if (announced) send_large(child, number, bytes);
  }
}

/// Sends the bytes of a large broadcast. The message ends with the numbers of the line and of the broadcast:
/// if a rank leaves out a call, it must not mistake these bytes for those of another call.
void Broadcasts::send_large(int destination, std::uint64_t number, ByteVector bytes) {
  for (const std::uint64_t word : {line_.number(), number}) {
    const auto text = std::as_bytes(std::span(&word, 1));
    bytes.insert(bytes.end(), text.begin(), text.end());
  }
  line_.board().transport().send(line_.members()->transport_rank(destination), line_.number(),
                                 Traffic::broadcast, std::move(bytes));
}

/// Returns the bytes of broadcast `number` if they have arrived. Drops bytes of broadcasts that this rank
/// never takes.
std::optional<ByteVector> Broadcasts::receive_large(int source, std::uint64_t number) {
  const std::array<std::uint64_t, 2> wanted{line_.number(), number};
  for (;;) {
    std::optional<ByteVector> bytes = line_.board().transport().receive_from(
        line_.members()->transport_rank(source), line_.number(), Traffic::broadcast);
    if (!bytes) return std::nullopt;
    const std::size_t length = bytes->size() - sizeof wanted;
    std::array<std::uint64_t, 2> got{};
    std::memcpy(got.data(), bytes->data() + length, sizeof got);
    bytes->resize(length);
    if (got == wanted) return bytes;
    if (got[0] == wanted[0]) arrived_.erase(got[1]);
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
    std::optional<ByteVector> large = receive_large(*said.holder, number);
    if (!large) return std::nullopt;
    said.bytes = std::move(*large);
    pass_on(number, said.bytes);
  }
  std::optional<ByteVector> bytes = std::move(said.bytes);
  arrived_.erase(found);
  return bytes;
}

}  // namespace tailrace::comm
