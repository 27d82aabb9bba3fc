// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/comm/sparse_exchange.hpp"

#include <utility>

#include "ground/comm/line.hpp"

namespace tailrace::comm {

SparseExchanges::SparseExchanges(Line& line) : line_(line) {
  line_.on(exchange_message, [this](int source, Unpacker& in) { on_message(source, in); });
  line_.on(arrival_message, [this](int, Unpacker& in) { on_arrival(in); });
}

/// Sends control messages, however large the messages are: for data messages, a receiver would have to know
/// their sources. The receiver has to keep all messages anyway until the last has come.
std::uint64_t SparseExchanges::post(std::map<int, ByteVector> messages) {
  const std::uint64_t number = next_++;
  for (auto& [destination, bytes] : messages) {
    if (destination == line_.rank()) {
      arrived_[number][destination] = std::move(bytes);
      continue;
    }
    ++unheard_[number];
    ByteVector message = Packer().put(exchange_message).put(number).put_bytes(bytes).take();
    bytes = {};
    line_.send(destination, std::move(message));
  }
  return number;
}

void SparseExchanges::on_message(int source, Unpacker& in) {
  const auto number = in.get<std::uint64_t>();
  const auto bytes = in.get_bytes();
  // If the line has ended, this rank may already have given up the exchange.
  if (number >= taken_) arrived_[number][source].assign(bytes.begin(), bytes.end());
  line_.send(source, Packer().put(arrival_message).put(number).take());
}

void SparseExchanges::on_arrival(Unpacker& in) {
  const auto unheard = unheard_.find(in.get<std::uint64_t>());
  if (unheard != unheard_.end() && --unheard->second == 0) unheard_.erase(unheard);
}

std::map<int, ByteVector> SparseExchanges::take(std::uint64_t number) {
  std::map<int, ByteVector> messages = std::move(arrived_[number]);
  arrived_.erase(number);
  taken_ = number + 1;
  return messages;
}

}  // namespace tailrace::comm
