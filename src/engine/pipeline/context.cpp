// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/pipeline/context.hpp"

namespace tailrace::pipeline {

void Context::count_file(const std::string& name, const std::string& path, Bytes end) {
  Written& file = written[path];
  if (file.of != nullptr) {
    --file.of->files;
    file.of->durable_bytes -= file.bytes;
  }
  if (end < file.end) file.bytes = 0;
  file.end = end;
  file.of = &statistics.streams[name];
  ++file.of->files;
  file.of->durable_bytes += file.bytes;
}

/// Lends the file to the calling job alone. Waits while a job of another file closes this one because too
/// many files are open.
OpenFiles::Entry& OpenFiles::take(const std::string& path) {
  std::unique_lock lock(mutex_);
  given_back_.wait(lock, [&] {
    const auto found = files_.find(path);
    return found == files_.end() || !found->second.used;
  });
  Entry& entry = *files_.try_emplace(path).first;
  entry.second.used = true;
  return entry;
}

void OpenFiles::give_back(Entry& entry, bool keep) {
  const std::unique_ptr<storage::Writer> closed = keep ? nullptr : std::move(entry.second.writer);
  const std::lock_guard lock(mutex_);
  entry.second.used = false;
  if (!keep) {
    std::erase(order_, entry.first);
    files_.erase(std::string(entry.first));
  }
  given_back_.notify_all();
}

Status OpenFiles::with(const std::string& path, storage::MakeWriter make,
                       const std::function<Status(Open&)>& body) {
  Entry& entry = take(path);
  const Status status = guarded([&]() -> Status {
    if (entry.second.writer == nullptr) TR_TRY(open(entry, make));
    return body(entry.second);
  });
  give_back(entry, entry.second.writer != nullptr);
  return status;
}

Status OpenFiles::open(Entry& entry, storage::MakeWriter make) {
  make_room();
  Result<std::unique_ptr<storage::Writer>> writer = make(*target_, entry.first);
  TR_TRY(writer.status());
  const std::lock_guard lock(mutex_);
  order_.push_back(entry.first);
  entry.second.writer = std::move(*writer);
  return {};
}

/// Closes one file if too many are open. As files roll over, the oldest has mostly been synced, and closing
/// it can lose nothing. Otherwise it is synced first. A system tells a failed write-back only to the
/// descriptors that were open meanwhile, and some tell it at close only (NFS; close(2)): a descriptor that is
/// opened later would not hear of it.
void OpenFiles::make_room() {
  Entry* oldest = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (order_.size() < most_open) return;
    for (const std::string& path : order_) {
      Entry& entry = *files_.find(path);
      if (entry.second.used) continue;
      if (!entry.second.unsynced) {
        oldest = &entry;
        break;
      }
      if (oldest == nullptr && order_.size() >= most_unsynced) oldest = &entry;
    }
    if (oldest == nullptr) return;
    oldest->second.used = true;
  }
  Open& open = oldest->second;
  Status status = open.unsynced ? open.writer->sync() : Status();
  const Status closed = open.writer->close();
  if (status.is_ok()) status = closed;
  if (!status.is_ok()) {
    const std::lock_guard lock(mutex_);
    lost_.emplace(oldest->first, status);
  }
  give_back(*oldest, false);
}

Status OpenFiles::write(const std::string& path, storage::MakeWriter make, std::int64_t epoch,
                        std::span<const storage::Extent> extents) {
  return with(path, make, [&](Open& open) {
    open.unsynced = true;
    return open.writer->round(epoch, extents);
  });
}

Result<std::unique_ptr<storage::Round>> OpenFiles::begin(const std::string& path, storage::MakeWriter make,
                                                         std::int64_t epoch,
                                                         std::span<const storage::Extent> extents) {
  std::unique_ptr<storage::Round> round;
  TR_TRY(with(path, make, [&](Open& open) -> Status {
    open.unsynced = true;
    round = open.writer->begin(epoch, extents);
    return {};
  }));
  return round;
}

/// No job of another file closes this one meanwhile: only one thread at a time may use a writer's rounds.
Status OpenFiles::finish(const std::string& path, storage::Round& round) {
  Entry& entry = take(path);
  const Status status = guarded([&] { return round.finish(); });
  give_back(entry, entry.second.writer != nullptr);
  return status;
}

Status OpenFiles::sync(const std::string& path, storage::MakeWriter make,
                       const std::function<Status(storage::Writer&)>& how) {
  Status status = with(path, make, [&](Open& open) -> Status {
    {
      const std::lock_guard lock(mutex_);
      if (const auto lost = lost_.find(path); lost != lost_.end()) return lost->second;
    }
    TR_TRY(how(*open.writer));
    open.unsynced = false;
    return {};
  });
  // A descriptor whose fsync failed stays failed. Later writes go through a new one.
  if (!status.is_ok()) forget(path);
  return status;
}

