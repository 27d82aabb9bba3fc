// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/bytes.hpp"
#include "ground/base/status.hpp"

namespace tailrace::comm {

class Line;

struct Verdict;

/// One rank's contribution to a collective call.
struct Vote {
  static constexpr std::int64_t least_bid = std::numeric_limits<std::int64_t>::min();
  Status status;
  std::string call;              // the operation and its arguments, the same text on all ranks
  ByteVector contribution;       // goes to all ranks with the verdict: only few ranks should have one
  ByteVector for_first{};        // goes to rank 0 alone
  std::int64_t addend = 0;       // added up over the ranks
  std::int64_t bid = least_bid;  // all ranks get the largest bid
  /// Rank 0 may bring a check of the votes of all ranks. If all votes pass, rank 0 calls it once, before the
  /// verdict goes out. Its Status becomes the verdict's.
  std::function<Status(const Verdict&)> check{};
};

/// A call, and a rank that makes it.
struct Calling {
  int rank = -1;
  std::string call;
};
/// Returns the error of two ranks that make different calls. The order of the two arguments makes no
/// difference. The text of the error ends with `then`.
Status disagreement(Calling low, Calling high, std::string_view then = {});

/// The result of an agreement. `status`, `contributions` and `ended` are the same on every rank.
struct Verdict {
  /// OK if all votes passed. Otherwise the error with the lowest cause, or Code::order if the ranks' calls
  /// differ.
  Status status;
  std::vector<ByteVector> contributions;       // by rank
  bool ended = false;                          // line ended (Line::end): no more agreements
  std::vector<ByteVector> for_first{};         // on rank 0, by rank: Vote::for_first
  std::int64_t before = 0;                     // the sum of the addends of all lower ranks
  std::int64_t largest_bid = Vote::least_bid;  // the same on every rank
};

/// Agreements among the ranks of a line. Votes travel up a binomial tree to rank 0, and the verdict travels
/// down again. This is a state machine that never waits: `post` votes, and `take` returns the verdict once it
/// has arrived. All ranks must post in the same order. A rank that has an error posts it: no rank skips a
/// vote.
class Agreements {
 public:
  static constexpr std::uint32_t vote_message = 1;
  static constexpr std::uint32_t verdict_message = 2;

  explicit Agreements(Line& line);

  /// Local. Starts the next agreement and returns its number.
  std::uint64_t post(Vote vote);
  /// Returns the verdict of agreement `number` once. Returns nothing before that, while the verdict is still
  /// open.
  std::optional<Verdict> take(std::uint64_t number);
  [[nodiscard]] bool has_posted(std::uint64_t number) const { return number < next_; }
  /// Returns, on rank 0, the number of the first agreement that is not decided yet.
  [[nodiscard]] std::uint64_t decided() const { return decided_; }
  /// Returns, for the watchdog, the children whose votes this rank is still missing, as " nothing from
  /// compute rank 3 or those behind it;".
  [[nodiscard]] std::string missing_text(std::uint64_t number) const;
  /// Returns the children of this rank in the tree: the ranks next to it, away from rank 0.
  [[nodiscard]] std::vector<int> children() const;
  /// Returns the children of this rank in the tree, and its parent.
  [[nodiscard]] std::vector<int> neighbours() const;

 private:
  using Contributions = std::vector<std::pair<int, ByteVector>>;
  struct Ballot {
    bool posted = false;
    bool passed_up = false;
    std::vector<int> heard;  // children whose votes have arrived
    Status status;
    Calling calling;
    Contributions contributions;
    Contributions for_first;
    std::int64_t addend = 0;
    /// The largest bid, so far, of this rank and of the ranks behind it.
    std::int64_t largest_bid = Vote::least_bid;
    std::function<Status(const Verdict&)> check;
    std::map<int, std::int64_t> sums;  // for each child: the sum of it and all ranks behind it
    std::optional<Verdict> verdict;
  };
  void on_vote(int source, Unpacker& in);
  void on_verdict(Unpacker& in);
  void merge(Ballot& ballot, const Status& status, Calling calling, Contributions contributions);
  void advance(std::uint64_t number, Ballot& ballot);
  void decide(std::uint64_t number, Ballot& ballot, Verdict verdict);
  [[nodiscard]] bool has_ended(std::uint64_t number) const;

  Line& line_;
  std::uint64_t next_ = 0;
  std::uint64_t decided_ = 0;
  std::map<std::uint64_t, Ballot> ballots_;
};

}  // namespace tailrace::comm
