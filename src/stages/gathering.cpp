// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "stages/gathering.hpp"

#include <algorithm>

namespace tailrace::stages {

bool Gathering::needs_piece(const SequenceEntry& entry, int c) const {
  if (stream_.plan(entry.field).count(c) == 0) return false;
  if (stream_.owns(entry)) return true;
  const auto& sent = stream_.plan(entry.field).sent_to(entry.owner);
  return std::ranges::find(sent, c) != sent.end();
}

void Gathering::announce(const SequenceEntry& entry, std::int64_t operation) {
  const std::uint64_t number = end();
  Record& record = records_.emplace_back();
  record.entry = entry;
  record.operation = operation;
  const exchange::RecordPlan& plan = stream_.plan(entry.field);
  for (const auto& [c, lane] : stream_.context.lanes) {
    if (plan.count(c) == 0) continue;
    ++record.unmatched;
    if (needs_piece(entry, c)) ++record.missing;
  }
  if (!stream_.owns(entry)) return;
  record.senders.insert(plan.senders().begin(), plan.senders().end());
  encoding_.announce(entry);
  if (const auto early = early_.extract(number); !early.empty()) {
    for (const auto& [in, message] : early.mapped()) take_sent(number, in, message);
  }
}

std::uint64_t Gathering::next_of(int c, std::uint64_t from, std::uint64_t end) const {
  std::uint64_t number = std::max(from, std::min(first_, end));
  while (number < end && stream_.plan(entry(number).field).count(c) == 0) ++number;
  return number;
}

/// Notes that rank `c` has come to a record. Returns true if its piece is needed.
bool Gathering::come_to(int c, Record& record) {
  --record.unmatched;
  if (!needs_piece(record.entry, c)) return false;
  --record.missing;
  return true;
}

void Gathering::take(int c, std::uint64_t number) {
  LaneCursor& lane = stream_.context.lanes.at(c);
  Record& record = this->record(number);
  const std::uint64_t descriptor = lane.pass();
  if (come_to(c, record))
    record.pieces.push_back({c, descriptor, true});
  else
    lane.use_up(descriptor);
  retire();
}

void Gathering::lose(int c, std::uint64_t number) {
  Record& record = this->record(number);
  record.poisoned = come_to(c, record) || record.poisoned;
}

void Gathering::take_sent(std::uint64_t number, Unpacker in,
                          const std::shared_ptr<const ByteVector>& message) {
  if (number >= end()) {
    early_[number].emplace_back(in, message);
    return;
  }
  Record& record = this->record(number);
  record.senders.erase(in.get<int>());
  record.poisoned = in.get<bool>() || record.poisoned;
  for (auto count = in.get<std::int32_t>(); count > 0; --count) {
    const int rank = in.get<int>();
    record.pieces.push_back({rank, 0, false, in.get_bytes(), message});
  }
}

std::set<int> Gathering::waits_for() const {
  // Only records at the front get data. Data for later ones stays with its sender, which bounds the memory.
  std::set<int> servers;
  int looked = 0;
  for (auto number = next_owned_; number < end() && looked < 2; ++number) {
    const Record& record = records_[static_cast<std::size_t>(number - first_)];
    if (!stream_.owns(record.entry)) continue;
    ++looked;
    servers.insert(record.senders.begin(), record.senders.end());
  }
  return servers;
}

bool Gathering::advance() {
  // Without threads, handing on a record encodes it.
  const bool sent = advance(false);
  const bool handed_on = advance(true);
  retire();
  return sent || handed_on;
}

bool Gathering::advance(bool owned) {
  std::uint64_t& next = owned ? next_owned_ : next_sent_;
  const std::uint64_t before = next;
  for (; next < end(); ++next) {
    Record& record = this->record(next);
    if (stream_.owns(record.entry) != owned) continue;
    if (record.missing > 0 || !(owned ? hand_on(next, record) : send(next, record))) break;
  }
  return next != before;
}

/// Returns false if pieces of other servers are still to come, or the next stage has no room.
bool Gathering::hand_on(std::uint64_t number, Record& record) {
  if (!record.senders.empty() || !encoding_.has_room(record.entry)) return false;
  encoding_.take({number, record.entry, record.operation, record.poisoned, std::move(record.pieces)});
  return true;
}

/// Returns the size of a message with these pieces, or a little more.
Bytes Gathering::bytes_of(int field, std::span<const Piece> pieces) const {
  constexpr Bytes head = 64;  // of the message, and of a piece
  const Bytes element = size_of(stream_.field(field).type);
  Bytes bytes = head;
  for (const Piece& piece : pieces) bytes += head + stream_.plan(field).count(piece.rank) * element;
  return bytes;
}

/// Returns false if the transport has enough to carry for now.
bool Gathering::send(std::uint64_t number, const Record& record) {
  Context& context = stream_.context;
  if (stream_.plan(record.entry.field).sent_to(record.entry.owner).empty()) return true;
  // As much again is memory of messages that are over (Server).
  if (context.line.unsent_data() > context.workspace_per_stream() / 8) return false;
  const std::span<const Piece> sent = record.poisoned ? std::span<const Piece>() : record.pieces;
  Packer out(context.line.data_memory(bytes_of(record.entry.field, sent)));
  out.put(stream_.opening.stream).put(number).put(context.me);
  out.put(record.poisoned).put(static_cast<std::int32_t>(sent.size()));
  for (const Piece& piece : sent) out.put(piece.rank).put_bytes(piece.content(context, packed_));
  stream_.counters().sent_bytes += static_cast<std::int64_t>(out.bytes().size());
  context.line.send_data(context.rank_of_server(record.entry.owner), out.take());
  use_up(context, record.pieces);
  return true;
}

void Gathering::retire() {
  for (; first_ < std::min(next_owned_, next_sent_) && records_.front().unmatched == 0; ++first_)
    records_.pop_front();
}

}  // namespace tailrace::stages
