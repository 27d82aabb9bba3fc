// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/pipeline/root/commits.hpp"

#include <algorithm>
#include <utility>

#include "ground/base/log.hpp"
#include "ground/storage/objects/places.hpp"

namespace tailrace::pipeline {

namespace {

/// The operations of servers in the Cause of a failed step. They come after the program's own, which count
/// from 0. If several operations fail, the verdict is the error of the first.
enum class Stage : std::int64_t {
  finish_earlier_file = std::int64_t{1} << 40,
  begin_file,
  write,
  sync,
  commit
};

Cause cause_in(std::int64_t step, Stage stage) { return {step, static_cast<std::int64_t>(stage), -1}; }

}  // namespace

Commits::Commits(Context& context, const Opening& opening, const codec::Codec& codec,
                 placement::Placement& placement, Rounds* rounds, Result<std::unique_ptr<Ledger>> ledger)
    : context_(context),
      opening_(opening),
      codec_(codec),
      placement_(placement),
      rounds_(rounds),
      files_(
          context, opening, std::move(ledger),
          [this](const Status& status) {
            for (auto& [number, step] : steps_) step.note(status.at({number, -1, -1}));
          },
          [rounds](const std::string& path) { return rounds == nullptr || rounds->is_closed(path); }),
      homes_(context.homes()),
      settled_before_(opening.first_step) {}

void Commits::on_begin(const SequenceEntry& begin, bool failed_before) {
  Step& step = steps_[begin.step];
  step.entry.step = begin.step;
  step.entry.lead = begin.lead;
  step.previous_lead = begin.interval_start;
  step.status = files_.broken().at({begin.step, -1, -1});
  if (failed_before)
    step.status = Status(Code::io, "it failed on the server before this one").at({begin.step, -1, -1});
  if (step.status.is_ok()) {
    Result<std::string> path = files_.enter(begin.lead);
    step.status = path.status().at({begin.step, -1, opening_.reference});
    if (path.is_ok()) step.entry.path = *std::move(path);
  }
  ++file_of(step).steps;
  begun_ = begin.step;
}

void Commits::note(std::int64_t number, const Status& status) {
  if (const auto found = steps_.find(number); found != steps_.end()) found->second.note(status);
}

void Commits::on_end(std::int64_t number) {
  Step& step = steps_.at(number);
  step.complete = true;
  step.ended_at = context_.line.now();
}

void Commits::on_encoded(std::int64_t number, Bytes size, bool poisoned, const Status& status) {
  Step& step = steps_.at(number);
  step.note(status);
  step.poisoned = step.poisoned || poisoned;
  step.encoded += size;
}

void Commits::on_ended(int source, Unpacker& in) {
  const auto number = in.get<std::int64_t>();
  Step& step = steps_.at(number);
  step.note(Status::unpack(in));
  step.ended.insert(source);
  if (static_cast<int>(step.ended.size()) == homes_) accept(number, step);
}

void Commits::accept(std::int64_t number, Step& step) {
  step.accepted = true;
  Status told = step.status.in(opening_.step_text(step.entry.lead));
  if (!unreported_.empty()) {
    if (!told.is_ok()) unreported_.push_back(told);
    told = unreported_.front();
    unreported_.pop_front();
  }
  step.reported = !step.status.is_ok();
  if (!told.is_ok()) told_ = number;
  send_verdict(VerdictKind::accepted, number, told);
}

/// True if the program knows of every failed step and has begun another step since. The end of a step tells
/// the program at the latest whether the step before it has failed.
bool Commits::program_knows_failures() const { return unreported_.empty() && begun_ > told_ + 1; }

void Commits::on_written(std::int64_t number, const Status& status) {
  Step& step = steps_.at(number);
  step.note(status.at(cause_in(number, Stage::write)));
  --step.chunks;
}

void Commits::on_round(std::int64_t number, int chunks, const Status& status) {
  Step& step = steps_.at(number);
  step.note(status.at(cause_in(number, Stage::write)));
  step.chunks -= chunks;
}

void Commits::on_synced(Unpacker& in) {
  const auto number = in.get<std::int64_t>();
  Step& step = steps_.at(number);
  step.note(Status::unpack(in).at(cause_in(number, Stage::sync)));
  if (--step.syncs == 0) step.state = Step::State::synced;
}

bool Commits::advance() {
  bool moved = settle();
  moved = commit() || moved;
  return finish() || moved;
}

/// Returns true if the server that this one replaces was done with the step. If it has committed the step,
/// the verdict is success. If it has committed only later steps, this step failed there, and fails here too.
bool Commits::was_committed(Step& step, const StreamFiles::File& file) {
  const std::vector<std::int64_t>& leads = file.start.leads;
  const bool passed = !leads.empty() && step.entry.lead <= leads.back();
  if (!passed && !file.start.is_finished) return false;
  step.was_committed = std::ranges::binary_search(leads, step.entry.lead);
  if (!step.was_committed) {
    const std::string why = " has later steps already: this one failed on the server before";
    step.note(Status(Code::io, step.entry.path + why).at(cause_in(step.entry.step, Stage::write)));
  }
  return true;
}

Commits::Fate Commits::fate(bool is_empty) {
  Step& step = steps_.at(turn());
  StreamFiles::File& file = file_of(step);
  step.note(file.broken.at(cause_in(turn(), Stage::begin_file)));
  bool drop = is_empty || !step.status.is_ok() || step.poisoned || step.was_committed;
  const auto begun = [this, number = turn()](const Status& status) {
    note(number, status.at(cause_in(number, Stage::begin_file)));
  };
  if (!drop && !files_.is_ready(step.entry.path, step.entry.lead, placement_.least_step(step.encoded), begun))
    return Fate::waits;
  drop = drop || (!step.has_writes && was_committed(step, file));
  if (drop) return Fate::dropped;
  if (!step.has_writes) placement_.begin_step(step.entry.begin = file.end);
  step.has_writes = true;
  return Fate::written;
}

void Commits::add(int owner, std::span<const RecordEntry> records) {
  Step& step = steps_.at(turn());
  step.writers.insert(owner);
  step.entry.records.insert(step.entry.records.end(), records.begin(), records.end());
}

bool Commits::settle() {
  const auto found = steps_.find(settled_before_);
  if (found == steps_.end()) return false;
  Step& step = found->second;
  if (step.state != Step::State::open || !step.complete || step.chunks > 0 || !step.accepted) return false;
  if (step.poisoned && step.status.is_ok()) {
    step.status = Status(Code::order, "a rank's part of a record is missing").at({found->first, -1, -1});
  }
  // With fixed places, chunks are placed in the order in which they were encoded. The index must not depend
  // on this order. A record without bytes, which no encoder of today makes, would stand where the one behind
  // it begins.
  std::ranges::stable_sort(step.entry.records, {},
                           [](const RecordEntry& each) { return std::pair(each.offset, each.length); });
  if (servers_take_offsets(opening_.method(), codec_)) check_gapless(found->first, step);
  StreamFiles::File& file = file_of(step);
  if (step.status.is_ok() || !step.has_writes) {
    if (step.has_writes) file.end = step.entry.end = placement_.end();
    step.state = Step::State::settled;
    ++settled_before_;
    return true;
  }
  step.state = Step::State::cutting;
  const std::int64_t number = found->first;
  files_.cut(step.entry.path, file.end, [this, number] {
    steps_.at(number).state = Step::State::settled;
    ++settled_before_;
  });
  return true;
}

/// Servers have taken the offsets of the step's records by themselves. The step may stand only if these bytes
/// follow one another from its begin on: bytes that nobody has written would be a part of it for good.
void Commits::check_gapless(std::int64_t number, Step& step) {
  if (!step.status.is_ok() || !step.has_writes) return;
  // All chunks were dropped: nothing was taken.
  step.has_writes = !step.entry.records.empty();
  Bytes end = step.entry.begin;
  for (const RecordEntry& record : step.entry.records) {
    if (record.offset != end) {
      step.note(
          Status(Code::corrupt, cat(step.entry.path, ": a record stands at ", record.offset, ", expected at ",
                                    end, ", behind the one before it: the servers' offsets are wrong"))
              .at(cause_in(number, Stage::write)));
      return;
    }
    end += record.length;
  }
}

bool Commits::commit() {
  if (steps_.empty()) return false;
  const std::int64_t number = steps_.begin()->first;
  Step& step = steps_.begin()->second;
  warn_if_late(step);
  // A run that continues behind a step looks at no file before the step's own. Therefore all earlier files
  // must be whole before the step can count as durable, or as failed.
  if (files_.finishes()) return false;
  switch (step.state) {
    case Step::State::settled:
      if (!step.status.is_ok() || !step.has_writes) {
        decide(number, step);
      } else if (!files_.try_again(number)) {
        step.status = files_.not_whole().at(cause_in(number, Stage::finish_earlier_file));
        if (!step.status.is_ok())
          start_commit(number, step);  // takes back the written bytes
        else if (storage::is_of_files(step.entry.path))
          start_sync(number, step);
        else
          start_check(number, step);
      }
      return true;
    case Step::State::synced:
      start_commit(number, step);
      return true;
    default:
      return false;
  }
}

/// Returns what the step holds beside its records.
std::vector<codec::Patch> Commits::rest_of(Step& step) const {
  std::vector<codec::FinishedStep::Record> put;
  for (RecordEntry& record : step.entry.records)
    put.push_back({record.field, record.level, record.offset - step.entry.begin, record.length,
                   std::exchange(record.parts, {})});
  std::vector<codec::Patch> rest = codec_.rest_of_step(step.entry.lead, step.previous_lead, put);
  for (codec::Patch& patch : rest) patch.offset += step.entry.begin;
  return rest;
}

/// Among whole objects a sync puts the objects of the step, over those of another run that has taken the
/// store meanwhile. In files the bytes are written by then, and commit() looks.
void Commits::start_check(std::int64_t number, Step& step) {
  step.state = Step::State::checking;
  files_.check_owner(step.entry.path, [this, number](const Status& status) {
    Step& checked = steps_.at(number);
    checked.note(status.at(cause_in(number, Stage::sync)));
    checked.status.is_ok() ? start_sync(number, checked) : start_commit(number, checked);
  });
}

/// The first of the writers also writes the rest of the step.
void Commits::start_sync(std::int64_t number, Step& step) {
  step.state = Step::State::syncing;
  std::vector<codec::Patch> rest = rest_of(step);
  const std::string& path = file_of(step).start.path;
  if (rounds_ != nullptr) {
    return rounds_->sync(path, number, std::move(rest), [this, number](const Status& status) {
      Step& synced = steps_.at(number);
      synced.note(status.at(cause_in(number, Stage::sync)));
      synced.state = Step::State::synced;
    });
  }
  step.syncs = static_cast<int>(step.writers.size());
  for (const int server : step.writers) {
    Packer out;
    out.put(Message::sync).put(opening_.stream).put(number).put_text(path);
    out.put(static_cast<std::int64_t>(rest.size()));
    for (const codec::Patch& patch : std::exchange(rest, {}))
      out.put(patch.offset).put_bytes(patch.bytes).put(patch.times);
    context_.send_to_server(server, out);
  }
}

void Commits::start_commit(std::int64_t number, Step& step) {
  step.state = Step::State::committing;
  files_.commit(step.entry, step.status, [this, number](const Status& status) {
    Step& done = steps_.at(number);
    done.note(status.at(cause_in(number, Stage::commit)));
    if (done.status.is_ok())
      file_of(done).committed = done.entry.end;
    else
      take_back(number, done.entry.path, done.status);
    decide(number, done);
  });
}

/// Step `number` failed after later steps had been placed behind it in its file: they fail too, and the next
/// step goes where the failed one began.
void Commits::take_back(std::int64_t number, const std::string& path, const Status& why) {
  StreamFiles::File& file = files_.at(path);
  file.end = file.committed;
  bool settled = false;
  for (auto& [later, step] : steps_) {
    if (later == number || step.entry.path != path || !step.has_writes) continue;
    settled = settled || step.state == Step::State::settled;
    const std::string text = cat("not written, since the step before it in ", path, " failed: ", why.text());
    step.note(Status(why.code(), text).at({later, -1, -1}));
  }
  // A later step that is not settled cuts the file when it settles. One that is settled may have written
  // while the failed step was cut, or afterwards: cut once more.
  if (!settled) return;
  file.cutting = true;
  files_.cut(path, file.committed, [this, path] { files_.at(path).cutting = false; });
}

void Commits::decide(std::int64_t number, Step& step) {
  const Status status = step.status.in(opening_.step_text(step.entry.lead));
  if (!status.is_ok() && !step.reported) unreported_.push_back(status);
  StreamFiles::File& file = file_of(step);
  file.lacks_steps = file.lacks_steps || !status.is_ok();
  --file.steps;
  count(step, status);
  if (rounds_ != nullptr) rounds_->on_verdict(number, status);
  steps_.erase(number);
  send_verdict(VerdictKind::durable, number, status);
}

/// Counts a step that has its verdict, for the report.
void Commits::count(const Step& step, const Status& status) {
  const std::string name = opening_.name();
  Counters& total = context_.statistics.streams[name];
  if (!status.is_ok()) {
    ++total.failed_steps;
    context_.statistics.failed.emplace(name, status.text());
    return;
  }
  ++total.durable_steps;
  std::int64_t bytes = 0;
  for (const RecordEntry& record : step.entry.records) bytes += record.length;
  total.durable_bytes += bytes;
  if (const auto file = context_.written.find(step.entry.path); file != context_.written.end()) {
    file->second.bytes += bytes;
    file->second.end = std::max(file->second.end, step.entry.end);
  }
  context_.statistics.last_durable[name] = opening_.definition.time.at(step.entry.lead);
}

bool Commits::finish() {
  if (finished_) return false;
  const bool closing = closed_ == homes_ && steps_.empty();
  if (files_.advance(closing, closing || program_knows_failures())) return true;
  if (!closing || !files_.are_over() || (rounds_ != nullptr && !rounds_->are_closed())) return false;
  finished_ = true;
  const Status unfinished = files_.unfinished();
  if (!unfinished.is_ok()) context_.statistics.failed.emplace(opening_.name(), unfinished.text());
  send_verdict(VerdictKind::finished, -1, unfinished);
  return true;
}

void Commits::warn_if_late(Step& step) {
  const std::int64_t limit = opening_.policy.deadline_seconds;
  if (limit == 0 || step.warned || !step.complete) return;
  if (context_.line.now() - step.ended_at < limit * 1'000'000'000) return;
  step.warned = true;
  log(LogLevel::warn,
      cat(opening_.step_text(step.entry.lead), " is not durable ", limit, " s after it ended (deadline)"));
}

std::string Commits::waiting_for() const {
  std::string text;
  for (const auto& [number, step] : steps_) {
    if (!step.complete || step.accepted) continue;
    text += cat(" ", opening_.step_text(step.entry.lead), ": not ended by compute rank");
    for (int c = 0; c < context_.roster.computes(); ++c) {
      if (step.ended.count(context_.rank_of_compute(c)) == 0) text += cat(" ", c);
    }
    text += ";";
  }
  return text;
}

void Commits::send_verdict(VerdictKind kind, std::int64_t step, const Status& status) {
  Packer out;
  out.put(Message::decided).put(opening_.stream).put(kind).put(step);
  status.pack(out);
  context_.send_to_servers(out);
}

}  // namespace tailrace::pipeline
