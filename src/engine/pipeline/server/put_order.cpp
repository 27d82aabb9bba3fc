// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/pipeline/server/put_order.hpp"

#include "ground/base/log.hpp"

namespace tailrace::pipeline {

using node::Descriptor;

PutOrder::PutOrder(OpenStream& stream, Gathering& gathering)
    : stream_(stream),
      context_(stream.context),
      opening_(stream.opening),
      gathering_(gathering),
      homed_(context_.roster.homed(context_.me)) {
  for (const auto& [c, cursor] : stream_.lanes) lanes_[c].next = opening_.first_step;
  if (const auto first = stream_.lanes.find(0); first != stream_.lanes.end()) {
    node::KeptDefinitions* const kept = first->second.reader().kept();
    progress_ = kept == nullptr ? nullptr : kept->progress(opening_.stream);
  }
  if (progress_ != nullptr) progress_->decided = opening_.first_step;
}

void PutOrder::on_entry(const SequenceEntry& entry) {
  using Kind = SequenceEntry::Kind;
  switch (entry.kind) {
    case Kind::begin: {
      Step& step = steps_[entry.step];
      step.lead = entry.lead;
      step.first_record = gathering_.end();
      step.fences_at_begin = fences_;
      step_records_.clear();
      break;
    }
    case Kind::record: {
      const auto operation = static_cast<std::int64_t>(gathering_.end() - steps_[entry.step].first_record);
      gathering_.announce(entry, operation);
      for (auto& [c, lane] : lanes_) {
        if (lane.skipping && lane.step == entry.step) skip_announced(c, lane);
      }
      const int layout = opening_.layout_of[static_cast<std::size_t>(entry.field)];
      ++step_records_[{layout, size_of(stream_.field(entry.field).type)}];
      break;
    }
    case Kind::end_step: {
      Step& step = steps_[entry.step];
      step.end_record = gathering_.end();
      step.complete = true;
      step.fences_at_end = fences_;
      check_staging(step);
      break;
    }
    case Kind::fence:
      fences_ = entry.step;
      break;
    case Kind::end_chunk:
      break;
  }
}

namespace {

/// The rank whose need in a step exceeds its share most.
struct Lack {
  int rank = -1;
  std::int64_t needed = 0, share = 1;

