// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <deque>
#include <map>
#include <vector>

#include "engine/pipeline/server/encoding.hpp"

namespace tailrace::pipeline {

/// The second stage. It takes the records of the put order, and for each of them the pieces that come in the
/// lanes read here and from servers that read other lanes. It hands on each record of this server with all
/// its pieces (Gathered), in put order, and sends the pieces of other servers' records to their owners, in
/// put order as well. Handing on and sending do not wait for each other: while this server encodes, other
/// servers get their pieces.
class Gathering {
 public:
  Gathering(OpenStream& stream, Encoding& encoding) : stream_(stream), encoding_(encoding) {}

  /// Takes the next record of the put order. `operation` is its number within its step.
  void announce(const SequenceEntry& entry, std::int64_t operation);
  /// Takes the piece of a record that is in front of the lane of compute rank `c`.
  void take(int c, std::uint64_t record);
  /// Notes that the piece of rank `c` will not come. The record is poisoned if this server needs the piece.
  void lose(int c, std::uint64_t record);
  /// Takes pieces of records from server `sender`, which sees lanes that this one does not. `in` has them, in
  /// `message`.
  void take_sent(int sender, Unpacker in, const std::shared_ptr<const ByteVector>& message);
  /// Returns the servers whose pieces are missing in the records that this server encodes next, some of them
  /// more than once.
  [[nodiscard]] std::vector<int> waits_for() const;
  [[nodiscard]] bool waits_for(int server) const;
  /// True if the next record to be handed on has all pieces of the lanes read here, and lacks some of others.
  [[nodiscard]] bool lacks_pieces_of_servers() const {
    if (owned_.empty()) return false;
    const Record& next = records_[static_cast<std::size_t>(owned_.front() - first_)];
    return next.missing == 0 && !next.senders.empty();
  }
  /// Hands on and sends what is complete. Returns true if there was something.
  bool advance();

  /// Returns the number of the record that will be announced next.
  [[nodiscard]] std::uint64_t end() const { return first_ + records_.size(); }
  [[nodiscard]] const SequenceEntry& entry(std::uint64_t number) const {
    return records_[static_cast<std::size_t>(number - first_)].entry;
  }
  /// Returns the first record from `from` on in which rank `c` has a share, or `end`. The rank has taken or
  /// lost all its records that are gone.
  [[nodiscard]] std::uint64_t next_of(int c, std::uint64_t from, std::uint64_t end) const;

 private:
  struct Record {
    SequenceEntry entry;
    std::int64_t operation = 0;
    int unmatched = 0;         // visible lanes with a share whose ranks have not come to it
    int missing = 0;           // pieces that must still come before it can be handed on or sent
    std::vector<int> senders;  // servers whose pieces are still to come, sorted
    std::vector<Piece> pieces;
    bool poisoned = false;
  };
  /// One server's pieces of one record, as they come in a message.
  struct Sent {
    int sender = 0;
    bool poisoned = false;
    std::vector<Piece> pieces;
  };
  /// Records whose pieces go to their owner in one message.
  struct Together {
    int owner = 0;
    Bytes bytes = 0;
    std::vector<std::uint64_t> records = {};
  };

  Record& record(std::uint64_t number) { return records_[static_cast<std::size_t>(number - first_)]; }
  [[nodiscard]] bool needs_piece(const SequenceEntry& entry, int c) const;
  bool come_to(int c, Record& record);
  static void add(Record& record, Sent sent);
  bool hand_on_complete();
  bool hand_on(std::uint64_t number, Record& record);
  bool send_complete();
  [[nodiscard]] Bytes bytes_of(const Record& record) const;
  [[nodiscard]] bool fits(const Together& together, int owner, Bytes bytes) const;
  void send(Together& together);
  void retire();

  OpenStream& stream_;
  Encoding& encoding_;
  std::deque<Record> records_;
  std::uint64_t first_ = 0;          // number of records_.front()
  std::uint64_t next_owned_ = 0;     // the first own record that is not handed on, or a record before it
  std::deque<std::uint64_t> owned_;  // own records that are not handed on
  std::uint64_t next_sent_ = 0;      // the first record of another server that is not sent, likewise
  // Pieces that came before their record was announced.
  std::map<std::uint64_t, std::vector<Sent>> early_;
  ByteVector packed_;  // a piece of an array that is lent
};

}  // namespace tailrace::pipeline
