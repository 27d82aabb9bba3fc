// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "pipeline/stream_server.hpp"

namespace tailrace::pipeline {

using node::Descriptor;

bool StreamServer::on_descriptor(int c, const Descriptor& descriptor) {
  // Descriptors behind a fence are judged once the put order is known up to there.
  if (fenced_.count(c) != 0) return false;
  LaneProgress& lane = lanes_[c];
  switch (descriptor.kind) {
    case Descriptor::Kind::begin:
    case Descriptor::Kind::begin_failed:
      return on_begin(c, lane, descriptor);
    case Descriptor::Kind::piece:
      return on_piece(c, lane, descriptor);
    case Descriptor::Kind::end:
      return on_end(c, lane, descriptor);
    case Descriptor::Kind::close:
      return on_close(c, lane);
    case Descriptor::Kind::fence:
    case Descriptor::Kind::farewell:
    case Descriptor::Kind::define:
      break;
  }
  return pass(c);
}

/// Uses the lane's next descriptor up at once.
bool StreamServer::pass(int c) {
  LaneCursor& cursor = context_.lanes.at(c);
  cursor.use_up(cursor.pass());
  return true;
}

bool StreamServer::on_close(int c, LaneProgress& lane) {
  lane.closed = true;
  if (context_.is_home(c) && std::ranges::all_of(homed_, [this](int each) { return has_closed(each); }))
    say(Message::closed, -1, {});
  return pass(c);
}

void StreamServer::enter(LaneProgress& lane, LaneProgress::State state, std::int64_t step) {
  lane.state = state;
  lane.step = step;
  lane.next = step + 1;
  lane.cursor = steps_[step].first_record;
  lane.skipping = false;
  lane.told = false;
  lane.status = {};
}

bool StreamServer::on_begin(int c, LaneProgress& lane, const Descriptor& descriptor) {
  const auto found = steps_.find(descriptor.step);
  if (found == steps_.end()) {
    // The reference rank came to an agreement first, and passes it only together with this rank: it never
    // begins this step.
    if (fences_ <= lane.fences) return false;
    lane.state = LaneProgress::State::extra;
    lane.lead = descriptor.lead;
    return pass(c);
  }
  enter(lane, LaneProgress::State::inside, descriptor.step);
  if (descriptor.lead != found->second.lead) {
    disagree(c, lane,
             cat("rank ", c, " began the step at lead ", descriptor.lead, " s where rank ",
                 opening_.reference, " began lead ", found->second.lead, " s"));
  }
  return pass(c);
}

/// Moves the lane's cursor to the next known record of its step in which rank `c` has a share.
bool StreamServer::seek_own_record(int c, LaneProgress& lane, const Step& step) {
  const std::uint64_t end = step.complete ? step.end_record : end_record();
  // Records to which every rank with a share has come may be gone before a rank without one passes them.
  lane.cursor = std::max(lane.cursor, std::min(first_record_, end));
  while (lane.cursor < end && plan(record(lane.cursor).entry.field).count(c) == 0) ++lane.cursor;
  return lane.cursor < end;
}

bool StreamServer::on_piece(int c, LaneProgress& lane, const Descriptor& descriptor) {
  // The reference rank announces records in which it has no share. Nobody reads anything from them.
  if (lane.state != LaneProgress::State::inside || lane.skipping || plan(descriptor.field).count(c) == 0) {
    return pass(c);
  }
  const Step& step = steps_[lane.step];
  if (!seek_own_record(c, lane, step)) {
    if (!step.complete && fences_ <= lane.fences) return false;
    if (!step.complete) {
      outrun(c, lane);
    } else {
      disagree(c, lane,
               cat(call_text(c, descriptor.field, descriptor.level), " where rank ", opening_.reference,
                   " has ended the step at lead ", step.lead, " s"));
    }
    return pass(c);
  }
  Record& record = this->record(lane.cursor);
  if (record.entry.field != descriptor.field || record.entry.level != descriptor.level) {
    disagree(c, lane,
             cat(call_text(c, descriptor.field, descriptor.level), " where ",
                 call_text(opening_.reference, record.entry.field, record.entry.level),
                 "; all ranks that own a part of them put fields in the same order"));
    return pass(c);
  }
  LaneCursor& cursor = context_.lanes.at(c);
  const std::uint64_t number = cursor.pass();
  ++lane.cursor;
  if (come_to(c, record))
    record.pieces.push_back({c, number, true, {}});
  else
    cursor.use_up(number);
  retire();
  return true;
}

bool StreamServer::on_end(int c, LaneProgress& lane, const Descriptor& descriptor) {
  if (lane.state == LaneProgress::State::extra) {
    const Status why(Code::order, cat("rank ", opening_.reference,
                                      " came to another collective call where others began this step; every "
                                      "rank takes every step"));
    tell_both(c, descriptor.step,
              why.in(opening_.step_text(lane.lead)).at({descriptor.step, -1, opening_.reference}));
    lane.state = LaneProgress::State::outside;
    return pass(c);
  }
  // The step's end was counted when the rank came to an agreement inside of the step.
  if (lane.state == LaneProgress::State::outside) return pass(c);
  Step& step = steps_[lane.step];
  if (!lane.skipping && seek_own_record(c, lane, step)) {
    const Record& record = this->record(lane.cursor);
    disagree(c, lane,
             cat("rank ", c, " ended the step at lead ", step.lead, " s where ",
                 call_text(opening_.reference, record.entry.field, record.entry.level)));
  }
  if (lane.fences < (step.complete ? step.fences_at_end : fences_)) outrun(c, lane);
  if (!step.complete) return false;
  Status status;
  if (context_.is_home(c)) {
    LaneCursor& cursor = context_.lanes.at(c);
    ByteVector scratch;
    Unpacker in(cursor.reader().bytes(cursor.number(), scratch));
    const Status own = Status::unpack(in);
    context_.said[c][opening_name_] = in.get<Counters>();
    // The rank's own error explains what its lane lacks. If the rank outran the reference, the verdict that
    // it was told counts.
    status = lane.told || own.is_ok() ? lane.status : own;
  }
  leave_step(c, lane, status, descriptor.stamp);
  return pass(c);
}

/// Rank `c` puts more in a step, or ends it, where the reference rank had come to an agreement. The agreement
/// waits for rank `c`, which may wait for the step's verdict. Therefore it is told the verdict at once.
void StreamServer::outrun(int c, LaneProgress& lane) {
  if (lane.told) return;
  lane.told = true;
  const Step& step = steps_[lane.step];
  const Status why(Code::order,
                   cat("rank ", opening_.reference, " came to a collective call inside of the step at lead ",
                       step.lead, " s, where others went on with it"));
  skip(c, lane, {});
  lane.status = why.at({lane.step, -1, opening_.reference});
  if (!step.complete) tell_both(c, lane.step, lane.status.in(opening_.step_text(step.lead)));
}

/// Notes that rank `c` has come to the end of its step, or past it.
void StreamServer::leave_step(int c, LaneProgress& lane, const Status& status, std::int64_t stamp) {
  const std::int64_t number = lane.step;
  Step& step = steps_[number];
  lane.state = LaneProgress::State::outside;
  if (context_.is_home(c)) {
    step.status = first_cause(step.status, status);
    step.stamps[c] = stamp;
    if (step.stamps.size() == homed_.size()) say(Message::ended, number, step.status);
  }
  ++step.lanes_ended;
  forget_if_over(number);
}

/// A server at which no rank is at home may hear the verdict before it has read the step's end in every lane.
void StreamServer::forget_if_over(std::int64_t step) {
  const auto found = steps_.find(step);
  if (found == steps_.end() || !found->second.durable) return;
  if (found->second.lanes_ended == static_cast<int>(lanes_.size())) steps_.erase(found);
}

void StreamServer::tell_both(int c, std::int64_t step, const Status& status) {
  if (!context_.is_home(c)) return;
  tell(c, VerdictKind::accepted, step, status);
  tell(c, VerdictKind::durable, step, status);
}

void StreamServer::on_fence(int c, std::int64_t number) {
  LaneProgress& lane = lanes_[c];
  if (lane.closed) return;
  lane.fences = number;
  fenced_.insert(c);
  catch_up(c);
}

/// Brings rank `c`, which has come to a fence, up to there in the put order. Steps on the way that it has not
/// begun it never begins. Returns true if something moved.
bool StreamServer::catch_up(int c) {
  LaneProgress& lane = lanes_[c];
  for (bool moved = false;; moved = true) {
    if (lane.state == LaneProgress::State::absent) {
      if (!steps_[lane.step].complete) return moved;
      leave_step(c, lane, lane.status, 0);
      continue;
    }
    if (lane.state == LaneProgress::State::inside) {
      const Step& step = steps_[lane.step];
      if (step.complete && step.fences_at_end < lane.fences) {
        disagree(c, lane,
                 cat("rank ", c, " came to a collective call inside of the step at lead ", step.lead,
                     " s, which rank ", opening_.reference, " ended before its own"));
        leave_step(c, lane, lane.status, 0);
        continue;
      }
    } else if (const auto next = steps_.find(lane.next);
               next != steps_.end() && next->second.fences_at_begin < lane.fences) {
      enter(lane, LaneProgress::State::absent, lane.next);
      disagree(c, lane,
               cat("rank ", c, " came to another collective call where rank ", opening_.reference,
                   " began the step at lead ", next->second.lead, " s"));
      continue;
    }
    if (fences_ < lane.fences) return moved;
    fenced_.erase(c);
    return true;
  }
}

/// Notes that rank `c` has come to a record. Returns true if its piece is needed.
bool StreamServer::come_to(int c, Record& record) {
  --record.unmatched;
  if (!needs_piece(record, c)) return false;
  --record.missing;
  return true;
}

void StreamServer::disagree(int c, LaneProgress& lane, std::string text) {
  skip(c, lane, Status(Code::order, std::move(text)));
}

void StreamServer::skip(int c, LaneProgress& lane, const Status& why) {
  const auto operation = static_cast<std::int64_t>(lane.cursor - steps_[lane.step].first_record);
  lane.status = first_cause(lane.status, why.at({lane.step, operation, c}));
  lane.skipping = true;
  skip_announced(c, lane);
}

void StreamServer::skip_announced(int c, LaneProgress& lane) {
  const Step& step = steps_[lane.step];
  for (; seek_own_record(c, lane, step); ++lane.cursor) {
    Record& record = this->record(lane.cursor);
    record.poisoned = come_to(c, record) || record.poisoned;
  }
}

}  // namespace tailrace::pipeline