  [[nodiscard]] double ratio() const { return static_cast<double>(needed) / static_cast<double>(share); }
  void consider(const Lack& other) {
    if (other.ratio() > std::max(ratio(), 1.0)) *this = other;
  }
};

std::string size_text(Bytes bytes) {
  constexpr Bytes mebibyte = Bytes{1} << 20;
  return bytes < mebibyte ? cat((bytes + 1023) >> 10, " KiB")
                          : cat((bytes + mebibyte - 1) / mebibyte, " MiB");
}

}  // namespace

/// Warns if a rank's share of the staging memory is less than a step needs: the rank then waits for the
/// servers inside of its calls, in every step. The home of the reference names the rank that lacks most, once
/// for the stream.
void PutOrder::check_staging(const Step& step) {
  if (told_of_staging_ || context_.quotas.empty() || !context_.is_home(opening_.reference)) return;
  Lack data, puts;
  for (int c = 0; c < context_.roster.computes(); ++c) {
    Bytes needed = 0, largest = 0;
    std::int64_t descriptors = 2;  // two for begin and end
    for (const auto& [kind, records] : step_records_) {
      const Bytes piece = stream_.plans[static_cast<std::size_t>(kind.first)].count(c) * kind.second;
      needed += records * node::room_in_lane(piece);
      largest = std::max(largest, piece);
      if (piece > 0) descriptors += records;
    }
    needed += largest;  // room that may stay empty at the end of the ring
    const node::LaneCut lane = node::cut_lane(context_.quotas[static_cast<std::size_t>(c)]);
    data.consider({c, needed, lane.data});
    puts.consider({c, descriptors, static_cast<std::int64_t>(lane.descriptors)});
  }
  told_of_staging_ = data.rank >= 0 || puts.rank >= 0;
  // A rank cannot have more descriptors than `most_descriptors`: if it needs more, no setting helps.
  // Otherwise one warning names the larger of the two settings that are needed, which is enough for both.
  const bool beyond = puts.needed > static_cast<std::int64_t>(node::LaneCut::most_descriptors);
  const auto warn = [&](const Lack& lack, const std::string& what, const std::string& has,
                        bool setting_helps) {
    log(LogLevel::warn,
        cat(opening_.step_text(step.lead), ": rank ", lack.rank, " puts ", what,
            " in it, and its share of the staging memory ", has,
            ": in such steps it waits for the servers to make room",
            setting_helps ? cat("; set ", context_.staging_for(lack.needed, lack.share)) : std::string()));
  };
  if (data.rank >= 0 && (beyond || data.ratio() >= puts.ratio()))
    warn(data, size_text(data.needed), cat("is ", size_text(data.share)), true);
  if (puts.rank >= 0 && (beyond || puts.ratio() > data.ratio()))
    warn(puts, cat(puts.needed - 2, " levels"), cat("takes ", puts.share, " at a time"), !beyond);
}

bool PutOrder::on_descriptor(int c, const Descriptor& descriptor) {
  // Descriptors behind a fence wait until the put order is known up to the fence.
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

/// Passes the lane's next descriptor, and uses it up at once.
bool PutOrder::pass(int c) {
  LaneCursor& cursor = stream_.lanes.at(c);
  cursor.use_up(cursor.pass());
  return true;
}

bool PutOrder::on_close(int c, LaneProgress& lane) {
  lane.closed = true;
  if (context_.is_home(c) && std::ranges::all_of(homed_, [this](int each) { return has_closed(each); }))
    stream_.say(Message::closed, -1, {});
  return pass(c);
}

void PutOrder::enter(LaneProgress& lane, LaneProgress::State state, std::int64_t step) {
  lane.state = state;
  lane.step = step;
  lane.next = step + 1;
  lane.cursor = steps_[step].first_record;
  lane.skipping = false;
  lane.told = false;
  lane.status = {};
}

bool PutOrder::on_begin(int c, LaneProgress& lane, const Descriptor& descriptor) {
  const auto found = steps_.find(descriptor.step);
  if (found == steps_.end()) {
    // The reference rank has come to an agreement before this step. It passes the agreement only together
    // with this rank, and so never begins the step.
    if (fences_ <= lane.fences) return false;
    lane.state = LaneProgress::State::extra;
    lane.lead = descriptor.lead;
    return pass(c);
  }
  enter(lane, LaneProgress::State::inside, descriptor.step);
  if (descriptor.lead != found->second.lead) {
    disagree(c, lane,
             cat("rank ", c, " began the step at ", times().at(descriptor.lead), " where rank ",
                 opening_.reference, " began ", times().at(found->second.lead)));
  }
  return pass(c);
}

/// Moves the lane's cursor to the next known record of its step in which rank `c` has a share.
bool PutOrder::seek_own_record(int c, LaneProgress& lane, const Step& step) {
  const std::uint64_t end = step.complete ? step.end_record : gathering_.end();
  lane.cursor = gathering_.next_of(c, lane.cursor, end);
  return lane.cursor < end;
}

bool PutOrder::on_piece(int c, LaneProgress& lane, const Descriptor& descriptor) {
  // The reference rank also puts records in which it has no share, for the put order. Their pieces are empty.
  if (lane.state != LaneProgress::State::inside || lane.skipping ||
      stream_.plan(descriptor.field).count(c) == 0) {
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
                   " has ended the step at ", times().at(step.lead)));
    }
    return pass(c);
  }
  const SequenceEntry& record = gathering_.entry(lane.cursor);
  if (record.field != descriptor.field || record.level != descriptor.level) {
    disagree(c, lane,
             cat(call_text(c, descriptor.field, descriptor.level), " where ",
                 call_text(opening_.reference, record.field, record.level),
                 "; all ranks that own a part of them put fields in the same order"));
    return pass(c);
  }
  if (record.calls != descriptor.lead) {
    disagree(
        c, lane,
        cat(call_text(c, descriptor.field, descriptor.level), " in other steps of the interval than rank ",
            opening_.reference, "; all ranks that own a part of a field put it in the same steps"));
    return pass(c);
  }
  gathering_.take(c, lane.cursor++);
  return true;
}

