// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/files/array_calls.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/exchange/channel.hpp"
#include "ground/base/text.hpp"
#include "ground/comm/end_job.hpp"

namespace tailrace::files {

/// One call while it moves its arrays.
struct ArrayCalls::Call {
  struct Moving {
    std::byte* data = nullptr;
    std::shared_ptr<const ArrayPlan> plan;
    std::shared_ptr<exchange::Tally> tally;
  };
  /// The bytes of the file that a parallel call moves begin at `begin`. For the call, the file ends at `end`.
  struct Limits {
    Bytes begin = 0;
    Bytes end = std::numeric_limits<Bytes>::max();
    /// Returns how many of `bytes` bytes from `begin` on the file has.
    [[nodiscard]] Bytes available(Bytes bytes) const { return std::clamp(end - begin, Bytes{0}, bytes); }
  };

  Status plan(std::span<const Array> arrays, const Group& group);
  ArrayOutcome agree_on_ends(Group& group) const;
  [[nodiscard]] Bytes inserted() const { return framing ? framing->inserted() : 0; }

  std::string text;
  Direction direction = Direction::write;
  std::shared_ptr<const Framing> framing;
  exchange::Channel* channel = nullptr;
  exchange::Ring* ring = nullptr;
  std::vector<Moving> moved;  // empty if one of the arrays has no plan
  Bytes bytes = 0;            // of all arrays
  bool parallel = false;
  bool each_reads_own = false;  // by OwnReads, without stripes
  Limits limits;
};

Status ArrayCalls::Call::plan(std::span<const Array> arrays, const Group& group) {
  std::vector<Moving> planned;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const std::string which = arrays.size() == 1 ? "the array" : cat("array ", i);
    if (arrays[i].layout != nullptr && arrays[i].layout->ranks() != group.size()) {
      return Status(Code::layout, cat(which, " is laid out over ", counted(arrays[i].layout->ranks(), "rank"),
                                      ", the file was opened by ", group.size()));
    }
    Result<std::shared_ptr<const ArrayPlan>> plan = make_plan(arrays[i], group.rank(), direction);
    TR_TRY(plan.status().in(which));
    planned.push_back({arrays[i].data, std::move(*plan), std::make_shared<exchange::Tally>()});
  }
  moved = std::move(planned);
  return {};
}

/// Collective. Finds out how many elements were moved. Each aggregator knows how far it got itself; the
/// lowest end counts.
ArrayOutcome ArrayCalls::Call::agree_on_ends(Group& group) const {
  Status mine;
  std::vector<Bytes> ends;
  for (const Moving& each : moved) {
    ends.push_back(each.tally->end());
    if (mine.is_ok()) mine = each.tally->status();
  }
  Packer told;
  told.put_list(std::span<const Bytes>(ends));
  const comm::Verdict verdict = group.agree({mine.in(text).at({-1, -1, group.rank()}), text, told.take()});
  ArrayOutcome outcome{0, verdict.status};
  if (verdict.ended) return outcome;  // it is not known how far the other ranks got
  ends.assign(moved.size(), std::numeric_limits<Bytes>::max());
  for (const ByteVector& said : verdict.contributions) {
    Unpacker in(said);
    const std::vector<Bytes> theirs = in.get_list<Bytes>();
    for (std::size_t i = 0; i < theirs.size(); ++i) ends[i] = std::min(ends[i], theirs[i]);
  }
  for (std::size_t i = 0; i < moved.size(); ++i) {
    const ArrayPlan& plan = *moved[i].plan;
    outcome.elements += std::min(ends[i], plan.bytes()) / plan.element;
    if (ends[i] < plan.bytes()) break;
  }
  return outcome;
}

void ArrayCalls::wait(const std::string& call) {
  stream_.wait_for_tasks(call);
  Group* const group = file_.owner.group.get();
  if (group == nullptr || !group->has_channel()) return;
  const exchange::Channel& channel = **group->channel("tr_fopen");
  if (channel.is_idle()) return;
  group->wait([&] { return channel.is_idle(); }, cat("what ", call, " reads"));
}

Status ArrayCalls::agree_on_tasks(const std::string& call, const Status& mine) {
  outstanding_ = false;
  Packer told;
  if (task_failed_.exchange(false)) told.put(std::int32_t{1});
  const comm::Verdict verdict = file_.agree(call, mine, told.take());
  for (const ByteVector& said : verdict.contributions) {
    if (!said.empty()) stream_.note_failure_beside();
  }
  return verdict.status;
}

