// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <algorithm>
#include <chrono>
#include <thread>

#include "pipeline/stream_server.hpp"
#include "storage/target.hpp"

namespace tailrace::pipeline {

namespace {

struct Spent {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t waits = 0;
  int worker = 0;
};

/// Tries again while there is no space, until `patience` nanoseconds have been spent.
Status write_patiently(Context& context, const std::string& path, storage::Parts parts, Bytes offset,
                       std::int64_t patience, Spent& spent) {
  Status status = context.files.write(path, parts, offset);
  while (status.code() == Code::space && context.line.now() - spent.begin < patience) {
    ++spent.waits;
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
    status = context.files.write(path, parts, offset);
  }
  return status;
}

/// Writes what the patch repeats in pieces of at most 1 MiB, or of one repetition.
Status write_patch(Context& context, const std::string& path, const codec::Patch& patch,
                   std::int64_t patience, Spent& spent) {
  const auto size = static_cast<std::int64_t>(patch.bytes.size());
  if (size == 0) return {};
  const std::int64_t most = std::max<std::int64_t>(1, (std::int64_t{1} << 20) / size);
  ByteVector piece;
  for (std::int64_t i = std::min(most, patch.times); i > 0; --i)
    piece.insert(piece.end(), patch.bytes.begin(), patch.bytes.end());
  for (std::int64_t done = 0; done < patch.times; done += most) {
    const auto length = static_cast<std::size_t>(std::min(most, patch.times - done) * size);
    const std::span<const std::byte> part = std::span<const std::byte>(piece).first(length);
    TR_TRY(write_patiently(context, path, {&part, 1}, patch.offset + done * size, patience, spent));
  }
  return {};
}

}  // namespace

void StreamServer::on_place(Unpacker& in) {
  const auto number = in.get<std::uint64_t>();
  const bool write = in.get<bool>();
  const auto offsets = in.get_list<Bytes>();
  const std::string path = in.get_text();
  const auto committed = in.get<Bytes>();
  Chunk& chunk = chunks_.at(number);
  const auto done = [this, number](const Status& status) {
    Chunk& written = chunks_.at(number);
    const std::int64_t step = written.step;
    held_ -= written.held;
    chunks_.erase(number);
    say(Message::written, step, status);
  };
  if (!write || chunk.held == 0) {
    done({});
    return;
  }
  // A write behind the end of a file that something else has cut would fill the gap with zeros, and hide the
  // loss for good. Each server looks before its first write of a step.
  const std::int64_t step = chunk.step;
  const bool looks = written_.try_emplace(path, -1).first->second < step;
  auto spent = std::make_shared<Spent>();
  auto records = std::make_shared<std::vector<std::shared_ptr<Encoded>>>(std::move(chunk.records));
  context_.executor.wait(
      executor::key_of(path),
      [this, path, offsets, records, spent, looks, committed](int worker) -> Status {
        spent->worker = worker;
        spent->begin = context_.line.now();
        Status status = looks ? storage::check_holds(context_.files.target(), path, committed) : Status();
        const std::int64_t patience = opening_.policy.wait_for_space_seconds * 1'000'000'000;
        for (std::size_t i = 0; i < records->size() && status.is_ok();) {
          // Records that follow one another in the file are written as one.
          const Bytes begin = offsets[i];
          std::vector<std::span<const std::byte>> parts;
          for (Bytes end = begin; i < records->size() && offsets[i] == end; ++i)
            end += static_cast<Bytes>(parts.emplace_back((*records)[i]->bytes).size());
          status = write_patiently(context_, path, parts, begin, patience, *spent);
        }
        spent->end = context_.line.now();
        return status;
      },
      [this, path, step, records, spent, done](const Status& status) {
        if (status.is_ok()) written_[path] = std::max(written_[path], step);
        Counters& total = counters();
        total.write += spent->end - spent->begin;
        total.space_waits += spent->waits;
        for (const auto& encoded : *records) total.encoded_bytes += static_cast<Bytes>(encoded->bytes.size());
        context_.statistics.add_span("write", 1 + spent->worker, spent->begin, spent->end);
        done(status);
      });
}

void StreamServer::on_sync(Unpacker& in) {
  const auto step = in.get<std::int64_t>();
  const std::string path = in.get_text();
  std::vector<codec::Patch> patches(static_cast<std::size_t>(in.get<std::int64_t>()));
  for (codec::Patch& patch : patches) {
    patch.offset = in.get<Bytes>();
    const auto bytes = in.get_bytes();
    patch.bytes.assign(bytes.begin(), bytes.end());
    patch.times = in.get<std::int64_t>();
  }
  auto spent = std::make_shared<Spent>();
  context_.executor.wait(
      executor::key_of(path),
      [this, path, patches = std::move(patches), spent](int worker) -> Status {
        spent->worker = worker;
        spent->begin = context_.line.now();
        const std::int64_t patience = opening_.policy.wait_for_space_seconds * 1'000'000'000;
        Status status;
        for (const codec::Patch& patch : patches) {
          if (status.is_ok()) status = write_patch(context_, path, patch, patience, *spent);
        }
        if (status.is_ok()) status = context_.files.sync(path);
        spent->end = context_.line.now();
        return status;
      },
      [this, step, spent](const Status& status) {
        counters().sync += spent->end - spent->begin;
        context_.statistics.add_span("fsync", 1 + spent->worker, spent->begin, spent->end);
        say(Message::synced, step, status);
      });
}

void StreamServer::on_verdict(VerdictKind kind, std::int64_t step, const Status& status) {
  if (kind == VerdictKind::finished) {
    finished_ = true;
    // The ranks drop what the lanes keep of the stream once they hear that it is finished.
    progress_ = nullptr;
    // A later stream may find another file under the name.
    for (const auto& [path, last] : std::exchange(written_, {})) {
      context_.executor.wait(
          executor::key_of(path),
          [&files = context_.files, path = path](int) -> Status {
            files.forget(path);
            return {};
          },
          [](const Status&) {});
    }
  }
  if (kind == VerdictKind::durable) {
    context_.news = true;
    if (const auto found = steps_.find(step); found != steps_.end()) {
      for (const auto& [c, stamp] : found->second.stamps) {
        if (!status.is_ok() || stamp == 0) continue;
        const double seconds = static_cast<double>(context_.line.now() - stamp) * 1e-9;
        context_.statistics.durable[opening_name_].push_back(seconds);
      }
      found->second.durable = true;
      forget_if_over(step);
    }
  }
  if (kind == VerdictKind::accepted && !status.is_ok() && status.cause().step == step) {
    const auto lane = context_.lanes.find(opening_.reference);
    if (lane != context_.lanes.end()) lane->second.mark_failed(opening_.stream, step);
  }
  for (const int c : homed_) tell(c, kind, step, status);
  if (kind != VerdictKind::durable) return;
  // A server that takes the lanes over begins behind this step. The order matters: it must find a step whole
  // in the lanes whose verdict it has to tell.
  if (progress_ != nullptr) progress_->decided = step + 1;
  for (auto& [c, cursor] : context_.lanes) cursor.finish_steps(opening_.stream, step, false);
}

void StreamServer::tell(int c, VerdictKind kind, std::int64_t step, const Status& status) {
  Packer out;
  out.put(Message::verdict).put(opening_.stream).put(kind).put(step);
  status.pack(out);
  context_.line.send(context_.rank_of_compute(c), out.take());
}

}  // namespace tailrace::pipeline