bool PutOrder::on_end(int c, LaneProgress& lane, const Descriptor& descriptor) {
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
    const SequenceEntry& record = gathering_.entry(lane.cursor);
    disagree(c, lane,
             cat("rank ", c, " ended the step at ", times().at(step.lead), " where ",
                 call_text(opening_.reference, record.field, record.level)));
  }
  if (lane.fences < (step.complete ? step.fences_at_end : fences_)) outrun(c, lane);
  if (!step.complete) return false;
  Status status;
  if (context_.is_home(c)) {
    LaneCursor& cursor = stream_.lanes.at(c);
    ByteVector scratch;
    Unpacker in(cursor.reader().bytes(cursor.number(), scratch));
    const Status own = Status::unpack(in);
    context_.said_by(c).streams[stream_.name] = in.get<Counters>();
    if (in.ok() && !in.rest().empty()) context_.said_by(c).process = in.get<Process>();
    // The rank's own error explains what its lane lacks. If the rank outran the reference, the verdict that
    // it was told counts.
    status = lane.told || own.is_ok() ? lane.status : own;
  }
  leave_step(c, lane, status, descriptor.stamp);
  return pass(c);
}

/// Deals with a rank `c` that puts more in a step, or ends it, where the reference rank has come to an
/// agreement. The agreement waits for rank `c`, and rank `c` may wait for the step's verdict. Therefore the
/// server tells rank `c` the verdict at once.
void PutOrder::outrun(int c, LaneProgress& lane) {
  if (lane.told) return;
  lane.told = true;
  const Step& step = steps_[lane.step];
  const Status why(Code::order,
                   cat("rank ", opening_.reference, " came to a collective call inside of the step at ",
                       times().at(step.lead), ", where others went on with it"));
  skip(c, lane, {});
  lane.status = why.at({lane.step, -1, opening_.reference});
  if (!step.complete) tell_both(c, lane.step, lane.status.in(opening_.step_text(step.lead)));
}

/// Notes that rank `c` has come to the end of its step, or past it.
void PutOrder::leave_step(int c, LaneProgress& lane, const Status& status, std::int64_t stamp) {
  const std::int64_t number = lane.step;
  Step& step = steps_[number];
  lane.state = LaneProgress::State::outside;
  if (context_.is_home(c)) {
    step.status = first_cause(step.status, status);
    step.stamps[c] = stamp;
    if (step.stamps.size() == homed_.size()) stream_.say(Message::ended, number, step.status);
  }
  ++step.lanes_ended;
  forget_if_over(number);
}

/// Forgets a step that has its verdict and whose end was read in every lane. A server at which no rank is at
/// home may hear the verdict first.
void PutOrder::forget_if_over(std::int64_t step) {
  const auto found = steps_.find(step);
  if (found == steps_.end() || !found->second.durable) return;
  if (found->second.lanes_ended == static_cast<int>(lanes_.size())) steps_.erase(found);
}

void PutOrder::tell_both(int c, std::int64_t step, const Status& status) {
  if (!context_.is_home(c)) return;
  tell(c, VerdictKind::accepted, step, status);
  tell(c, VerdictKind::durable, step, status);
}

void PutOrder::on_fence(int c, std::int64_t number) {
  LaneProgress& lane = lanes_[c];
  if (lane.closed) return;
  lane.fences = number;
  fenced_.insert(c);
  catch_up(c);
}

/// Moves the lane of rank `c`, which has come to a fence, forward in the put order, at most to the fence.
/// Steps on the way that the rank has not begun count as absent: the rank never begins them. Returns true if
/// something moved.
bool PutOrder::catch_up(int c) {
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
                 cat("rank ", c, " came to a collective call inside of the step at ", times().at(step.lead),
                     ", which rank ", opening_.reference, " ended before its own"));
        leave_step(c, lane, lane.status, 0);
        continue;
      }
    } else if (const auto next = steps_.find(lane.next);
               next != steps_.end() && next->second.fences_at_begin < lane.fences) {
      enter(lane, LaneProgress::State::absent, lane.next);
      disagree(c, lane,
               cat("rank ", c, " came to another collective call where rank ", opening_.reference,
                   " began the step at ", times().at(next->second.lead)));
      continue;
    }
    if (fences_ < lane.fences) return moved;
    fenced_.erase(c);
    return true;
  }
}