void OpenFiles::forget(const std::string& path) {
  give_back(take(path), false);
  const std::lock_guard lock(mutex_);
  lost_.erase(path);
}

void Context::commit(const std::string& name, const std::string& path, executor::Executor::Job job,
                     executor::Executor::Done done) {
  const auto spent = std::make_shared<std::int64_t>(0);
  executor.wait(
      executor::key_of(path),
      [&line = line, spent, job = std::move(job)](int worker) {
        const std::int64_t begin = line.now();
        Status status = guarded([&]() -> Status { return job(worker); });
        *spent = line.now() - begin;
        return status;
      },
      [&total = statistics.streams[name], spent, done = std::move(done)](const Status& status) {
        total.commit += *spent;
        if (done) done(status);
      });
}

void LaneCursor::finish(std::uint64_t number) {
  need(number) = Need::no;
  release();
}

void LaneCursor::use_up(std::uint64_t number) {
  if (reader_->kept() == nullptr) return finish(number);
  need(number) = Need::for_another_server;
}

void LaneCursor::finish_steps(std::uint32_t stream, std::int64_t step, bool all) {
  if (reader_->kept() == nullptr) return;
  if (const auto torn = torn_.find(stream); torn != torn_.end() && torn->second <= step) {
    torn_.erase(torn);
    reader_->tear(!torn_.empty());
  }
  for (std::uint64_t number = released_; number < scanned_; ++number) {
    const node::Descriptor& descriptor = reader_->at(number);
    if (descriptor.stream != stream || descriptor.step > step) continue;
    if (need(number) == Need::for_another_server && (all || descriptor.kind != node::Descriptor::Kind::close))
      need(number) = Need::no;
  }
  release();
}

void LaneCursor::mark_failed(std::uint32_t stream, std::int64_t step) {
  if (reader_->kept() == nullptr) return;
  for (std::uint64_t number = released_; number < scanned_; ++number) {
    const node::Descriptor& each = reader_->at(number);
    if (each.kind == node::Descriptor::Kind::begin && each.stream == stream && each.step == step)
      reader_->mark_failed(number);
  }
}

bool LaneCursor::make_room() {
  using Kind = node::Descriptor::Kind;
  if (!reader_->is_full() || needs_.empty() || needs_.front() != Need::for_another_server) return false;
  const node::Descriptor oldest = reader_->at(released_);
  if (oldest.kind == Kind::close) return false;
  const auto is_of_step = [&](std::uint64_t number) {
    const node::Descriptor& each = reader_->at(number);
    return each.stream == oldest.stream && each.step == oldest.step && each.kind != Kind::define;
  };
  for (std::uint64_t number = released_; number < scanned_; ++number)
    if (is_of_step(number) && reader_->at(number).kind == Kind::end) return false;
  torn_[oldest.stream] = oldest.step;
  reader_->tear(true);
  for (std::uint64_t number = released_; number < scanned_; ++number) {
    if (need(number) == Need::for_another_server && is_of_step(number)) need(number) = Need::no;
  }
  release();
  return true;
}

void LaneCursor::await_verdict(std::uint32_t stream, std::int64_t step) {
  passed_.push_back({stream, step, early_.erase({stream, step}) != 0});
  tell_settled();
}

/// A failure is told before the fence behind its step: a thread that sees the fence sees the failure, too.
void LaneCursor::note_verdict(std::uint32_t stream, std::int64_t step, bool has_failed) {
  if (has_failed) reader_->tell_failure();
  const auto found = std::ranges::find_if(
      passed_, [&](const Passed& each) { return each.stream == stream && each.number == step; });
  if (found == passed_.end()) {
    early_.insert({stream, step});
    return;
  }
  found->settled = true;
  tell_settled();
}

void LaneCursor::pass_fence(std::int64_t number) {
  if (!passed_.empty() && passed_.back().stream == 0)
    passed_.back().number = number;
  else
    passed_.push_back({0, number, true});
  tell_settled();
}

void LaneCursor::forget_verdicts(std::uint32_t stream) {
  std::erase_if(early_, [&](const auto& each) { return each.first == stream; });
  for (Passed& each : passed_) {
    if (each.stream != stream || each.settled) continue;
    reader_->tell_failure();  // nobody knows how it went
    each.settled = true;
  }
  tell_settled();
}

void LaneCursor::tell_settled() {
  for (; !passed_.empty() && passed_.front().settled; passed_.pop_front()) {
    if (passed_.front().stream == 0) reader_->tell_settled(passed_.front().number);
  }
}

void LaneCursor::release() {
  const std::uint64_t before = released_;
  while (!needs_.empty() && needs_.front() == Need::no) {
    needs_.pop_front();
    ++released_;
  }
  if (released_ != before) reader_->release(released_);
}

}  // namespace tailrace::pipeline
