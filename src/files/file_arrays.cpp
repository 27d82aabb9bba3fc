// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <algorithm>
#include <cerrno>
#include <limits>

#include "base/text.hpp"
#include "comm/end_job.hpp"
#include "files/file.hpp"

namespace tailrace::files {

namespace {

/// From now on feof() is true for a stream that stands at the end of its file, or behind it.
void find_end(std::FILE* stream) {
  if (const int found = std::fgetc(stream); found != EOF) std::ungetc(found, stream);
}

}  // namespace

Result<File::Moved> File::plan_all(std::span<const Array> arrays, int rank, int ranks, Direction direction) {
  Moved moved;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const std::string which = arrays.size() == 1 ? "the array" : cat("array ", i);
    if (arrays[i].layout != nullptr && arrays[i].layout->ranks() != ranks) {
      return Status(Code::layout, cat(which, " is laid out over ", counted(arrays[i].layout->ranks(), "rank"),
                                      ", the file was opened by ", ranks));
    }
    Result<std::shared_ptr<const ArrayPlan>> plan = make_plan(arrays[i], rank, direction);
    TR_TRY(plan.status().in(which));
    moved.push_back({arrays[i].data, std::move(*plan), std::make_shared<exchange::Tally>()});
  }
  return moved;
}

ByteVector File::ends_of(const Moved& moved, Status& status) {
  std::vector<Bytes> ends;
  for (const Moving& each : moved) {
    ends.push_back(each.tally->end());
    if (status.is_ok()) status = each.tally->status();
  }
  Packer out;
  out.put_list(std::span<const Bytes>(ends));
  return out.take();
}