ArrayOutcome ArrayCalls::move(const std::string& name, std::span<const Array> arrays, Direction direction,
                              const Status& mine, const std::shared_ptr<const Framing>& framing) {
  Group& group = *file_.owner.group;
  Call call;
  call.text = cat(name, "(", file_.path, ", file ", file_.epoch);
  call.direction = direction;
  call.framing = framing;
  for (const Array& array : arrays) call.text += cat(", ", array.text());
  call.text += ")";
  const Result<exchange::Channel*> channel = group.channel(call.text);
  if (!channel.is_ok()) return {0, channel.status().in(call.text)};
  const Result<exchange::Ring*> ring = (*channel)->ring(file_.mode.async);
  if (!ring.is_ok()) return {0, ring.status().in(call.text)};
  call.channel = *channel;
  call.ring = *ring;

  // Prepare: everything that may fail on one rank alone comes before any rank moves a byte.
  const Status planned = guarded([&] { return call.plan(arrays, group); });
  for (const Call::Moving& each : call.moved) call.bytes += each.plan->bytes();
  call.parallel = file_.mode.parallel && call.bytes >= file_.owner.service->settings().parallel_threshold;
  const Status ready = begin(call, mine.is_ok() ? planned : mine);
  if (!ready.is_ok()) return {0, ready};

  // Commit: no early exit.
  return comm::committed(call.text, [&] {
    commit(call);
    return file_.mode.async ? leave_to_tasks(call) : finish(call);
  });
}

/// Collective. The ranks vote on the call. If it is parallel, all ranks then have the I/O rank's limits in
/// `call.limits`.
Status ArrayCalls::begin(Call& call, const Status& planned) {
  Status mine = planned;
  if (mine.is_ok()) mine = file_.check(call.direction);
  Packer told;
  if (file_.holds_stream()) {
    if (mine.is_ok() && call.parallel) mine = tell_position(call, told);
    if (!call.parallel) stream_.forget_position();
    stream_.send_pending();
  }
  if (mine.is_ok() && may_read_own(call)) mine = guarded([&] { return offer_to_read(call, told); });
  Group& group = *file_.owner.group;
  const comm::Verdict verdict =
      group.agree({mine.in(call.text).at({-1, -1, group.rank()}), call.text, told.take()});
  TR_TRY(verdict.status);
  if (!call.parallel) return {};
  Unpacker in(verdict.contributions[Group::io_rank]);
  call.limits.begin = in.get<Bytes>();
  call.limits.end = in.get<Bytes>();
  if (may_read_own(call)) compare_offers(call, verdict);
  return {};
}

/// True if each rank may read its own rows, without stripes. The same on every rank. Asynchronous reads need
/// stripes, since their call returns at once. Framed arrays do not follow one another in the file. Ranks of
/// another node may see an older state of the file. One rank alone is faster through stripes, since a thread
/// fills one stripe while the rank empties another: 512 MiB took 50 ms, and 96 ms straight into the array.
bool ArrayCalls::may_read_own(const Call& call) const {
  return call.direction == Direction::read && call.parallel && !file_.mode.async && call.framing == nullptr &&
         file_.owner.group->size() > 1 && call.channel->far_ranks().empty();
}

Status ArrayCalls::offer_to_read(const Call& call, Packer& out) {
  std::vector<std::shared_ptr<const ArrayPlan>> plans;
  for (const Call::Moving& each : call.moved) plans.push_back(each.plan);
  // If the file is too short for the arrays, nothing is offered: the aggregators then find out where it ends.
  const bool is_whole = !file_.holds_stream() || call.limits.available(call.bytes) == call.bytes;
  out.put(is_whole ? own_reads_.offer(plans) : storage::FileNumber());
  return {};
}

