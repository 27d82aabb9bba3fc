// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "comm/line.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "comm/switchboard.hpp"

namespace tailrace::comm {

namespace {

constexpr Bytes most_untaken = Bytes{32} << 20;

}  // namespace

Members::Members(std::vector<int> transport_ranks) : ranks_(std::move(transport_ranks)) {
  bool same = true;
  for (std::size_t i = 0; i < ranks_.size(); ++i) same = same && ranks_[i] == static_cast<int>(i);
  if (same) return;
  for (std::size_t i = 0; i < ranks_.size(); ++i) sorted_.emplace_back(ranks_[i], static_cast<int>(i));
  std::sort(sorted_.begin(), sorted_.end());
}

int Members::find(int transport_rank) const {
  if (sorted_.empty()) return transport_rank < size() ? transport_rank : -1;
  const auto found = std::lower_bound(sorted_.begin(), sorted_.end(), std::pair(transport_rank, 0));
  return found != sorted_.end() && found->first == transport_rank ? found->second : -1;
}

Line::Line(Switchboard& board, LineNumber number, std::shared_ptr<const Members> members)
    : board_(board),
      number_(number),
      members_(std::move(members)),
      me_(members_->find(board.transport().rank())),
      agreements_(*this),
      broadcasts_(*this) {
  board_.open(*this);
}

Line::~Line() { board_.close(*this); }

void Line::on(std::uint32_t kind, Receiver receiver) { receivers_[kind] = std::move(receiver); }

void Line::send(int destination, ByteVector bytes) {
  board_.send(members_->transport_rank(destination), number_, Channel::control, std::move(bytes));
}

void Line::send_data(int destination, ByteVector bytes) {
  board_.send(members_->transport_rank(destination), number_, Channel::data, std::move(bytes));
}

std::optional<ByteVector> Line::receive_data(int source) {
  return board_.receive_from(members_->transport_rank(source), number_, Channel::data);
}

void Line::send_large(int destination, ByteVector bytes) {
  board_.send(members_->transport_rank(destination), number_, Channel::broadcast, std::move(bytes));
}

std::optional<ByteVector> Line::receive_large(int source) {
  return board_.receive_from(members_->transport_rank(source), number_, Channel::broadcast);
}

Bytes Line::unsent_data() const { return board_.unsent(number_, Channel::data); }

bool Line::progress() { return board_.progress(); }

std::int64_t Line::now() const { return board_.transport().now(); }

bool Line::deliver(int transport_source, const ByteVector& bytes) {
  Unpacker in(bytes);
  const auto receiver = receivers_.find(in.get<std::uint32_t>());
  if (receiver == receivers_.end()) return false;
  receiver->second(members_->find(transport_source), in);
  return true;
}

std::string Line::name_of(int rank) const { return name_ ? name_(rank) : cat("rank ", rank); }

Verdict Line::agree(Vote vote) {
  const std::string what = cat("the other ranks in ", vote.call);
  const std::uint64_t number = agreements_.post(std::move(vote));
  std::optional<Verdict> verdict;
  board_.wait([&] { return (verdict = agreements_.take(number)).has_value(); }, what,
              [&] { return agreements_.missing_text(number); });
  return std::move(*verdict);
}

ByteVector Line::broadcast(ByteVector bytes, const std::string& what) {
  const std::uint64_t number = broadcasts_.post(std::move(bytes));
  std::optional<ByteVector> said;
  board_.wait([&] { return (said = broadcasts_.take(number)).has_value(); }, what);
  // The others may be far behind: large messages that they have not taken are memory here.
  const auto most_is_taken = [&] { return board_.unsent(number_, Channel::broadcast) <= most_untaken; };
  if (!most_is_taken()) board_.wait(most_is_taken, cat("other ranks to take what came from ", what));
  return std::move(*said);
}

}  // namespace tailrace::comm
