// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/comm/agreement.hpp"

#include <algorithm>
#include <iterator>

#include "ground/base/text.hpp"
#include "ground/comm/line.hpp"

namespace tailrace::comm {

namespace {

/// Returns the parent in the binomial tree rooted at 0: the rank with its lowest set bit cleared.
int parent_of(int rank) { return rank & (rank - 1); }

using Contributions = std::vector<std::pair<int, ByteVector>>;

void pack_contributions(Packer& out, const Contributions& list) {
  out.put(static_cast<std::int64_t>(list.size()));
  for (const auto& [rank, bytes] : list) out.put(rank).put_bytes(bytes);
}

// Most agreements have no bids: then nothing is sent. A bid is the last word of its message.
void put_bid(Packer& out, std::int64_t bid) {
  if (bid != Vote::least_bid) out.put(bid);
}

std::int64_t take_bid(Unpacker& in) { return in.rest().empty() ? Vote::least_bid : in.get<std::int64_t>(); }

Contributions unpack_contributions(Unpacker& in) {
  Contributions list;
  const auto count = in.get<std::int64_t>();
  for (std::int64_t i = 0; i < count && in.ok(); ++i) {
    const int rank = in.get<int>();
    const auto bytes = in.get_bytes();
    list.emplace_back(rank, ByteVector(bytes.begin(), bytes.end()));
  }
  return list;
}

void append(Contributions& list, Contributions more) {
  std::move(more.begin(), more.end(), std::back_inserter(list));
}

std::vector<ByteVector> by_rank(Contributions list, int size) {
  std::vector<ByteVector> all(static_cast<std::size_t>(size));
  for (auto& [rank, bytes] : list) all[static_cast<std::size_t>(rank)] = std::move(bytes);
  return all;
}

}  // namespace

Status disagreement(Calling low, Calling high, std::string_view then) {
  if (low.rank > high.rank) std::swap(low, high);
  return Status(Code::order, cat("ranks disagree: rank ", low.rank, " calls ", low.call, " while rank ",
                                 high.rank, " calls ", high.call,
                                 "; collective calls must be the same on all ranks, in the same order", then))
      .at({-1, -1, high.rank});
}

Agreements::Agreements(Line& line) : line_(line) {
  line_.on(vote_message, [this](int source, Unpacker& in) { on_vote(source, in); });
  line_.on(verdict_message, [this](int, Unpacker& in) { on_verdict(in); });
}

std::vector<int> Agreements::children() const {
  std::vector<int> list;
  const int me = line_.rank();
  for (int bit = 1; (me & bit) == 0 && me + bit < line_.size(); bit <<= 1) list.push_back(me + bit);
  return list;
}

std::vector<int> Agreements::neighbours() const {
  std::vector<int> list = children();
  if (line_.rank() != 0) list.push_back(parent_of(line_.rank()));
  return list;
}

std::uint64_t Agreements::post(Vote vote) {
  const std::uint64_t number = next_++;
  Ballot& ballot = ballots_[number];
  ballot.posted = true;
  Contributions contribution;
  if (!vote.contribution.empty()) contribution.emplace_back(line_.rank(), std::move(vote.contribution));
  Status status = vote.status;
  if (!status.is_ok() && status.rank() < 0) {
    status = status.at({status.cause().step, status.cause().operation, line_.rank()});
  }
  if (!vote.for_first.empty()) ballot.for_first.emplace_back(line_.rank(), std::move(vote.for_first));
  ballot.addend = vote.addend;
  ballot.largest_bid = std::max(ballot.largest_bid, vote.bid);
  ballot.check = std::move(vote.check);
  merge(ballot, status, {line_.rank(), std::move(vote.call)}, std::move(contribution));
  advance(number, ballot);
  return number;
}

void Agreements::merge(Ballot& ballot, const Status& status, Calling calling, Contributions contributions) {
  ballot.status = first_cause(ballot.status, status);
  if (ballot.calling.rank >= 0 && calling.call != ballot.calling.call) {
    ballot.status = first_cause(ballot.status, disagreement(ballot.calling, calling));
    if (calling.rank < ballot.calling.rank) ballot.calling = calling;
  }
  if (ballot.calling.rank < 0) ballot.calling = std::move(calling);
  append(ballot.contributions, std::move(contributions));
}

void Agreements::advance(std::uint64_t number, Ballot& ballot) {
  if (!ballot.posted || ballot.passed_up || ballot.heard.size() < children().size()) return;
  if (ballot.verdict || has_ended(number)) return;
  ballot.passed_up = true;
  if (line_.rank() == 0) {
    Verdict verdict;
    verdict.status = ballot.status;
    verdict.largest_bid = ballot.largest_bid;
    verdict.contributions = by_rank(std::move(ballot.contributions), line_.size());
    verdict.for_first = by_rank(std::move(ballot.for_first), line_.size());
    if (ballot.check && verdict.status.is_ok()) {
      const Status checked = guarded([&] { return ballot.check(verdict); });
      verdict.status = checked.at({checked.cause().step, checked.cause().operation, line_.rank()});
    }
    decide(number, ballot, std::move(verdict));
    return;
  }
  Packer out;
  out.put(vote_message).put(number);
  ballot.status.pack(out);
  out.put_text(ballot.calling.call).put(ballot.calling.rank);
  pack_contributions(out, ballot.contributions);
  pack_contributions(out, ballot.for_first);
  std::int64_t sum = ballot.addend;
  for (const auto& [child, behind] : ballot.sums) sum += behind;
  out.put(sum);
  put_bid(out, ballot.largest_bid);
  line_.send(parent_of(line_.rank()), out.take());
  ballot.contributions.clear();
  ballot.for_first.clear();
}

void Agreements::decide(std::uint64_t number, Ballot& ballot, Verdict verdict) {
  decided_ = number + 1;  // ranks post votes in the order of the numbers, and pass them up so
  Contributions list;
  for (std::size_t rank = 0; rank < verdict.contributions.size(); ++rank) {
    if (!verdict.contributions[rank].empty())
      list.emplace_back(static_cast<int>(rank), verdict.contributions[rank]);
  }
  Packer out;
  out.put(verdict_message).put(number).put(verdict.ended);
  verdict.status.pack(out);
  pack_contributions(out, list);
  // Behind a child are the ranks from the child's own number up to the number of the next child.
  std::int64_t before = verdict.before + ballot.addend;
  for (const int child : children()) {
    Packer to_child = out;
    to_child.put(before);
    put_bid(to_child, verdict.largest_bid);
    before += ballot.sums[child];
    line_.send(child, to_child.take());
  }
  ballot.verdict = std::move(verdict);
}

void Agreements::on_vote(int source, Unpacker& in) {
  const auto number = in.get<std::uint64_t>();
  if (has_ended(number)) return;
  Ballot& ballot = ballots_[number];
  const Status status = Status::unpack(in);
  Calling calling;
  calling.call = in.get_text();
  calling.rank = in.get<int>();
  merge(ballot, status, std::move(calling), unpack_contributions(in));
  append(ballot.for_first, unpack_contributions(in));
  ballot.sums[source] = in.get<std::int64_t>();
  ballot.largest_bid = std::max(ballot.largest_bid, take_bid(in));
  ballot.heard.push_back(source);
  advance(number, ballot);
}

void Agreements::on_verdict(Unpacker& in) {
  const auto number = in.get<std::uint64_t>();
  Verdict verdict;
  verdict.ended = in.get<bool>();
  verdict.status = Status::unpack(in);
  verdict.contributions = by_rank(unpack_contributions(in), line_.size());
  verdict.before = in.get<std::int64_t>();
  verdict.largest_bid = take_bid(in);
  decide(number, ballots_[number], std::move(verdict));
}

std::optional<Verdict> Agreements::take(std::uint64_t number) {
  const auto found = ballots_.find(number);
  if (found == ballots_.end()) return std::nullopt;
  std::optional<Verdict> verdict = std::move(found->second.verdict);
  if (!verdict && has_ended(number)) verdict = line_.ended_verdict();
  if (!verdict) return std::nullopt;
  ballots_.erase(found);
  return verdict;
}

bool Agreements::has_ended(std::uint64_t number) const {
  return line_.ended() && number >= line_.ended()->agreements;
}

std::string Agreements::missing_text(std::uint64_t number) const {
  std::string text;
  const auto found = ballots_.find(number);
  if (found == ballots_.end()) return text;
  const std::vector<int>& heard = found->second.heard;
  for (const int child : children()) {
    if (std::find(heard.begin(), heard.end(), child) == heard.end())
      text += cat(" nothing from ", line_.name_of(child), " or those behind it;");
  }
  return text;
}

}  // namespace tailrace::comm