void PutOrder::disagree(int c, LaneProgress& lane, std::string text) {
  skip(c, lane, Status(Code::order, std::move(text)));
}

void PutOrder::skip(int c, LaneProgress& lane, const Status& why) {
  const auto operation = static_cast<std::int64_t>(lane.cursor - steps_[lane.step].first_record);
  lane.status = first_cause(lane.status, why.at({lane.step, operation, c}));
  lane.skipping = true;
  skip_announced(c, lane);
}

void PutOrder::skip_announced(int c, LaneProgress& lane) {
  const Step& step = steps_[lane.step];
  while (seek_own_record(c, lane, step)) gathering_.lose(c, lane.cursor++);
}

bool PutOrder::advance() {
  bool moved = false;
  for (auto c = fenced_.begin(); c != fenced_.end();) moved = catch_up(*c++) || moved;
  return moved;
}

std::string PutOrder::call_text(int c, int field, int level) const {
  const auto& definition = opening_.fields[static_cast<std::size_t>(field)];
  return cat("rank ", c, " puts '", definition.name, "' (level ", level, ")");
}

void PutOrder::on_verdict(VerdictKind kind, std::int64_t step, const Status& status) {
  if (kind == VerdictKind::finished) {
    finished_ = true;
    // The ranks drop what the lanes keep of the stream once they hear that it is finished.
    progress_ = nullptr;
  }
  if (kind == VerdictKind::durable) on_durable(step, status);
  if (kind == VerdictKind::accepted && !status.is_ok() && status.cause().step == step) {
    const auto lane = stream_.lanes.find(opening_.reference);
    if (lane != stream_.lanes.end()) lane->second.mark_failed(opening_.stream, step);
  }
  for (const int c : homed_) tell(c, kind, step, status);
  if (kind != VerdictKind::durable) return;
  // A server that takes the lanes over begins with step `decided`. It must find this step whole in the lanes:
  // therefore `decided` changes before descriptors are released.
  if (progress_ != nullptr) progress_->decided = step + 1;
  for (auto& [c, cursor] : stream_.lanes) cursor.finish_steps(opening_.stream, step, false);
}

void PutOrder::on_durable(std::int64_t number, const Status& status) {
  context_.news = true;
  const auto found = steps_.find(number);
  if (found == steps_.end()) return;
  for (const auto& [c, stamp] : found->second.stamps) {
    if (!status.is_ok() || stamp == 0) continue;
    const double seconds = static_cast<double>(context_.line.now() - stamp) * 1e-9;
    context_.statistics.durable[stream_.name].push_back(seconds);
  }
  found->second.durable = true;
  forget_if_over(number);
}

void PutOrder::tell(int c, VerdictKind kind, std::int64_t step, const Status& status) {
  Packer out;
  out.put(Message::verdict).put(opening_.stream).put(kind).put(step);
  status.pack(out);
  if (kind == VerdictKind::durable) stream_.lanes.at(c).note_verdict(opening_.stream, step, !status.is_ok());
  context_.line.send(context_.rank_of_compute(c), out.take());
}

std::string PutOrder::waiting_for() const {
  std::string text;
  for (const auto& [number, step] : steps_) {
    // The step's end is in the put order: one rank at least has ended it.
    if (!step.complete || step.stamps.size() == homed_.size()) continue;
    text += cat(" ", stream_.name, " step at ", times().at(step.lead), ": not ended by compute rank");
    for (const int c : homed_) {
      if (step.stamps.count(c) == 0) text += cat(" ", c);
    }
    text += ";";
  }
  // A descriptor that stays in front of a lane waits for the put order, which the reference makes.
  const bool behind = std::any_of(lanes_.begin(), lanes_.end(), [this](const auto& lane) {
    const Descriptor* front = stream_.lanes.at(lane.first).front();
    return front != nullptr && front->stream == opening_.stream && front->kind != Descriptor::Kind::farewell;
  });
  if (behind)
    text += cat(" ", stream_.name, ": others have come further than compute rank ", opening_.reference, ";");
  return text;
}

}  // namespace tailrace::pipeline
