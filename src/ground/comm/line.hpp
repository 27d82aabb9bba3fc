// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ground/comm/agreement.hpp"
#include "ground/comm/broadcast.hpp"
#include "ground/comm/line_numbers.hpp"
#include "ground/comm/sparse_exchange.hpp"
#include "ground/comm/transport.hpp"

namespace tailrace::comm {

class Switchboard;

/// The ranks of a line, and their numbers in the transport.
class Members {
 public:
  explicit Members(std::vector<int> transport_ranks);
  [[nodiscard]] int size() const { return static_cast<int>(ranks_.size()); }
  [[nodiscard]] int transport_rank(int rank) const { return ranks_[static_cast<std::size_t>(rank)]; }
  /// Returns the number in the line of the transport's rank `transport_rank`, or -1 if it is not in the line.
  [[nodiscard]] int find(int transport_rank) const;

 private:
  std::vector<int> ranks_;
  std::vector<std::pair<int, int>> sorted_;  // transport rank, number; empty if they are the same
};

/// The end of a line's agreements and broadcasts, as rank 0 has declared it.
struct Ended {
  Status why;
  std::uint64_t agreements = 0;  // agreements from this number on are ended
};

/// A line carries messages, agreements and broadcasts among a group of ranks, which it numbers from 0. The
/// session has lines; each group of ranks with files and each checkpoint has one. All lines of a process
/// share one Switchboard, which moves them on.
class Line {
 public:
  using Receiver = std::function<void(int source, Unpacker& in)>;

  /// Local. All ranks of the line open it with the same number and members, each at its own time. Messages
  /// that arrive before that are kept.
  Line(Switchboard& board, LineNumber number, std::shared_ptr<const Members> members);
  /// Collective over `members`. Opens a line with a tag that is free on all of them and a count that none of
  /// them has used. Blocks until all members have called it. Returns the same Status on every rank.
  static Result<std::unique_ptr<Line>> open_among(Switchboard& board,
                                                  const std::shared_ptr<const Members>& members,
                                                  const std::string& call);
  ~Line();
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  [[nodiscard]] int rank() const { return me_; }
  [[nodiscard]] int size() const { return members_->size(); }
  [[nodiscard]] LineNumber number() const { return number_; }
  [[nodiscard]] Switchboard& board() { return board_; }
  [[nodiscard]] const std::shared_ptr<const Members>& members() const { return members_; }

  /// Registers `receiver` for control messages whose first word is `kind`. The word has already been taken
  /// from `in`. The receiver must not wait.
  void on(std::uint32_t kind, Receiver receiver);
  /// Sends a control message. The first word of `bytes` is its kind.
  void send(int destination, ByteVector bytes);
  /// Sends a data message. Any thread may call send_data, receive_data and unsent_data.
  void send_data(int destination, ByteVector bytes);
  /// Returns the next data message of `source` if it has arrived whole. The first call for a message lets it
  /// arrive.
  std::optional<ByteVector> receive_data(int source);
  /// Lets the transport keep at most `most` bytes of memory of large messages that are over, for later
  /// messages. This holds for all lines of this process, and for messages sent and received.
  void keep_memory(Bytes most);
  /// Returns memory for a data message of `size` bytes, with any content.
  [[nodiscard]] ByteVector data_memory(Bytes size);
  /// Takes back the memory of a data message that is over, for other messages. Any thread.
  void give_back(ByteVector bytes);
  /// Returns how many bytes of data messages have not left this process yet.
  [[nodiscard]] Bytes unsent_data() const;
  [[nodiscard]] std::int64_t now() const;

  [[nodiscard]] Agreements& agreements() { return agreements_; }
  [[nodiscard]] Broadcasts& broadcasts() { return broadcasts_; }
  /// Sets the names by which the watchdog calls ranks of this line.
  void name_ranks(std::function<std::string(int rank)> name) { name_ = std::move(name); }
  [[nodiscard]] std::string name_of(int rank) const;
  /// Collective. Hands in the caller's vote and returns the verdict, whose Status is the same on every rank.
  /// Blocks until all ranks have voted.
  Verdict agree(Vote vote);
  /// Does the second half of agree(), for a caller that has posted the vote itself. Blocks until `take`
  /// returns the verdict.
  Verdict verdict_of(std::uint64_t number, const std::string& call,
                     const std::function<std::optional<Verdict>()>& take);
  /// Collective. Returns the bytes that rank 0 passes, and the same Status, on every rank. Blocks until rank
  /// 0 has sent them. Also blocks while the ranks behind this one have more than 32 MiB to take from it.
  /// `what` is the watchdog's text.
  Result<ByteVector> broadcast(ByteVector bytes, const std::string& call, const std::string& what);

  /// Collective. Sends `messages`, listed by destination, and returns the messages for this rank, by source.
  /// The Status is the same on every rank: the verdict on `vote`. If it is an error, no rank gets messages.
  /// Blocks until all messages have arrived and all ranks have voted. The vote does not compare the steps of
  /// streams: the caller makes an agreement of the session for the same call before it. The exchange costs a
  /// rank one agreement, and two messages for each rank that it sends to or hears from.
  Result<std::map<int, ByteVector>> exchange(std::map<int, ByteVector> messages, Vote vote);

  /// Local. On rank 0 it ends the line; on other ranks it does nothing. Agreements not decided yet,
  /// broadcasts that rank 0 has not sent yet, and all later ones return `why` on all ranks.
  void end(const Status& why);
  [[nodiscard]] const std::optional<Ended>& ended() const { return ended_; }
  /// Returns the verdict of all agreements after the end of the line.
  [[nodiscard]] Verdict ended_verdict() const;

 private:
  friend class Switchboard;
  /// Returns false if no receiver is registered for the message's kind.
  bool deliver(int transport_source, const ByteVector& bytes);
  void on_ended(Ended ended);
  [[nodiscard]] bool is_off() const;

  Switchboard& board_;
  const LineNumber number_;
  const std::shared_ptr<const Members> members_;
  const int me_;
  std::function<std::string(int)> name_;
  std::map<std::uint32_t, Receiver> receivers_;
  Agreements agreements_;
  Broadcasts broadcasts_;
  SparseExchanges exchanges_;
  std::optional<Ended> ended_;
};

}  // namespace tailrace::comm
