// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "exchange/request_desk.hpp"

#include "exchange/requests.hpp"

namespace tailrace::exchange {

void RequestDesk::open(const Address& address, Requests& requests) {
  const std::lock_guard lock(mutex_);
  if (open_.empty()) work_ = board_.add_work([this] { return pump(); });
  open_[address] = &requests;
}

void RequestDesk::close(const Address& address) {
  const std::lock_guard lock(mutex_);
  open_.erase(address);
  if (open_.empty()) board_.remove_work(work_);
}

bool RequestDesk::pump() {
  const std::lock_guard lock(mutex_);
  return comm::committed("answering other nodes", [this] { return move_on(); });
}

/// Ranks that end a file because their calls broke the order may be asked for pages of it still: nobody waits
/// for their answers.
bool RequestDesk::move_on() {
  bool moved = false;
  while (std::optional<comm::Envelope> envelope = board_.transport().receive_request()) {
    moved = true;
    const auto epoch = Unpacker(envelope->bytes).get<std::uint64_t>();
    const auto requests = open_.find({envelope->line, epoch});
    if (requests != open_.end()) requests->second->deliver(std::move(*envelope));
  }
  for (const auto& [address, requests] : open_) moved = requests->serve() || moved;
  return moved;
}

}  // namespace tailrace::exchange
