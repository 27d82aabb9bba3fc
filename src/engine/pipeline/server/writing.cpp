// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/pipeline/server/writing.hpp"

#include <algorithm>
#include <chrono>

#include "ground/base/log.hpp"
#include "ground/base/text.hpp"
#include "ground/base/thread.hpp"
#include "ground/storage/objects/places.hpp"

namespace tailrace::pipeline {

using storage::Extent;

/// The times and waits of one job.
struct Writing::Spent {
  std::int64_t begin = 0;
  std::int64_t written = 0;  // when the last write had ended
  std::int64_t end = 0;
  std::int64_t waits = 0;
  std::int64_t waiting = 0;  // nanoseconds of these waits
  std::int64_t waiting_in_sync = 0;
  std::int64_t assembling = 0;
  int worker = 0;
};

namespace {

/// The extents of records that have bytes: those that follow one another in the file are one.
struct RecordExtents {
  std::vector<std::span<const std::byte>> parts;
  std::vector<Extent> extents;
};

RecordExtents extents_of(const Placed& placed, std::size_t first_record, std::size_t end_record) {
  RecordExtents all;
  for (std::size_t i = first_record; i < end_record; ++i)
    all.parts.emplace_back(placed.chunk.records[i].content());
  Bytes end = 0;
  for (std::size_t i = 0, first = 0; i < all.parts.size(); ++i) {
    const Bytes offset = placed.offsets[first_record + i];
    if (all.extents.empty() || offset != end) {
      first = i;
      all.extents.push_back({offset, {}});
    }
    all.extents.back().parts = std::span(all.parts).subspan(first, i + 1 - first);
    end = offset + static_cast<Bytes>(all.parts[i].size());
  }
  return all;
}

}  // namespace

/// While storage has no space, tries again until the stream's wait for space is over.
Status Writing::patiently(const std::string& path, Spent& spent, const std::function<Status()>& attempt) {
  Patience patience = stream_.opening.policy.patience_for_space(std::chrono::milliseconds(250));
  patience.limit -= std::chrono::nanoseconds(stream_.context.line.now() - spent.begin);
  std::int64_t tries = 0;
  std::int64_t failed_at = 0;
  Status status = try_patiently(patience, [&] {
    if (tries > 0) spent.waiting += stream_.context.line.now() - failed_at;
    Status tried = attempt();
    const bool waits = tried.code() == patience.code && patience.limit > patience.limit.zero();
    if (waits) failed_at = stream_.context.line.now();
    if (++tries == 1 && waits && !lacks_room_.exchange(true))
      log(LogLevel::warn, cat(tried.text(), "; the stream waits for room (on_full=wait)"));
    return tried;
  });
  if (tries == 1 && status.is_ok() && lacks_room_.exchange(false))
    log(LogLevel::warn, cat(path, ": there is room again"));
  spent.waits += tries - 1;
  return status;
}

/// Writes the extents. With `first`, the first attempt was made already.
Status Writing::write_patiently(const std::string& path, std::int64_t step, std::span<const Extent> extents,
                                Spent& spent, std::optional<Status> first) {
  return patiently(path, spent, [&] {
    return first ? *std::exchange(first, std::nullopt)
                 : stream_.context.files.write(path, stream_.make_writer(), step, extents);
  });
}

/// A place of whole objects takes the bytes in the sync, which is where it lacks room, and gets again what it
/// may not have. In files a sync that failed has lost bytes.
Status Writing::sync_patiently(const std::string& path, Spent& spent) {
  return stream_.context.files.sync(path, stream_.make_writer(), [&](storage::Writer& writer) {
    return storage::is_of_files(path) ? writer.sync() : patiently(path, spent, [&] { return writer.sync(); });
  });
}

Status Writing::write_records(Placed& placed, Spent& spent) {
  std::vector<EncodedRecord>& records = placed.chunk.records;
  for (EncodedRecord& record : records) record.settle();
  const auto is_put_together = [&](std::size_t i) { return static_cast<bool>(records[i].put_together); };
  for (Records next{0, 0}; next.first < records.size(); next.first = next.second) {
    const bool together = is_put_together(next.first);
    while (next.second < records.size() && is_put_together(next.second) == together) ++next.second;
    TR_TRY(together ? write_values(placed, next, spent) : write_bytes(placed, next, spent));
  }
  return {};
}

Status Writing::write_bytes(const Placed& placed, Records records, Spent& spent) {
  const RecordExtents all = extents_of(placed, records.first, records.second);
  return write_patiently(placed.path, placed.chunk.step, all.extents, spent);
}

/// Puts records together in a buffer that stays in the caches, and writes it whenever it is full. On one core
/// this reaches 0.91 of the rate of pwrite from memory that is filled already. Records that are put together
/// whole, and written then, reach 0.71.
Status Writing::write_values(const Placed& placed, Records records, Spent& spent) {
  constexpr Bytes most = Bytes{256} << 10;
  ByteVector& buffer = of_this_thread<ByteVector, Writing>();
  buffer.resize(static_cast<std::size_t>(most));
  Bytes at = 0, filled = 0;  // what is in the buffer goes to `at`
  const auto write_out = [&]() -> Status {
    const auto part = std::span<const std::byte>(buffer).first(static_cast<std::size_t>(filled));
    const Extent extent{at, {&part, 1}};
    at += std::exchange(filled, 0);
    return part.empty() ? Status() : write_patiently(placed.path, placed.chunk.step, {&extent, 1}, spent);
  };
  for (std::size_t i = records.first; i < records.second; ++i) {
    const EncodedRecord& record = placed.chunk.records[i];
    if (placed.offsets[i] != at + filled) {
      TR_TRY(write_out());
      at = placed.offsets[i];
    }
    for (Bytes done = 0; done < record.size;) {
      const Bytes part = std::min(record.size - done, (most - filled) / record.element * record.element);
      const std::int64_t begin = stream_.context.line.now();
      record.put_together(done, done + part, buffer.data() + filled);
      spent.assembling += stream_.context.line.now() - begin;
      done += part;
      filled += part;
      if (most - filled < record.element) TR_TRY(write_out());
    }
  }
  return write_out();
}

void Writing::write(Placed placed, Written done) {
  // If something else has cut the file, a write behind its end would fill the gap with zeros, and hide the
  // loss for good. Therefore each server looks at the file before its first write of a step.
  const bool looks = written_.try_emplace(placed.path, -1).first->second < placed.chunk.step;
  undecided_[placed.path].steps.insert(placed.chunk.step);
  if (stream_.opening.method().is_overlapped)
    return write_overlapped(std::move(placed), looks, std::move(done));
  auto spent = std::make_shared<Spent>();
  auto shared = std::make_shared<Placed>(std::move(placed));
  stream_.context.executor.wait(
      executor::key_of(shared->path),
      [this, shared, spent, looks](int worker) -> Status {
        spent->worker = worker;
        spent->begin = stream_.context.line.now();
        Status status =
            looks ? storage::check_holds(stream_.context.files.target(), shared->path, shared->committed)
                  : Status();
        if (status.is_ok()) status = write_records(*shared, *spent);
        spent->end = stream_.context.line.now();
        return status;
      },
      [this, shared, spent, done = std::move(done)](const Status& status) {
        count(*shared, *spent, status);
        stream_.counters().write += spent->end - spent->begin - spent->assembling - spent->waiting;
        stream_.context.statistics.add_span("write", 1 + spent->worker, spent->begin, spent->end,
                                            shared->chunk.about);
        done(status, std::move(shared->chunk));
      });
}

/// Counts a chunk that is written, or has failed.
void Writing::count(const Placed& placed, const Spent& spent, const Status& status) {
  if (status.is_ok()) {
    std::int64_t& last = written_[placed.path];
    last = std::max(last, placed.chunk.step);
  }
  Counters& total = stream_.counters();
  total.assemble += spent.assembling;
  total.wait += spent.waiting;
  total.space_waits += spent.waits;
  total.encoded_bytes += placed.chunk.size();
}

/// A chunk from the begin of its writes to their end.
struct Writing::Flight {
  Placed placed;
  bool looks = false;
  Written done;
  Spent spent{};
  bool has_begun = false;                      // `status` is that of its writes
  std::unique_ptr<storage::Round> round = {};  // nullptr: none of its writes is under way
  Status status = {};
};

/// Writes two chunks of a file at a time: while one is under way, the next one begins.
void Writing::write_overlapped(Placed placed, bool looks, Written done) {
  constexpr std::size_t most_chunks = 2;
  const std::string path = placed.path;
  const auto one = std::make_shared<Flights>();
  one->push_back({std::move(placed), looks, std::move(done)});
  queue_work(path, one->front().placed.chunk.about, [this, one](Flights& under_way, Flights& ended) {
    while (under_way.size() >= most_chunks) end_oldest(under_way, ended);
    begin(one->front());
    under_way.splice(under_way.end(), *one);
  });
}

/// Queues a job of the file's key, which moves the chunks that are over from `under_way` to `ended`.
void Writing::queue_work(const std::string& path, std::shared_ptr<const Span::About> about, Work work) {
  Overlapped& file = overlapped_[path];
  if (!file.under_way) file.under_way = std::make_shared<Flights>();
  ++file.jobs;
  const auto spent = std::make_shared<Spent>();
  const auto ended = std::make_shared<Flights>();
  stream_.context.executor.wait(
      executor::key_of(path),
      [this, spent, ended, under_way = file.under_way, work = std::move(work)](int worker) -> Status {
        spent->worker = worker;
        spent->begin = stream_.context.line.now();
        work(*under_way, *ended);
        spent->end = stream_.context.line.now();
        return {};
      },
      [this, path, spent, ended, about = std::move(about)](const Status&) {
        stream_.counters().write += spent->end - spent->begin;
        stream_.context.statistics.add_span("write", 1 + spent->worker, spent->begin, spent->end, about);
        on_worked(path, *ended);
      });
}

/// Somebody has to wait for the last chunks: the next chunk's job, if there is one, otherwise a job that does
/// nothing else. It waits for one chunk, so that a chunk that comes meanwhile begins before the next is over.
void Writing::on_worked(const std::string& path, Flights& ended) {
  Overlapped& file = overlapped_.at(path);
  --file.jobs;
  if (file.jobs == 0 && !file.under_way->empty())
    queue_work(path, file.under_way->front().placed.chunk.about,
               [this](Flights& under_way, Flights& over) { end_oldest(under_way, over); });
  else if (file.jobs == 0)
    overlapped_.erase(path);
  for (Flight& flight : ended) {
    count(flight.placed, flight.spent, flight.status);
    Counters& total = stream_.counters();
    total.write -= flight.spent.assembling + flight.spent.waiting;
    if (flight.round) total.way = std::max(total.way, static_cast<std::int64_t>(flight.round->way()));
    flight.done(flight.status, std::move(flight.placed.chunk));
  }
}

/// On a worker. Begins the writes of a chunk, or makes them if values are put together as they are written.
void Writing::begin(Flight& flight) {
  Placed& placed = flight.placed;
  flight.spent.begin = stream_.context.line.now();
  flight.status = guarded([&]() -> Status {
    storage::Target& target = stream_.context.files.target();
    if (flight.looks) TR_TRY(storage::check_holds(target, placed.path, placed.committed));
    std::vector<EncodedRecord>& records = placed.chunk.records;
    for (EncodedRecord& record : records) record.settle();
    const auto is_put_together = [](const EncodedRecord& each) {
      return static_cast<bool>(each.put_together);
    };
    if (std::ranges::any_of(records, is_put_together)) return write_records(placed, flight.spent);
    flight.has_begun = true;
    const RecordExtents all = extents_of(placed, 0, records.size());
    Result<std::unique_ptr<storage::Round>> begun =
        stream_.context.files.begin(placed.path, stream_.make_writer(), placed.chunk.step, all.extents);
    TR_TRY(begun.status());
    flight.round = *std::move(begun);
    return {};
  });
}

/// On a worker. Waits for the oldest chunk. If storage has no space for it, writes it once more by itself.
void Writing::end_oldest(Flights& under_way, Flights& ended) {
  Flight& flight = under_way.front();
  const Placed& placed = flight.placed;
  if (flight.has_begun) {
    bool is_over = false;
    flight.status = guarded([&]() -> Status {
      const Status first =
          flight.round ? stream_.context.files.finish(placed.path, *flight.round) : flight.status;
      is_over = true;
      const RecordExtents all = extents_of(placed, 0, placed.chunk.records.size());
      return write_patiently(placed.path, placed.chunk.step, all.extents, flight.spent, first);
    });
    // Memory was short. The chunk's bytes are given back soon, and the system may still use them.
    if (!is_over) flight.round.reset();
  }
  ended.splice(ended.end(), under_way, under_way.begin());
}

/// Writes the bytes of a patch as often as it says, repeated in memory of at most about 1 MiB.
Status Writing::write_patch(const std::string& path, std::int64_t step, const codec::Patch& patch,
                            Spent& spent) {
  constexpr std::int64_t most = std::int64_t{1} << 20;
  const auto size = static_cast<Bytes>(patch.bytes.size());
  if (size == 0 || patch.times <= 0) return {};
  const std::int64_t at_once = std::clamp(most / size, std::int64_t{1}, patch.times);
  ByteVector repeated;
  if (at_once > 1) {
    repeated.reserve(static_cast<std::size_t>(at_once * size));
    for (std::int64_t i = 0; i < at_once; ++i)
      repeated.insert(repeated.end(), patch.bytes.begin(), patch.bytes.end());
  }
  const std::span<const std::byte> piece = at_once > 1 ? repeated : patch.bytes;
  for (std::int64_t written = 0; written < patch.times; written += at_once) {
    const std::int64_t count = std::min(at_once, patch.times - written);
    const auto part = piece.first(static_cast<std::size_t>(count * size));
    const Extent extent{patch.offset + written * size, {&part, 1}};
    TR_TRY(write_patiently(path, step, {&extent, 1}, spent));
  }
  return {};
}

void Writing::sync(const std::string& path, std::int64_t step, std::vector<codec::Patch> patches, Done done) {
  auto spent = std::make_shared<Spent>();
  stream_.context.executor.wait(
      executor::key_of(path),
      [this, path, step, spent, patches = std::move(patches)](int worker) -> Status {
        spent->worker = worker;
        spent->begin = stream_.context.line.now();
        Status status;
        for (const codec::Patch& patch : patches) {
          if (status.is_ok()) status = write_patch(path, step, patch, *spent);
        }
        spent->written = stream_.context.line.now();
        const std::int64_t before = spent->waiting;
        if (status.is_ok()) status = sync_patiently(path, *spent);
        spent->waiting_in_sync = spent->waiting - std::exchange(spent->waiting, before);
        spent->end = stream_.context.line.now();
        return status;
      },
      [this, spent, done = std::move(done)](const Status& status) {
        Counters& total = stream_.counters();
        total.write += spent->written - spent->begin - spent->waiting;
        total.sync += spent->end - spent->written - spent->waiting_in_sync;
        total.wait += spent->waiting + spent->waiting_in_sync;
        total.space_waits += spent->waits;
        stream_.context.statistics.add_span("fsync", 1 + spent->worker, spent->begin, spent->end);
        done(status);
      });
}

void Writing::on_verdict(std::int64_t step, const Status& status) {
  for (auto file = undecided_.begin(); file != undecided_.end();) {
    auto& [path, undecided] = *file;
    if (undecided.steps.erase(step) > 0 && !status.is_ok()) undecided.has_failed = true;
    if (!undecided.steps.empty()) {
      ++file;
      continue;
    }
    if (undecided.has_failed) forget(path);
    file = undecided_.erase(file);
  }
}

void Writing::forget(const std::string& path) {
  stream_.context.commit(stream_.name, path,
                         [&files = stream_.context.files, path](int) -> Status {
                           files.forget(path);
                           return {};
                         },
                         {});
}

void Writing::forget_files() {
  for (const auto& [path, last] : std::exchange(written_, {})) forget(path);
}

}  // namespace tailrace::pipeline
