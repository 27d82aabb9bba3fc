// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/pipeline/server/collective_writing.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "ground/base/log.hpp"
#include "ground/base/text.hpp"

namespace tailrace::pipeline {

namespace {

/// Returns `done`, which until it is destroyed says that a call is under way.
template <typename Done>
auto noted(const Context& context, Done done) {
  return [under_way = context.call_under_way, done = std::move(done)](const auto&... outcome) {
    done(outcome...);
  };
}

}  // namespace

void CollectiveWriting::on_call(Unpacker& in) {
  const auto number = in.get<std::int64_t>();
  auto call = std::make_shared<Call>();
  call->kind = in.get<CallKind>();
  call->path = in.get_text();
  call->step = in.get<std::int64_t>();
  call->calls = in.get<int>();
  (call->kind == CallKind::seek ? call->place : call->committed) = in.get<Bytes>();
  for (auto count = in.get<std::int64_t>(); count > 0; --count) {
    const auto chunk = in.get<std::uint64_t>();
    call->chunks.push_back({chunk, encoding_.hand_on(chunk), in.get_list<Bytes>()});
  }
  for (auto count = in.get<std::int64_t>(); count > 0; --count) {
    const auto offset = in.get<Bytes>();
    const auto bytes = in.get_bytes();
    call->patches.push_back({offset, ByteVector(bytes.begin(), bytes.end()), in.get<std::int64_t>()});
  }
  // The root makes one call of a stream after the other.
  std::erase_if(calls_, [](const auto& each) { return each.second->chunks.empty(); });
  calls_.emplace(number, std::move(call));
}

void CollectiveWriting::make(std::int64_t number) {
  const CallPointer call = calls_.at(number);
  switch (call->kind) {
    case CallKind::open:
      return open(number, call);
    case CallKind::round:
      return write(number, call);
    case CallKind::append:
      return append(number, call);
    case CallKind::seek:
      return seek(number, call);
    case CallKind::sync:
      return sync(number, call);
    case CallKind::close:
      return close(number, call);
  }
}

void CollectiveWriting::say(std::int64_t number, const Status& status) {
  stream_.say(Message::called, number, status);
}

std::string CollectiveWriting::name_of(const std::string& path) const {
  return stream_.context.files.target().system_name(path).value_or(path);
}

void CollectiveWriting::open(std::int64_t number, const CallPointer& call) {
  const OwnFile file = files_[call->path] = std::make_shared<std::unique_ptr<storage::File>>();
  comm::CollectiveFiles& collective = *stream_.context.collective;
  collective.open(
      name_of(call->path), *parse_hints(stream_.opening.hints),
      [file, &target = stream_.context.files.target(), path = call->path,
       needs_name = collective.needs_files_of_system()]() -> Status {
        if (needs_name && !target.system_name(path))
          return {Code::unsupported, cat("open ", path, " on all servers: it is no file of the system")};
        Result<std::unique_ptr<storage::File>> opened = target.open(path, storage::OpenMode::existing);
        TR_TRY(opened.status());
        *file = *std::move(opened);
        return {};
      },
      noted(stream_.context, [this, number, file](const Status& status, bool is_open) {
        if (!is_open) file->reset();
        say(number, status);
      }));
}

void CollectiveWriting::write(std::int64_t number, const CallPointer& call) {
  Runs runs;
  for (const Chunk& chunk : call->chunks) {
    for (std::size_t i = 0; i < chunk.offsets.size(); ++i)
      runs.append(chunk.offsets[i], chunk.encoded.records[i].content());
  }
  // As Writing::write() does: a write behind the end of a file that was cut would hide the loss.
  const bool looks = runs.size > 0 && written_.try_emplace(call->path, -1).first->second < call->step;
  const Bytes size = runs.size;
  const auto own = [call, looks, size, &line = stream_.context.line,
                    &target = stream_.context.files.target()]() -> Status {
    call->begin = line.now();
    if (looks) TR_TRY(storage::check_holds(target, call->path, call->committed));
    return size > 0 ? target.count_write(call->path, size) : Status();
  };
  stream_.context.collective->write(
      name_of(call->path), std::move(runs.list), call->calls, own,
      noted(stream_.context, [this, number, call, size](const Status& status) {
        const std::int64_t now = stream_.context.line.now();
        ++stream_.counters().rounds;
        if (status.is_ok() && size > 0) {
          std::int64_t& last = written_[call->path];
          last = std::max(last, call->step);
          stream_.counters().encoded_bytes += size;
        }
        if (call->begin > 0) {
          stream_.counters().write += stream_.context.time_of_call(call->begin, now);
          stream_.context.statistics.add_span(
              "write", calling_thread, call->begin, now,
              call->chunks.empty() ? nullptr : call->chunks.front().encoded.about);
        }
        say(number, status);
      }));
}

namespace {

using Parts = comm::CollectiveFiles::Run::Parts;

/// Cuts parts that follow one another into pieces that one call can write.
std::vector<Parts> pieces_of(const Parts& parts) {
  std::vector<Parts> pieces;
  Bytes room = 0;
  for (std::span<const std::byte> part : parts) {
    while (!part.empty()) {
      if (room == 0) {
        pieces.emplace_back();
        room = comm::CollectiveFiles::most_at_once;
      }
      const auto taken = part.first(std::min(part.size(), static_cast<std::size_t>(room)));
      pieces.back().push_back(taken);
      room -= static_cast<Bytes>(taken.size());
      part = part.subspan(taken.size());
    }
  }
  return pieces;
}

constexpr std::chrono::milliseconds next_try(250);

/// Returns the key of jobs that wait for appends. Jobs of the file's own key wait for the root's look at it.
executor::Key key_of_appends(const std::string& path) { return executor::key_of(path + "/appends"); }

/// Writes the bytes through a descriptor that nobody else uses: the servers may close theirs meanwhile.
Status write_by_itself(storage::Target& target, const std::string& path, Bytes offset, const Parts& parts) {
  Result<std::unique_ptr<storage::File>> file = target.open(path, storage::OpenMode::existing);
  TR_TRY(file.status());
  TR_TRY((*file)->write_gathered(parts, offset));
  return (*file)->close();
}

}  // namespace

/// Hands the bytes of the call's chunks over: the root goes on as soon as their places are taken.
void CollectiveWriting::append(std::int64_t number, const CallPointer& call) {
  Parts parts;
  for (const Chunk& chunk : call->chunks)
    for (const EncodedRecord& record : chunk.encoded.records) parts.push_back(record.content());
  const bool looks = written_.try_emplace(call->path, -1).first->second < call->step;
  Bytes offset = call->chunks.front().offsets.front();
  for (Parts& each : pieces_of(parts)) {
    const Bytes size = storage::bytes_in(each);
    call->pieces.push_back({offset, std::move(each)});
    offset += size;
  }
  call->size = storage::bytes_in(parts);
  call->not_begun = static_cast<int>(call->pieces.size());
  for (const Piece& piece : call->pieces) {
    const bool is_first = &piece == &call->pieces.front();
    stream_.context.collective->append(
        name_of(call->path), piece.offset, piece.parts,
        [call, is_first, looks, &line = stream_.context.line,
         &target = stream_.context.files.target()]() -> Status {
          if (is_first) call->begin = line.now();
          return is_first && looks ? storage::check_holds(target, call->path, call->committed) : Status();
        },
        noted(stream_.context,
              [this, number, call](const Status& status) { on_begun(number, call, status); }),
        noted(stream_.context,
              [this, number, call, &piece](const Status& status) { on_piece(number, call, piece, status); }));
  }
}

/// Tells the root that the places of all pieces are taken, or what became of the first that has failed.
void CollectiveWriting::on_begun(std::int64_t number, const CallPointer& call, const Status& status) {
  if (call->begun.is_ok()) call->begun = status;
  if (status.is_ok()) ++call->under_way;
  if (--call->not_begun > 0) return;
  if (call->begun.is_ok()) say(number, call->begun);
  end_append(number, call);
}

/// If the MPI has failed to write a piece, this server writes the whole piece itself at the same place, and
/// waits for room as the stream's policy says: an error of MPI-IO mostly tells neither that storage is full
/// nor how much was written. If the turn has failed, the step is lost, and the server writes nothing.
void CollectiveWriting::on_piece(std::int64_t number, const CallPointer& call, const Piece& piece,
                                 const Status& status) {
  const auto end = [this, number, call](const Status& written) {
    if (call->written.is_ok()) call->written = written;
    --call->under_way;
    end_append(number, call);
  };
  if (status.is_ok() || !call->begun.is_ok()) return end(status);
  log(LogLevel::info, cat(status.text(), "; the server writes the bytes by itself"));
  Patience patience = stream_.opening.policy.patience_for_space(next_try);
  patience.limit -= std::chrono::nanoseconds(stream_.context.line.now() - call->begin);
  const auto tries = std::make_shared<std::int64_t>(0);
  stream_.context.executor.wait(
      key_of_appends(call->path),
      [patience, tries, call, &piece, &target = stream_.context.files.target()](int) {
        return try_patiently(patience, [&] {
          ++*tries;
          return write_by_itself(target, call->path, piece.offset, piece.parts);
        });
      },
      [this, tries, end](const Status& written) {
        stream_.counters().space_waits += *tries - 1;
        end(written);
      });
}

/// Tells storage of the bytes that the MPI has written. A throttle that holds them up does not hold up the
/// turns of other servers.
void CollectiveWriting::count_append(std::int64_t number, const CallPointer& call) {
  Patience patience = stream_.opening.policy.patience_for_space(next_try);
  patience.limit -= std::chrono::nanoseconds(stream_.context.line.now() - call->begin);
  stream_.context.executor.wait(
      key_of_appends(call->path),
      [patience, call, &target = stream_.context.files.target()](int) {
        return try_patiently(patience, [&] { return target.count_write(call->path, call->size); });
      },
      [this, number, call](const Status& status) {
        if (call->written.is_ok()) call->written = status;
        call->is_counted = true;
        end_append(number, call);
      });
}

/// Gives the chunks back once nothing of them is under way, and tells the root of each, unless their turn has
/// failed: then the root says when they are not needed.
void CollectiveWriting::end_append(std::int64_t number, const CallPointer& call) {
  if (call->not_begun > 0 || call->under_way > 0) return;
  if (!call->begun.is_ok() && !std::exchange(call->is_refused, true)) say(number, call->begun);
  if (!call->begun.is_ok() && !call->is_given_up) return;
  if (call->begun.is_ok() && !call->is_counted) return count_append(number, call);
  const std::int64_t now = stream_.context.line.now();
  if (call->begin > 0) {
    stream_.counters().write += stream_.context.time_of_call(call->begin, now);
    stream_.context.statistics.add_span("write", calling_thread, call->begin, now,
                                        call->chunks.front().encoded.about);
  }
  calls_.erase(number);
  if (call->begun.is_ok() && call->written.is_ok()) {
    std::int64_t& last = written_[call->path];
    last = std::max(last, call->step);
    stream_.counters().encoded_bytes += call->size;
  }
  for (Chunk& chunk : std::exchange(call->chunks, {})) {
    encoding_.forget(chunk.number, std::move(chunk.encoded));
    if (call->begun.is_ok()) stream_.say(Message::written, call->step, call->written);
  }
}

void CollectiveWriting::seek(std::int64_t number, const CallPointer& call) {
  stream_.context.collective->seek(
      name_of(call->path), call->place,
      noted(stream_.context, [this, number](const Status& status) { say(number, status); }));
}

/// Queues the write of the patches.
void CollectiveWriting::write_patches(const CallPointer& call) {
  call->repeated = std::make_unique<RepeatedBytes>(call->patches);
  Runs runs;
  for (const codec::Patch& patch : call->patches) call->repeated->append(runs, patch);
  const auto own = [call, size = runs.size, &target = stream_.context.files.target()]() -> Status {
    return size > 0 ? target.count_write(call->path, size) : Status();
  };
  stream_.context.collective->write(
      name_of(call->path), std::move(runs.list), call->calls, own,
      noted(stream_.context, [call](const Status& status) { call->patched = status; }));
}

/// If memory was short behind the write, make() comes here again.
void CollectiveWriting::sync(std::int64_t number, const CallPointer& call) {
  if (call->calls > 0 && !call->is_patching) write_patches(call);
  call->is_patching = true;
  const OwnFile file = files_[call->path];
  stream_.context.collective->sync(
      name_of(call->path),
      [call, file, &line = stream_.context.line]() -> Status {
        call->begin = line.now();
        return (*file)->sync();
      },
      noted(stream_.context, [this, number, call](const Status& status) {
        const std::int64_t now = stream_.context.line.now();
        if (call->begin > 0) {
          stream_.counters().sync += stream_.context.time_of_call(call->begin, now);
          stream_.context.statistics.add_span("fsync", calling_thread, call->begin, now);
        }
        say(number, call->patched.is_ok() ? status : call->patched);
      }));
}

void CollectiveWriting::close(std::int64_t number, const CallPointer& call) {
  const OwnFile file = files_[call->path];
  stream_.context.collective->close(
      name_of(call->path),
      [file]() -> Status { return file != nullptr && *file != nullptr ? (*file)->close() : Status(); },
      noted(stream_.context, [this, number](const Status& status) { say(number, status); }));
  files_.erase(call->path);
  written_.erase(call->path);
}

void CollectiveWriting::on_over(Unpacker& in) {
  const auto number = in.get<std::int64_t>();
  const auto found = calls_.find(number);
  if (found == calls_.end()) return;
  const CallPointer call = found->second;
  if (call->kind == CallKind::append) {
    call->is_given_up = true;
    return end_append(number, call);
  }
  calls_.erase(found);
  for (Chunk& chunk : call->chunks) encoding_.forget(chunk.number, std::move(chunk.encoded));
}

}  // namespace tailrace::pipeline
