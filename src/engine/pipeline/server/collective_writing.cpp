// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/pipeline/server/collective_writing.hpp"

#include <algorithm>
#include <utility>

namespace tailrace::pipeline {

using Run = comm::CollectiveFiles::Run;

namespace {

/// The thread that makes the calls, as traces number it: behind all workers.
constexpr std::int64_t calling_thread = 1000;

/// Appends bytes at an offset to the runs. Those that follow the last run's bytes join it.
void append(std::vector<Run>& runs, Bytes& end, Bytes offset, std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  if (runs.empty() || offset != end) runs.push_back({offset, {}});
  runs.back().parts.push_back(bytes);
  end = offset + static_cast<Bytes>(bytes.size());
}

/// Appends the bytes of a patch as often as it says. They are repeated in `memory`, of at most about 1 MiB,
/// to which the run refers again and again.
void append(std::vector<Run>& runs, Bytes& end, const codec::Patch& patch, ByteVector& memory) {
  constexpr Bytes most = Bytes{1} << 20;
  const auto size = static_cast<Bytes>(patch.bytes.size());
  if (size == 0) return;
  const std::int64_t at_once = std::clamp(most / size, Bytes{1}, std::max<Bytes>(patch.times, 1));
  memory.reserve(static_cast<std::size_t>(at_once * size));
  for (std::int64_t i = 0; i < at_once; ++i)
    memory.insert(memory.end(), patch.bytes.begin(), patch.bytes.end());
  for (std::int64_t done = 0; done < patch.times; done += at_once) {
    const std::int64_t times = std::min(at_once, patch.times - done);
    append(runs, end, patch.offset + done * size,
           std::span<const std::byte>(memory).first(static_cast<std::size_t>(times * size)));
  }
}

Bytes bytes_in(const std::vector<Run>& runs) {
  Bytes sum = 0;
  for (const Run& run : runs) sum += storage::bytes_in(run.parts);
  return sum;
}

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

void CollectiveWriting::open(std::int64_t number, const CallPointer& call) {
  const OwnFile file = files_[call->path] = std::make_shared<std::unique_ptr<storage::File>>();
  stream_.context.collective->open(
      call->path, *parse_hints(stream_.opening.hints),
      [file, &target = stream_.context.files.target(), path = call->path]() -> Status {
        Result<std::unique_ptr<storage::File>> opened = target.open(path, storage::OpenMode::existing);
        TR_TRY(opened.status());
        *file = *std::move(opened);
        return {};
      },
      [this, number](const Status& status) { say(number, status); });
}

void CollectiveWriting::write(std::int64_t number, const CallPointer& call) {
  std::vector<Run> runs;
  Bytes end = 0;
  for (const Chunk& chunk : call->chunks) {
    for (std::size_t i = 0; i < chunk.offsets.size(); ++i)
      append(runs, end, chunk.offsets[i], chunk.encoded.records[i].content());
  }
  // As Writing::write() does: a write behind the end of a file that was cut would hide the loss.
  const bool looks = !runs.empty() && written_.try_emplace(call->path, -1).first->second < call->step;
  const Bytes size = bytes_in(runs);
  const auto own = [call, looks, size, &line = stream_.context.line,
                    &target = stream_.context.files.target()]() -> Status {
    call->begin = line.now();
    if (looks) TR_TRY(storage::check_holds(target, call->path, call->committed));
    return size > 0 ? target.count_write(call->path, size) : Status();
  };
  stream_.context.collective->write(
      call->path, std::move(runs), call->calls, own, [this, number, call, size](const Status& status) {
        const std::int64_t now = stream_.context.line.now();
        if (status.is_ok() && size > 0) {
          std::int64_t& last = written_[call->path];
          last = std::max(last, call->step);
          stream_.counters().encoded_bytes += size;
        }
        if (call->begin > 0) {
          stream_.counters().write += now - call->begin;
          stream_.context.statistics.add_span("write", calling_thread, call->begin, now);
        }
        say(number, status);
      });
}

void CollectiveWriting::sync(std::int64_t number, const CallPointer& call) {
  auto written = std::make_shared<Status>();
  if (call->calls > 0) {
    std::vector<Run> runs;
    Bytes end = 0;
    call->repeated.resize(call->patches.size());
    for (std::size_t i = 0; i < call->patches.size(); ++i)
      append(runs, end, call->patches[i], call->repeated[i]);
    const auto own = [call, size = bytes_in(runs), &target = stream_.context.files.target()]() -> Status {
      return size > 0 ? target.count_write(call->path, size) : Status();
    };
    stream_.context.collective->write(call->path, std::move(runs), call->calls, own,
                                      [written](const Status& status) { *written = status; });
  }
  const OwnFile file = files_[call->path];
  stream_.context.collective->sync(
      call->path,
      [call, file, &line = stream_.context.line]() -> Status {
        call->begin = line.now();
        return (*file)->sync();
      },
      [this, number, call, written](const Status& status) {
        const std::int64_t now = stream_.context.line.now();
        if (call->begin > 0) {
          stream_.counters().sync += now - call->begin;
          stream_.context.statistics.add_span("fsync", calling_thread, call->begin, now);
        }
        say(number, written->is_ok() ? status : *written);
      });
}

void CollectiveWriting::close(std::int64_t number, const CallPointer& call) {
  const OwnFile file = std::exchange(files_[call->path], nullptr);
  files_.erase(call->path);
  written_.erase(call->path);
  stream_.context.collective->close(
      call->path,
      [file]() -> Status { return file != nullptr && *file != nullptr ? (*file)->close() : Status(); },
      [this, number](const Status& status) { say(number, status); });
}

void CollectiveWriting::on_over(Unpacker& in) {
  const auto call = calls_.extract(in.get<std::int64_t>());
  if (call.empty()) return;
  for (Chunk& chunk : call.mapped()->chunks) encoding_.forget(chunk.number, std::move(chunk.encoded));
}

}  // namespace tailrace::pipeline
