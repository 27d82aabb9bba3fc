// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/pipeline/root/rounds.hpp"

#include <algorithm>
#include <chrono>
#include <ranges>
#include <thread>

#include "ground/base/log.hpp"
#include "ground/comm/collective/collective_files.hpp"

namespace tailrace::pipeline {

namespace {

using std::chrono::nanoseconds;
constexpr std::chrono::milliseconds look_for_space(250);

/// Joins ranges that follow one another.
void append(std::vector<storage::Range>& ranges, storage::Range range) {
  if (range.size == 0) return;
  if (!ranges.empty() && ranges.back().offset + ranges.back().size == range.offset)
    ranges.back().size += range.size;
  else
    ranges.push_back(range);
}

int calls_for(const std::vector<storage::Range>& ranges) {
  int calls = 0;
  for (const storage::Range& range : ranges) calls += comm::CollectiveFiles::calls_for(range.size);
  return calls;
}

/// Returns all bytes of the chunks, as few ranges in the order of the file.
std::vector<storage::Range> ranges_of(std::span<const Rounds::Chunk> chunks) {
  std::vector<storage::Range> all;
  for (const Rounds::Chunk& chunk : chunks) {
    for (std::size_t i = 0; i < chunk.offsets.size(); ++i)
      all.push_back({chunk.offsets[i], chunk.lengths[i]});
  }
  std::ranges::sort(all, {}, &storage::Range::offset);
  std::vector<storage::Range> ranges;
  for (const storage::Range& each : all) append(ranges, each);
  return ranges;
}

/// Returns the bytes of the patches, in their order: those that follow one another are one range.
std::vector<storage::Range> ranges_of(std::span<const codec::Patch> patches) {
  std::vector<storage::Range> ranges;
  for (const codec::Patch& each : patches)
    append(ranges, {each.offset, std::max<std::int64_t>(each.times, 0) * std::ssize(each.bytes)});
  return ranges;
}

/// Takes room for the ranges. On a full disk the collective writes of Open MPI 4.1.4 (OMPIO) and of
/// MPICH 4.0.2 (ROMIO, with collective buffering) never end: the process whose write fails leaves the others
/// waiting. So the root finds out before.
Status reserve(storage::Target& target, const std::string& path, std::span<const storage::Range> ranges) {
  Result<std::unique_ptr<storage::File>> file = target.open(path, storage::OpenMode::existing);
  TR_TRY(file.status());
  TR_TRY((*file)->reserve(ranges));
  return (*file)->close();
}

}  // namespace

void Rounds::add(const std::string& path, std::int64_t step, Bytes committed, Chunk chunk) {
  waiting_.push_back({path, step, committed, std::move(chunk)});
}

void Rounds::sync(const std::string& path, std::int64_t step, std::vector<codec::Patch> patches, Done done) {
  syncs_.push_back({path, step, std::move(patches), std::move(done)});
}

void Rounds::on_verdict(std::int64_t step, const Status& status) {
  for (File& file : files_ | std::views::values) {
    if (file.undecided.erase(step) > 0 && !status.is_ok()) file.has_failed = true;
    if (file.has_failed && file.undecided.empty() && file.is_open) file.is_to_close = true;
  }
}

bool Rounds::is_closed(const std::string& path) {
  const auto file = files_.find(path);
  if (file == files_.end()) return true;
  if (file->second.is_open) {
    file->second.is_to_close = true;
    return false;
  }
  if (call_ && call_->path == path) return false;
  files_.erase(file);
  return true;
}

bool Rounds::are_closed() {
  std::vector<std::string> paths;
  for (const auto& [path, file] : files_) paths.push_back(path);
  bool closed = true;
  for (const std::string& path : paths) closed = is_closed(path) && closed;
  return closed;
}

bool Rounds::advance() { return !call_ && (begin_close() || begin_sync() || begin_round()); }

bool Rounds::begin_close() {
  const auto file = std::ranges::find_if(files_, [](const auto& each) { return each.second.is_to_close; });
  if (file == files_.end()) return false;
  call_ = {.kind = CallKind::close, .path = file->first};
  tell({}, 0, 0);
  ask_for_turn();
  return true;
}

bool Rounds::begin_sync() {
  if (syncs_.empty()) return false;
  Sync next = std::move(syncs_.front());
  syncs_.pop_front();
  call_ = {.kind = CallKind::sync,
           .path = next.path,
           .step = next.step,
           .patches = std::move(next.patches),
           .done = std::move(next.done)};
  call_->began = context_.line.now();
  if (call_->patches.empty())
    on_prepared({});
  else
    prepare(ranges_of(call_->patches), false, nanoseconds(0));
  return true;
}

/// Has the servers open the file of the next round, or begins the round.
bool Rounds::begin_round() {
  if (waiting_.empty()) return false;
  const Waiting& first = waiting_.front();
  File& file = files_[first.path];
  if (!file.is_open) {
    file.has_failed = false;
    call_ = {.kind = CallKind::open, .path = first.path, .step = first.step};
    tell({}, 0, 0);
    ask_for_turn();
    return true;
  }
  const bool appends = opening_.method().appends;
  if (const Bytes place = first.chunk.offsets.front(); appends && file.pointer != place)
    return begin_seek(first.path, first.step, place);
  call_ = {.kind = appends ? CallKind::append : CallKind::round, .path = first.path, .step = first.step};
  call_->began = context_.line.now();
  committed_ = first.committed;
  while (!waiting_.empty() && waiting_.front().step == call_->step) {
    call_->chunks.push_back(std::move(waiting_.front().chunk));
    waiting_.pop_front();
  }
  file.undecided.insert(call_->step);
  prepare(ranges_of(call_->chunks), file.looked < call_->step, nanoseconds(0));
  return true;
}

/// Has the servers set the shared file pointer: in a file that was opened or cut, or after a turn that
/// failed.
bool Rounds::begin_seek(const std::string& path, std::int64_t step, Bytes place) {
  call_ = {.kind = CallKind::seek, .path = path, .step = step};
  call_->place = place;
  tell({}, 0, place);
  ask_for_turn();
  return true;
}

/// Looks at the file and takes room for what the call writes, on a thread that may wait.
void Rounds::prepare(std::vector<storage::Range> ranges, bool looks, nanoseconds pause) {
  Patience patience = opening_.policy.patience_for_space(look_for_space);
  patience.limit -= nanoseconds(context_.line.now() - call_->began);
  context_.commit(
      opening_.name(), call_->path,
      [&target = context_.files.target(), path = call_->path, ranges = std::move(ranges), looks, pause,
       patience, committed = committed_](int) -> Status {
        if (pause > nanoseconds(0)) std::this_thread::sleep_for(pause);
        if (looks) TR_TRY(storage::check_holds(target, path, committed));
        if (ranges.empty()) return {};
        return try_patiently(patience, [&] { return reserve(target, path, ranges); });
      },
      [this](const Status& status) { on_prepared(status); });
}

/// Tells the servers of the call, or that it has its turn once more.
void Rounds::on_prepared(const Status& status) {
  const bool is_told = call_->is_told;
  const bool appends = call_->kind == CallKind::append;
  if (is_told && !status.is_ok()) return end_call();  // with the error of the turn before
  if (!status.is_ok() && (appends || call_->kind == CallKind::round)) return drop_round(status);
  if (!status.is_ok()) {
    const Done done = std::move(call_->done);
    call_.reset();
    return done(status);
  }
  if (appends) {
    files_[call_->path].looked = call_->step;
    return tell_turn();
  }
  if (!is_told && call_->kind == CallKind::round) {
    files_[call_->path].looked = call_->step;
    tell_round();
  } else if (!is_told) {
    tell_sync();
  }
  call_->answered.clear();
  call_->status = {};
  ask_for_turn();
}

void Rounds::tell_sync() {
  const auto part = [&](int server, Packer& out) {
    out.put(std::int64_t{0});
    if (server != context_.me) {
      out.put(std::int64_t{0});
      return;
    }
    out.put(static_cast<std::int64_t>(call_->patches.size()));
    for (const codec::Patch& each : call_->patches)
      out.put(each.offset).put_bytes(each.bytes).put(each.times);
  };
  tell(part, calls_for(ranges_of(call_->patches)), 0);
}

void Rounds::tell_round() {
  std::map<int, std::vector<const Chunk*>> owned;
  for (const Chunk& chunk : call_->chunks) owned[chunk.owner].push_back(&chunk);
  int calls = 0;
  for (const auto& [owner, chunks] : owned) {
    std::vector<storage::Range> ranges;
    for (const Chunk* const chunk : chunks) {
      for (std::size_t i = 0; i < chunk->offsets.size(); ++i)
        append(ranges, {chunk->offsets[i], chunk->lengths[i]});
    }
    calls = std::max(calls, calls_for(ranges));
  }
  const auto part = [&](int server, Packer& out) {
    const std::vector<const Chunk*>& chunks = owned[server];
    out.put(static_cast<std::int64_t>(chunks.size()));
    for (const Chunk* const chunk : chunks)
      out.put(chunk->number).put_list(std::span<const Bytes>(chunk->offsets));
    out.put(std::int64_t{0});
  };
  tell(part, calls, committed_);
}

/// Gives the turn to the owner of the next chunk, for all of its chunks up to that of another owner.
void Rounds::tell_turn() {
  const int owner = call_->chunks.front().owner;
  while (call_->in_turn < call_->chunks.size() && call_->chunks[call_->in_turn].owner == owner)
    ++call_->in_turn;
  const auto part = [this](int, Packer& out) {
    out.put(static_cast<std::int64_t>(call_->in_turn));
    for (std::size_t i = 0; i < call_->in_turn; ++i) {
      const Chunk& chunk = call_->chunks[i];
      out.put(chunk.number).put_list(std::span<const Bytes>(chunk.offsets));
    }
    out.put(std::int64_t{0});
  };
  tell(part, 0, committed_);
  call_->answered.clear();
  call_->status = {};
  context_.send_to_server(owner, Packer().put(Message::turn).put(opening_.stream).put(number_));
}

/// Goes on with the next turn. The owner tells of its chunks itself, unless the turn has failed.
void Rounds::end_turn() {
  const auto turn_end = call_->chunks.begin() + static_cast<std::ptrdiff_t>(call_->in_turn);
  File& file = files_[call_->path];
  const Status status = call_->status;
  for (auto chunk = call_->chunks.begin(); chunk != turn_end; ++chunk)
    for (const Bytes length : chunk->lengths) file.pointer += length;
  const int owner = call_->chunks.front().owner;
  const auto chunks = static_cast<int>(call_->in_turn);
  call_->chunks.erase(call_->chunks.begin(), turn_end);
  call_->in_turn = 0;
  if (status.is_ok()) {
    if (!call_->chunks.empty()) return tell_turn();
    call_.reset();
    return;
  }
  file.pointer = -1;
  context_.send_to_server(owner, Packer().put(Message::call_over).put(opening_.stream).put(number_));
  over_(call_->step, chunks, status);
  drop_round(status);
}

/// Only the owner of an append makes it.
bool Rounds::takes_part(int server) const {
  return call_->kind != CallKind::append || server == call_->chunks.front().owner;
}

/// Tells every server that takes part of the call. `part` packs a server's own chunks and patches. `offset`
/// is where a seek goes; of other calls all bytes before it are durable.
void Rounds::tell(const std::function<void(int server, Packer& out)>& part, int calls, Bytes offset) {
  ++number_;
  call_->is_told = true;
  for (int server = 0; server < context_.roster.servers(); ++server) {
    if (!takes_part(server)) continue;
    Packer out;
    out.put(Message::call).put(opening_.stream).put(number_).put(call_->kind).put_text(call_->path);
    out.put(call_->step).put(calls).put(offset);
    if (part)
      part(server, out);
    else
      out.put(std::int64_t{0}).put(std::int64_t{0});
    context_.send_to_server(server, out);
  }
}

/// Server 0 gives all calls of all streams one order. Otherwise two roots' calls could wait for each other.
void Rounds::ask_for_turn() {
  context_.send_to_server(0, Packer().put(Message::wants_turn).put(opening_.stream).put(number_));
}

/// Gives up a round of which no server knows. Each owner still has its chunks where they were encoded.
void Rounds::drop_round(const Status& why) {
  const Call call = *std::exchange(call_, std::nullopt);
  over_(call.step, 0, why);
  for (const Chunk& chunk : call.chunks) {
    Packer out;
    out.put(Message::place).put(opening_.stream).put(chunk.number).put(false);
    out.put_list(std::span<const Bytes>()).put_text(call.path).put(Bytes{0});
    context_.send_to_server(chunk.owner, out);
  }
}

std::string Rounds::waiting_for() const {
  if (!call_ || !call_->is_told) return {};
  std::string text =
      cat(" ", opening_.name(), ": a collective call on ", call_->path, " is not over on server");
  for (int server = 0; server < context_.roster.servers(); ++server) {
    if (takes_part(server) && call_->answered.count(context_.rank_of_server(server)) == 0)
      text += cat(" ", server);
  }
  return text + ";";
}

void Rounds::on_called(int source, Unpacker& in) {
  if (in.get<std::int64_t>() != number_ || !call_) return;
  const Status status = Status::unpack(in);
  if (call_->status.is_ok()) call_->status = status;
  call_->answered.insert(source);
  const int needed = call_->kind == CallKind::append ? 1 : context_.roster.servers();
  if (static_cast<int>(call_->answered.size()) < needed) return;
  if (call_->kind == CallKind::append) return end_turn();
  if (is_worth_another_try()) return prepare(ranges_of(call_->chunks), false, look_for_space);
  end_call();
}

bool Rounds::is_worth_another_try() const {
  const nanoseconds limit = opening_.policy.patience_for_space(look_for_space).limit;
  return call_->kind == CallKind::round && call_->status.code() == Code::space &&
         context_.line.now() - call_->began < limit.count();
}

void Rounds::end_call() {
  Call call = *std::exchange(call_, std::nullopt);
  File& file = files_[call.path];
  switch (call.kind) {
    case CallKind::append:  // end_turn() ends it
      return;
    case CallKind::open:
      file.is_open = call.status.is_ok();
      if (file.is_open) return;
      [[fallthrough]];
    case CallKind::seek:
      file.pointer = call.kind == CallKind::seek && call.status.is_ok() ? call.place : -1;
      if (call.status.is_ok()) return;
      // Nothing can be written: the chunks that wait are those of one step.
      call.chunks.clear();
      while (!waiting_.empty() && waiting_.front().step == call.step) {
        call.chunks.push_back(std::move(waiting_.front().chunk));
        waiting_.pop_front();
      }
      call_ = std::move(call);
      return drop_round(Status(call_->status));
    case CallKind::round: {
      std::set<int> owners;
      for (const Chunk& chunk : call.chunks) owners.insert(chunk.owner);
      for (const int owner : owners)
        context_.send_to_server(owner, Packer().put(Message::call_over).put(opening_.stream).put(number_));
      return over_(call.step, static_cast<int>(call.chunks.size()), call.status);
    }
    case CallKind::sync:
      // Servers close the file, and open it anew for the next round: a descriptor whose fsync failed stays
      // failed.
      if (!call.status.is_ok()) file.is_to_close = true;
      return call.done(call.status);
    case CallKind::close:
      // Every step in the file has its verdict, and its bytes were synchronised, or are cut off.
      if (!call.status.is_ok()) log(LogLevel::warn, call.status.in("a file was closed").text());
      file.is_open = file.is_to_close = false;
      file.pointer = -1;
      file.looked = -1;
      return;
  }
}

}  // namespace tailrace::pipeline