/// Allocates nothing: a rank that ran out of memory here, behind the vote, would leave the others waiting.
void ArrayCalls::compare_offers(Call& call, const comm::Verdict& verdict) {
  std::optional<storage::FileNumber> wanted;  // offered by the I/O rank, which is the first
  call.each_reads_own = true;
  for (const ByteVector& said : verdict.contributions) {
    Unpacker in(said);
    if (!wanted) in.get<Bytes>(), in.get<Bytes>();  // limits of the I/O rank
    const auto offer = in.get<storage::FileNumber>();
    if (!wanted) wanted = offer;
    call.each_reads_own = call.each_reads_own && offer == *wanted && offer != storage::FileNumber();
  }
  own_reads_.compare(*wanted);
}

/// On the I/O rank: finds out the limits of a call, and packs them for all ranks. Before any aggregator
/// writes, the I/O rank alone puts the bytes that they will write over into the journal, so that all that is
/// kept of a file has one order.
Status ArrayCalls::tell_position(Call& call, Packer& out) {
  const bool reads = call.direction == Direction::read;
  const Result<Bytes> begin = stream_.find_position(call.text, call.direction);
  TR_TRY(begin.status());
  const Result<Bytes> end = reads ? stream_.end_to_read() : std::numeric_limits<Bytes>::max();
  TR_TRY(end.status());
  call.limits = {*begin, *end};
  out.put(*begin).put(*end);
  if (reads) return {};
  const Status kept = file_.owner.service->journals().keep(file_.path, *stream_.c_stream().file, *begin,
                                                           call.bytes + call.inserted());
  if (!kept.is_ok()) stream_.note_failure_beside();
  return kept;
}

void ArrayCalls::commit(const Call& call) {
  const bool writes = call.direction == Direction::write;
  const bool async = file_.mode.async;
  exchange::Held held;
  if (async && writes) held.emplace(file_.owner.service->threads());
  stream_.tasks().begin();
  Bytes at = call.limits.begin;
  for (const Call::Moving& each : call.moved) {
    if (call.each_reads_own) {
      own_reads_.read(each.data, *each.plan, at, *each.tally);
      at += each.plan->bytes();
      continue;
    }
    // Stripes of a framed array end at multiples of its elements.
    const Bytes cut_from = call.framing ? 0 : at;
    exchange::Transfer transfer(*call.channel, *call.ring, each.plan, cut_from, call.parallel,
                                stream_.tasks().key());
    if (writes)
      transfer.write(each.data, framed(stream_.writer(call.parallel), call.framing, at), each.tally,
                     async ? &held : nullptr);
    else
      transfer.read(each.data, framed(stream_.reader(call.parallel), call.framing, at), each.tally, async);
    at += each.plan->bytes() + call.inserted();
  }
  if (!call.parallel || !file_.holds_stream()) return;
  const Bytes moves = at - call.limits.begin;
  if (writes) stream_.c_stream().growth->wrote(call.limits.begin, moves);
  // As with C's fread, reading ends at the end of the file, and a stream that stands behind the end stays
  // where it is.
  const Bytes available = call.limits.available(moves);
  stream_.move_to(call.limits.begin + available, call.direction, available < moves);
}

ArrayOutcome ArrayCalls::finish(const Call& call) {
  stream_.wait_for_tasks(call.text);
  ArrayOutcome outcome = call.agree_on_ends(*file_.owner.group);
  if (!call.parallel || !file_.holds_stream()) return outcome;
  Index all = 0;
  for (const Call::Moving& each : call.moved) all += each.plan->layout.elements();
  if (outcome.elements < all) stream_.stop_short(outcome.status, call.limits.begin);
  // A failed call may have left bytes: to write there again does not count as writing over.
  const auto& growth = stream_.c_stream().growth;
  if (!outcome.status.is_ok() && growth) growth->forget(call.limits.begin);
  return outcome;
}

ArrayOutcome ArrayCalls::leave_to_tasks(const Call& call) {
  ArrayOutcome outcome;
  Call::Limits left = call.limits;
  for (const Call::Moving& each : call.moved) {
    outcome.elements += left.available(each.plan->bytes()) / each.plan->element;
    left.begin += each.plan->bytes();
    if (stream_.c_stream().file == nullptr && !file_.holds_stream()) continue;
    stream_.tasks().run([this, tally = each.tally, bytes = each.plan->bytes()] {
      if (!tally->status().is_ok()) task_failed_ = true;
      stream_.tasks().note_moved(tally->status(), tally->end(), bytes);
    });
  }
  outstanding_ = outstanding_ || call.parallel;
  return outcome;
}

}  // namespace tailrace::files
