// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/pipeline/server/collective_writing.hpp"

#include <algorithm>
#include <utility>

namespace tailrace::pipeline {

namespace {

/// The thread that makes the calls, as traces number it: behind all workers.
constexpr std::int64_t calling_thread = 1000;

}  // namespace

void CollectiveWriting::on_call(Unpacker& in) {
  const auto number = in.get<std::int64_t>();
  auto call = std::make_shared<Call>();
  call->kind = in.get<CallKind>();
  call->path = in.get_text();
  call->step = in.get<std::int64_t>();
  call->calls = in.get<int>();
  call->committed = in.get<Bytes>();
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
      [this, number, file](const Status& status, bool is_open) {
        if (!is_open) file->reset();
        say(number, status);
      });
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
  stream_.context.collective->write(name_of(call->path), std::move(runs.list), call->calls, own,
                                    [this, number, call, size](const Status& status) {
                                      const std::int64_t now = stream_.context.line.now();
                                      ++stream_.counters().rounds;
                                      if (status.is_ok() && size > 0) {
                                        std::int64_t& last = written_[call->path];
                                        last = std::max(last, call->step);
                                        stream_.counters().encoded_bytes += size;
                                      }
                                      if (call->begin > 0) {
                                        stream_.counters().write += now - call->begin;
                                        stream_.context.statistics.add_span("write", calling_thread,
                                                                            call->begin, now);
                                      }
                                      say(number, status);
                                    });
}

/// Queues the write of the patches.
void CollectiveWriting::write_patches(const CallPointer& call) {
  call->repeated = std::make_unique<RepeatedBytes>(call->patches);
  Runs runs;
  for (const codec::Patch& patch : call->patches) call->repeated->append(runs, patch);
  const auto own = [call, size = runs.size, &target = stream_.context.files.target()]() -> Status {
    return size > 0 ? target.count_write(call->path, size) : Status();
  };
  stream_.context.collective->write(name_of(call->path), std::move(runs.list), call->calls, own,
                                    [call](const Status& status) { call->patched = status; });
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
      [this, number, call](const Status& status) {
        const std::int64_t now = stream_.context.line.now();
        if (call->begin > 0) {
          stream_.counters().sync += now - call->begin;
          stream_.context.statistics.add_span("fsync", calling_thread, call->begin, now);
        }
        say(number, call->patched.is_ok() ? status : call->patched);
      });
}

void CollectiveWriting::close(std::int64_t number, const CallPointer& call) {
  const OwnFile file = files_[call->path];
  stream_.context.collective->close(
      name_of(call->path),
      [file]() -> Status { return file != nullptr && *file != nullptr ? (*file)->close() : Status(); },
      [this, number](const Status& status) { say(number, status); });
  files_.erase(call->path);
  written_.erase(call->path);
}

void CollectiveWriting::on_over(Unpacker& in) {
  const auto call = calls_.extract(in.get<std::int64_t>());
  if (call.empty()) return;
  for (Chunk& chunk : call.mapped()->chunks) encoding_.forget(chunk.number, std::move(chunk.encoded));
}

}  // namespace tailrace::pipeline
