// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/pipeline/server/gathering.hpp"

#include <algorithm>

namespace tailrace::pipeline {

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
  for (const auto& [c, lane] : stream_.lanes) {
    if (plan.count(c) == 0) continue;
    ++record.unmatched;
    if (needs_piece(entry, c)) ++record.missing;
  }
  if (!stream_.owns(entry)) return;
  owned_.push_back(number);
  record.senders = plan.senders();
  std::ranges::sort(record.senders);
  encoding_.announce(entry);
  if (auto early = early_.extract(number); !early.empty()) {
    for (Sent& sent : early.mapped()) add(record, std::move(sent));
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
  LaneCursor& lane = stream_.lanes.at(c);
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

void Gathering::take_sent(int sender, Unpacker in, const std::shared_ptr<const ByteVector>& message) {
  while (in.ok() && !in.rest().empty()) {
    const auto number = in.get<std::uint64_t>();
    Sent sent{.sender = sender, .poisoned = in.get<bool>(), .pieces = {}};
    for (auto count = in.get<std::int32_t>(); count > 0; --count) {
      const int rank = in.get<int>();
      sent.pieces.push_back({rank, 0, false, in.get_bytes(), message});
    }
    if (number < end())
      add(record(number), std::move(sent));
    else
      early_[number].push_back(std::move(sent));
  }
}

void Gathering::add(Record& record, Sent sent) {
  const auto its = std::ranges::equal_range(record.senders, sent.sender);
  record.senders.erase(its.begin(), its.end());
  record.poisoned = sent.poisoned || record.poisoned;
  std::ranges::move(sent.pieces, std::back_inserter(record.pieces));
}

namespace {

/// Only so many own records at the front get data. Data for later ones stays with its sender, which bounds
/// the memory.
constexpr std::size_t most_served = 2;

}  // namespace

std::vector<int> Gathering::waits_for() const {
  std::vector<int> servers;
  for (std::size_t i = 0; i < std::min(most_served, owned_.size()); ++i) {
    const Record& record = records_[static_cast<std::size_t>(owned_[i] - first_)];
    servers.insert(servers.end(), record.senders.begin(), record.senders.end());
  }
  return servers;
}

bool Gathering::waits_for(int server) const {
  for (std::size_t i = 0; i < std::min(most_served, owned_.size()); ++i) {
    const std::vector<int>& senders = records_[static_cast<std::size_t>(owned_[i] - first_)].senders;
    if (std::ranges::binary_search(senders, server)) return true;
  }
  return false;
}

bool Gathering::advance() {
  // Sends first: without threads, handing on a record encodes it, and other servers would wait for their
  // pieces.
  const bool sent = send_complete();
  const bool handed_on = hand_on_complete();
  retire();
  return sent || handed_on;
}

bool Gathering::hand_on_complete() {
  const std::uint64_t before = next_owned_;
  for (; next_owned_ < end(); ++next_owned_) {
    Record& record = this->record(next_owned_);
    if (stream_.owns(record.entry) && (record.missing > 0 || !hand_on(next_owned_, record))) break;
  }
  return next_owned_ != before;
}

/// Returns false if pieces of other servers are still to come, or the next stage has no room.
bool Gathering::hand_on(std::uint64_t number, Record& record) {
  if (!record.senders.empty() || !encoding_.has_room(record.entry)) return false;
  encoding_.take({number, record.entry, record.operation, record.poisoned, std::move(record.pieces)});
  owned_.pop_front();
  return true;
}

/// Sends the pieces of other servers' records that have come, until the transport has enough to carry. Small
/// records of one owner that follow one another share a message: each message costs both servers calls of
/// MPI, in which they give their core away if ranks outnumber cores.
bool Gathering::send_complete() {
  const Context& context = stream_.context;
  const std::uint64_t before = next_sent_;
  Together together;
  for (; next_sent_ < end(); ++next_sent_) {
    const Record& record = this->record(next_sent_);
    const int owner = record.entry.owner;
    if (stream_.owns(record.entry) || stream_.plan(record.entry.field).sent_to(owner).empty()) continue;
    if (record.missing > 0) break;
    const Bytes bytes = bytes_of(record);
    if (!fits(together, owner, bytes)) send(together);
    // As much memory again is kept of messages that are over (Server).
    if (together.records.empty() && context.line.unsent_data() > context.workspace_per_stream() / 8) break;
    together.owner = owner;
    together.bytes += bytes;
    together.records.push_back(next_sent_);
  }
  send(together);
  return next_sent_ != before;
}

bool Gathering::fits(const Together& together, int owner, Bytes bytes) const {
  constexpr Bytes most = Bytes{256} << 10;
  if (together.records.empty()) return true;
  return together.owner == owner &&
         together.bytes + bytes <= std::min(most, stream_.context.workspace_per_stream() / 16);
}

/// Returns the size of a record's part of a message, or a little more.
Bytes Gathering::bytes_of(const Record& record) const {
  constexpr Bytes head = 64;  // of a record, and of a piece
  const int field = record.entry.field;
  const Bytes element = size_of(stream_.field(field).type);
  Bytes bytes = head;
  if (record.poisoned) return bytes;
  for (const Piece& piece : record.pieces) bytes += head + stream_.plan(field).count(piece.rank) * element;
  return bytes;
}

void Gathering::send(Together& together) {
  if (together.records.empty()) return;
  Context& context = stream_.context;
  const comm::Account::Turn turn(context.account(), comm::Routine::assemble);
  Packer out(context.line.data_memory(together.bytes + 64));
  out.put(stream_.opening.stream).put(context.me).put(Data::pieces);
  for (const std::uint64_t number : together.records) {
    const Record& record = this->record(number);
    const std::span<const Piece> sent = record.poisoned ? std::span<const Piece>() : record.pieces;
    out.put(number).put(record.poisoned).put(static_cast<std::int32_t>(sent.size()));
    for (const Piece& piece : sent) out.put(piece.rank).put_bytes(piece.content(stream_.lanes, packed_));
    use_up(stream_.lanes, record.pieces);
  }
  stream_.counters().sent_bytes += static_cast<std::int64_t>(out.bytes().size());
  context.line.send_data(context.rank_of_server(together.owner), out.take());
  together = {};
}

void Gathering::retire() {
  for (; first_ < std::min(next_owned_, next_sent_) && records_.front().unmatched == 0; ++first_)
    records_.pop_front();
}

}  // namespace tailrace::pipeline
