// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "comm/line.hpp"

#include <algorithm>
#include <array>
#include <cstring>

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

Line::~Line() {
  for (const int holder : broadcasts_.holders()) board_.abandon(members_->transport_rank(holder), number_);
  board_.close(*this);
}

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

/// Ends with what it is, as control messages do: a rank that has left out a call must not take another
/// call's.
void Line::send_large(int destination, std::uint64_t broadcast, ByteVector bytes) {
  for (const std::uint64_t number : {number_, broadcast}) {
    const auto text = std::as_bytes(std::span(&number, 1));
    bytes.insert(bytes.end(), text.begin(), text.end());
  }
  board_.send(members_->transport_rank(destination), number_, Channel::broadcast, std::move(bytes));
}

std::optional<ByteVector> Line::receive_large(int source, std::uint64_t broadcast) {
  const std::array<std::uint64_t, 2> wanted{number_, broadcast};
  for (;;) {
    std::optional<ByteVector> bytes =
        board_.receive_from(members_->transport_rank(source), number_, Channel::broadcast);
    if (!bytes) return std::nullopt;
    const std::size_t length = bytes->size() - sizeof wanted;
    const bool is_wanted = std::memcmp(bytes->data() + length, wanted.data(), sizeof wanted) == 0;
    bytes->resize(length);
    if (is_wanted) return bytes;
  }
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
  if (me_ == 0) board_.pump();  // it waits for nobody: what it has sent before is to leave all the same
  board_.wait([&] { return (said = broadcasts_.take(number)).has_value(); }, what);
  // The others may be far behind: messages that they have not taken are memory here.
  const auto most_is_taken = [&] {
    return board_.unsent(number_, Channel::broadcast) + board_.unsent(number_, Channel::control) <=
           most_untaken;
  };
  if (!most_is_taken()) board_.wait(most_is_taken, cat("other ranks to take what came from ", what));
  return std::move(*said);
}

}  // namespace tailrace::comm
