// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "comm/transport.hpp"

namespace tailrace::comm {

/// What one rank brings to a collective call.
struct Vote {
  Status status;
  std::string call;         // the operation and its arguments: all ranks must bring the same text
  ByteVector contribution;  // handed to all ranks with the verdict
};

/// What all ranks take away: the same on each.
struct Verdict {
  Status status;  // OK if all passed, else the error with the lowest cause; Code::order if calls differ
  std::vector<ByteVector> contributions;  // by group rank
};

/// Agreements among the ranks 0 .. size-1 of a group: votes travel up a binomial tree, the verdict down
/// again. A state machine without a wait in it: `post` votes, `on_message` takes what arrives, `verdict` is
/// there when it is there. Every rank must post in the same order; a rank that has an error posts it: nobody
/// skips a vote.
class Agreements {
 public:
  static constexpr std::uint32_t vote_message = 1;
  static constexpr std::uint32_t verdict_message = 2;

  /// `members[i]`: transport rank of group rank i; `me`: own group rank.
  Agreements(Transport& transport, std::vector<int> members, int me);

  /// Local. Starts the next agreement and returns its number.
  std::uint64_t post(Vote vote);
  /// True if the message was one of ours. `kind` was already taken from `in`.
  bool on_message(std::uint32_t kind, int source, Unpacker& in);
  /// The verdict of agreement `number`, once; nothing while it is still open.
  std::optional<Verdict> take(std::uint64_t number);
  /// Group ranks (direct children in the tree, with all below them) whose votes are still missing here: for
  /// the watchdog.
  [[nodiscard]] std::vector<int> missing(std::uint64_t number) const;

 private:
  struct Ballot {
    bool posted = false;
    bool passed_up = false;
    std::vector<int> heard;  // children
    Status status;
    std::string call;
    int call_rank = -1;
    std::vector<std::pair<int, ByteVector>> contributions;
    std::optional<Verdict> verdict;
  };
  void merge(Ballot& ballot, const Status& status, std::string call, int call_rank,
             std::vector<std::pair<int, ByteVector>> contributions);
  void advance(std::uint64_t number, Ballot& ballot);
  void decide(std::uint64_t number, Ballot& ballot, Verdict verdict);
  [[nodiscard]] std::vector<int> children() const;

  Transport& transport_;
  std::vector<int> members_;
  int me_;
  std::uint64_t next_ = 0;
  std::map<std::uint64_t, Ballot> ballots_;
};

}  // namespace tailrace::comm