/// Each aggregator alone knows how far it got. The lowest counts.
ArrayOutcome File::reached_by_all(const Moved& moved, const comm::Verdict& verdict) {
  ArrayOutcome outcome;
  outcome.status = verdict.status;
  if (verdict.ended) return outcome;  // nobody knows how far the others got
  std::vector<Bytes> ends(moved.size(), std::numeric_limits<Bytes>::max());
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

Status File::check_direction(Direction direction) const {
  if (direction == Direction::write && !mode_.writes())
    return Status(Code::state, cat(path_, " was opened for reading only"), EBADF);
  if (direction == Direction::read && !mode_.reads())
    return Status(Code::state, cat(path_, " was opened for writing only: open it with + or r"), EBADF);
  return {};
}

/// Returns where the stream stands. Its buffer is written, or forgotten: others read and write the file
/// beside it.
Result<Bytes> File::position_of_stream(Direction direction) {
  if (stream_.file == nullptr)
    return Status(Code::argument, cat(path_, " has no positions: open it without p, in the serial mode"));
  errno = 0;
  if (std::fflush(stream_.stream) != 0) return io_error("write", path_, errno);
  if (stream_.least_end && direction == Direction::write) {
    const Result<Bytes> size = stream_.file->size();
    TR_TRY(size.status());
    return std::max(*size, stream_.least_end->load());
  }
  const off_t position = ::ftello(stream_.stream);
  if (position < 0) return io_error("ftell", path_, errno);
  return Bytes{position};
}

Status File::tell_position(const std::string& call, Direction direction, Packer& out) {
  TR_TRY(find_position(call, direction));
  const Result<Bytes> end = direction == Direction::read ? end_to_read() : std::numeric_limits<Bytes>::max();
  TR_TRY(end.status());
  out.put(*position_).put(*end);
  return {};
}

/// Returns where the file ends once the tasks of all aggregators are done. The stream has nothing left to
/// write.
Result<Bytes> File::end_to_read() const {
  const Bytes written = stream_.growth ? stream_.growth->end() : 0;
  if (stream_.is_uncut || cutting_) return written;
  const Result<Bytes> size = stream_.file->size();
  TR_TRY(size.status());
  return std::max(*size, written);
}

/// A stream that appends writes somewhere else than it reads.
Status File::find_position(const std::string& call, Direction direction) {
  send_pending();  // this moves the position
  if (position_ && (!stream_.least_end || position_for_ == direction)) return {};
  wait_for_tasks(call);
  const Result<Bytes> position = position_of_stream(direction);
  TR_TRY(position.status());
  position_ = *position;
  position_for_ = direction;
  return {};
}

/// `is_end`: the bytes to be read ended there early, and C's stream shows it.
void File::move_stream_to(Bytes position, Direction direction, bool is_end) {
  position_ = position;
  position_for_ = direction;
  if (stream_.least_end && direction == Direction::write) *stream_.least_end = position;
  run_or_queue([this, position, is_end] {
    if (flush_before_seek(stream_.stream) != 0 || ::fseeko(stream_.stream, position, SEEK_SET) != 0)
      note(io_error("seek", path_, errno));
    else if (is_end)
      find_end(stream_.stream);
  });
}

/// Gives the device its work now, while nobody waits for it. Otherwise, when a file is closed that had been
/// cut, ext4 would begin the work and the program would wait for it (auto_da_alloc in ext4(5)).
void File::begin_write_back() const {
  if (!mode_.async) return;
  if (shared_ != nullptr)
    shared_->begin_write_back();
  else if (stream_.file != nullptr)
    stream_.file->begin_write_back();
}

exchange::WriteBytes File::writer(bool parallel) {
  if (parallel) {
    return [this](std::span<const std::byte> bytes, Bytes offset) {
      const Status written = shared_->write(bytes, offset);
      begin_write_back();
      return written;
    };
  }
  return [this](std::span<const std::byte> bytes, Bytes) -> Status {
    TR_TRY(unheard_failure());
    errno = 0;
    if (std::fwrite(bytes.data(), 1, bytes.size(), stream_.stream) != bytes.size())
      return io_error("write", path_, errno);
    begin_write_back();
    return {};
  };
}

exchange::ReadBytes File::reader(bool parallel) {
  if (parallel) {
    return [this](std::span<std::byte> bytes, Bytes offset) { return shared_->read(bytes, offset); };
  }
  return [this](std::span<std::byte> bytes, Bytes) -> Result<Bytes> {
    errno = 0;
    const std::size_t got = std::fread(bytes.data(), 1, bytes.size(), stream_.stream);
    if (got < bytes.size() && std::ferror(stream_.stream) != 0) return io_error("read", path_, errno);
    return static_cast<Bytes>(got);
  };
}

ArrayOutcome File::move_arrays(const std::string& name, std::span<const Array> arrays, Direction direction,
                               const Status& mine, const std::shared_ptr<const Framing>& framing) {
  if (place_.group == nullptr) return move_local(name, arrays, direction, mine, framing);
  Group& group = *place_.group;
  std::string call = cat(name, "(", path_, ", file ", epoch_);
  for (const Array& array : arrays) call += cat(", ", array.text());
  call += ")";
  const Result<exchange::Channel*> channel = group.channel(call);
  if (!channel.is_ok()) return {0, channel.status().in(call)};
  const Result<exchange::Ring*> ring = (*channel)->ring(mode_.async);
  if (!ring.is_ok()) return {0, ring.status().in(call)};

  // Prepare: everything that may fail on one rank alone comes before any rank moves a byte.
  const Result<Moved> moved =
      guarded([&] { return plan_all(arrays, group.rank(), group.size(), direction); });
  Bytes total = 0;
  for (const Moving& each : moved.is_ok() ? *moved : Moved()) total += each.plan->bytes();
  const bool parallel = mode_.parallel && total >= place_.service->settings().parallel_threshold;
  const Bytes extent = total + (framing ? framing->inserted() : 0);
  Extent reach;
  const Status ready = begin_arrays(call, mine.is_ok() ? moved.status() : mine,
                                    parallel ? std::optional(extent) : std::nullopt, direction, reach);
  if (!ready.is_ok()) return {0, ready};

  // Commit: no early exit.
  return comm::committed(call, [&] {
    commit_arrays(**channel, **ring, *moved, direction, framing, parallel, reach);
    if (mode_.async) return leave_to_tasks(*moved, parallel, reach);
    ArrayOutcome outcome = finish_arrays(call, *moved, parallel, reach);
    // Bytes that a failed call has left may be written again.
    if (parallel && !outcome.status.is_ok() && stream_.growth) stream_.growth->forget(reach.begin);
    return outcome;
  });
}

void File::commit_arrays(exchange::Channel& channel, exchange::Ring& ring, const Moved& moved,
                         Direction direction, const std::shared_ptr<const Framing>& framing, bool parallel,
                         const Extent& reach) {
  exchange::Held held;
  if (mode_.async && direction == Direction::write) held.emplace(place_.service->threads());
  queue_cut();
  Bytes at = reach.begin;
  for (const Moving& each : moved) {
    // Stripes of a framed array end at multiples of its elements.
    const Bytes cut_from = framing ? 0 : at;
    exchange::Transfer transfer(channel, *ring.pool, each.plan,
                                channel.deal_out(ring, cut_from, each.plan->bytes(), parallel), key_);
    if (direction == Direction::write)
      transfer.write(each.data, framed(writer(parallel), framing, at), each.tally,
                     mode_.async ? &held : nullptr);
    else
      transfer.read(each.data, framed(reader(parallel), framing, at), each.tally, mode_.async);
    at += each.plan->bytes() + (framing ? framing->inserted() : 0);
  }
  if (!parallel || !holds_stream()) return;
  const Bytes moves = at - reach.begin;
  if (direction == Direction::write) stream_.growth->wrote(reach.begin, moves);
  // As with C's fread, reading ends where the file does, and a stream behind the end stays where it was.
  const Bytes available = reach.available(moves);
  move_stream_to(reach.begin + available, direction, available < moves);
}

/// Runs the ranks' vote on the call. `reach` becomes that of the file, where aggregators need it. `parallel`
/// is the number of bytes that aggregators move. The I/O rank alone keeps the bytes that they write over,
/// before any of them writes. So everything kept of a file has one order.
Status File::begin_arrays(const std::string& call, const Status& planned, std::optional<Bytes> parallel,
                          Direction direction, Extent& reach) {
  Status mine = planned;
  if (mine.is_ok()) mine = check_direction(direction);
  Packer told;
  if (holds_stream()) {
    if (mine.is_ok() && parallel) mine = tell_position(call, direction, told);
    if (mine.is_ok() && parallel && direction == Direction::write) {
      mine = keep(*position_, *parallel);
      if (!mine.is_ok()) failed_beside_ = true;
    }
    if (!parallel) position_.reset();
    send_pending();
  }
  Group& group = *place_.group;
  const comm::Verdict verdict = group.agree({mine.in(call).at({-1, -1, group.rank()}), call, told.take()});
  TR_TRY(verdict.status);
  if (!parallel) return {};
  Unpacker in(verdict.contributions[Group::io_rank]);
  reach.begin = in.get<Bytes>();
  reach.end = in.get<Bytes>();
  return {};
}

ArrayOutcome File::finish_arrays(const std::string& call, const Moved& moved, bool parallel,
                                 const Extent& reach) {
  wait_for_tasks(call);
  Status mine;
  const ByteVector ends = ends_of(moved, mine);
  Group& group = *place_.group;
  ArrayOutcome outcome =
      reached_by_all(moved, group.agree({mine.in(call).at({-1, -1, group.rank()}), call, ends}));
  Index all = 0;
  for (const Moving& each : moved) all += each.plan->layout.elements();
  if (parallel && outcome.elements < all && holds_stream()) stop_stream_short(outcome.status, reach.begin);
  return outcome;
}

ArrayOutcome File::leave_to_tasks(const Moved& moved, bool parallel, const Extent& reach) {
  ArrayOutcome outcome;
  Extent left = reach;
  for (const Moving& each : moved) {
    outcome.elements += left.available(each.plan->bytes()) / each.plan->element;
    left.begin += each.plan->bytes();
    if (!shared_ && !holds_stream()) continue;
    place_.service->threads().submit(key_, [this, tally = each.tally, bytes = each.plan->bytes()] {
      if (!tally->status().is_ok()) task_failed_ = true;
      note(tally->status());
      note(complete(std::min(tally->end(), bytes), bytes));
    });
  }
  outstanding_ = outstanding_ || parallel;
  return outcome;
}

/// Fails an asynchronous read that ended early: no count can tell the caller any more.
Status File::complete(Bytes got, Bytes wanted) const {
  if (got >= wanted) return {};
  return {Code::io, cat(path_, " ended after ", got, " of the ", counted(wanted, "byte"), " of an array")};
}

/// Sets what C's stream shows after a read that ended early: it stands at the end of the file, or has failed.
/// The read began at `begin`. If the file ends before it, C's fread leaves the stream at `begin`.
void File::stop_stream_short(const Status& status, Bytes begin) {
  if (status.is_ok()) {
    flush_before_seek(stream_.stream);
    ::fseeko(stream_.stream, 0, SEEK_END);
    if (::ftello(stream_.stream) < begin) ::fseeko(stream_.stream, begin, SEEK_SET);
    find_end(stream_.stream);
  } else {
    failed_beside_ = true;
    if (stream_.least_end) *stream_.least_end = 0;  // the file's own end counts
  }
  position_.reset();
}

}  // namespace tailrace::files
