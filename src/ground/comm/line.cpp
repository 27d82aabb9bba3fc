// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/comm/line.hpp"

#include <algorithm>

#include "ground/base/text.hpp"
#include "ground/comm/switchboard.hpp"

namespace tailrace::comm {

namespace {

/// A number that the ranks of a meeting may choose for their line.
struct Candidate {
  LineNumber tag = 0;  // line_number::tags: none is free
  std::uint64_t count = 0;
};

using line_number::Tags;

LineNumber lowest(const Tags& free) {
  LineNumber tag = 0;
  while (tag < line_number::tags && !free.test(tag)) ++tag;
  return tag;
}

/// Collective over the meeting. Rank 0 proposes candidates until no rank objects. A rank that objects tells
/// rank 0 alone which tags are free on it, because all ranks may object. Returns the same on every rank.
Result<Candidate> choose(Line& meeting, Candidate candidate, const std::string& call) {
  Switchboard& board = meeting.board();
  Tags free = board.free_tags();  // rank 0: the tags that no rank is known to use
  for (bool is_accepted = false;;) {
    const Packer proposal = Packer().put(Candidate{lowest(free), candidate.count});
    const Result<ByteVector> said = meeting.broadcast(is_accepted ? ByteVector() : proposal.bytes(), call,
                                                      cat("the first rank of the communicator in ", call));
    TR_TRY(said.status());
    if (said->empty()) return candidate;
    candidate = Unpacker(*said).get<Candidate>();
    const Tags mine = board.free_tags();
    Packer objection;
    const bool is_taken = candidate.tag < line_number::tags && !mine.test(candidate.tag);
    if (is_taken || board.numbers().count() >= candidate.count)
      objection.put(board.numbers().count()).put(mine);
    const Verdict verdict = meeting.agree({{}, call, {}, objection.take()});
    TR_TRY(verdict.status);
    is_accepted = true;
    for (const ByteVector& each : verdict.for_first) {
      if (each.empty()) continue;
      is_accepted = false;
      Unpacker objected(each);
      candidate.count = std::max(candidate.count, objected.get<std::uint64_t>() + 1);
      free &= objected.get<Tags>();
    }
  }
}

constexpr std::uint32_t ended_message = 4;

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
      broadcasts_(*this),
      exchanges_(*this) {
  on(ended_message, [this](int, Unpacker& in) {
    const auto agreements = in.get<std::uint64_t>();
    on_ended({Status::unpack(in), agreements});
  });
  board_.open(*this);
}

Result<std::unique_ptr<Line>> Line::open_among(Switchboard& board,
                                               const std::shared_ptr<const Members>& members,
                                               const std::string& call) {
  Line meeting(board, board.numbers().next_meeting(*members), members);
  Candidate candidate{lowest(board.free_tags()), board.numbers().count() + 1};
  // If the ranks have the same lines open, they all choose the same number, and this agreement is enough.
  const std::uint64_t number =
      meeting.agreements().post({{}, cat(call, " on line ", candidate.tag, " ", candidate.count), {}});
  const Verdict same = meeting.verdict_of(number, call, [&] { return meeting.agreements().take(number); });
  if (same.ended) return same.status;
  if (!same.status.is_ok()) {
    const Result<Candidate> chosen = choose(meeting, candidate, call);
    TR_TRY(chosen.status());
    candidate = *chosen;
  }
  if (candidate.tag == line_number::tags) {
    return Status(Code::state,
                  cat(call, ": ", line_number::tags - line_number::first_free,
                      " communicators are in use already, as many as there can be: free some of them"));
  }
  return std::make_unique<Line>(board, candidate.tag | candidate.count << line_number::tag_bits, members);
}

Line::~Line() {
  for (const int holder : broadcasts_.holders()) board_.abandon(members_->transport_rank(holder), number_);
  board_.close(*this);
}

void Line::on(std::uint32_t kind, Receiver receiver) { receivers_[kind] = std::move(receiver); }

void Line::send(int destination, ByteVector bytes) {
  board_.transport().send(members_->transport_rank(destination), number_, Traffic::control, std::move(bytes));
}

void Line::send_data(int destination, ByteVector bytes) {
  board_.transport().send(members_->transport_rank(destination), number_, Traffic::data, std::move(bytes));
}

std::optional<ByteVector> Line::receive_data(int source) {
  return board_.transport().receive_from(members_->transport_rank(source), number_, Traffic::data);
}

void Line::keep_memory(Bytes most) { board_.transport().keep_memory(most); }

ByteVector Line::data_memory(Bytes size) { return board_.transport().memory(size); }

void Line::give_back(ByteVector bytes) { board_.transport().give_back(std::move(bytes)); }

Bytes Line::unsent_data() const { return board_.transport().unsent(number_, Traffic::data); }

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
  const std::string call = vote.call;
  const std::uint64_t number = agreements_.post(std::move(vote));
  return verdict_of(number, call, [&] { return agreements_.take(number); });
}

Verdict Line::verdict_of(std::uint64_t number, const std::string& call,
                         const std::function<std::optional<Verdict>()>& take) {
  const OrderedWait wait{{number_, OrderedCall::Kind::agreement, 0, number}, call, agreements_.neighbours()};
  const Account::Turn turn(board_.account(), Routine::barrier);
  std::optional<Verdict> verdict;
  board_.wait([&] { return (verdict = take()).has_value() || is_off(); }, cat("the other ranks in ", call),
              wait, [&] { return agreements_.missing_text(number); });
  if (!verdict) return {*board_.order().broken(), {}, true};
  return std::move(*verdict);
}

/// True if this line is a meeting and the order of calls is broken: its first rank may never come, and then
/// never ends the meeting. Giving up alone is safe: the first thing ranks do on the line that a meeting opens
/// is an agreement, and the missing rank does not come to it either.
bool Line::is_off() const {
  return line_number::tag_of(number_) == line_number::meeting && board_.order().broken();
}

Result<ByteVector> Line::broadcast(ByteVector bytes, const std::string& call, const std::string& what) {
  if (me_ == 0 && ended_) return ended_->why;
  const std::uint64_t number = broadcasts_.post(std::move(bytes));
  // Rank 0 waits for nobody, but its messages have to leave.
  if (me_ == 0) board_.pump();
  // Asks only the parent in the tree. A parent that waits in this call too asks its own parent.
  OrderedWait wait{{number_, OrderedCall::Kind::broadcast, 0, number}, call, {me_ & (me_ - 1)}};
  std::optional<ByteVector> said;
  const auto is_over = [&] {
    return (said = broadcasts_.take(number)).has_value() || (ended_ && !broadcasts_.is_coming(number)) ||
           is_off();
  };
  board_.wait(is_over, what, wait);
  if (!said) return ended_ ? ended_->why : *board_.order().broken();
  // Other ranks may be far behind, and messages that they have not taken use memory here.
  const auto most_is_taken = [&] {
    const Transport& transport = board_.transport();
    return transport.unsent(number_, Traffic::broadcast) + transport.unsent(number_, Traffic::control) <=
               most_untaken ||
           board_.order().broken();
  };
  wait.awaited = agreements_.children();
  if (!most_is_taken()) board_.wait(most_is_taken, cat("other ranks to take what came from ", what), wait);
  return std::move(*said);
}

/// A rank takes messages in any call in which it waits. So no rank waits here for a rank that makes another
/// call.
Result<std::map<int, ByteVector>> Line::exchange(std::map<int, ByteVector> messages, Vote vote) {
  const std::string call = vote.call;
  const std::uint64_t number = exchanges_.post(std::move(messages));
  board_.wait([&] { return exchanges_.has_arrived(number) || ended_; },
              cat("other ranks to take what this one sends in ", call));
  const Verdict verdict = agree(std::move(vote));
  std::map<int, ByteVector> arrived = exchanges_.take(number);
  TR_TRY(verdict.status);
  return arrived;
}

void Line::end(const Status& why) {
  if (me_ == 0 && !ended_) on_ended({why, agreements_.decided()});
}

Verdict Line::ended_verdict() const {
  return {ended_->why, std::vector<ByteVector>(static_cast<std::size_t>(size())), true};
}

/// Passes the end on to the children. The verdicts of earlier agreements have gone the same way before it.
void Line::on_ended(Ended ended) {
  Packer out;
  out.put(ended_message).put(ended.agreements);
  ended.why.pack(out);
  for (const int child : agreements_.children()) send(child, out.bytes());
  ended_ = std::move(ended);
}

}  // namespace tailrace::comm
