// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "pipeline/stream_root.hpp"

#include <algorithm>
#include <ranges>

#include "base/log.hpp"

namespace tailrace::pipeline {

using node::Descriptor;
using Kind = SequenceEntry::Kind;

namespace {

/// Servers do these operations for a step after the program's own, which count from 0. If several operations
/// fail, the verdict is the error of the first.
enum class Stage : std::int64_t {
  finish_earlier_file = std::int64_t{1} << 40,
  begin_file,
  write,
  sync,
  commit
};

Cause cause_in(std::int64_t step, Stage stage) { return {step, static_cast<std::int64_t>(stage), -1}; }

}  // namespace

StreamRoot::StreamRoot(Context& context, const Opening& opening, const codec::Codec& codec,
                       Result<std::unique_ptr<Ledger>> ledger)
    : context_(context),
      opening_(opening),
      codec_(codec),
      broken_(ledger.status()),
      ledger_(ledger.is_ok() ? *std::move(ledger) : nullptr),
      homes_(context.homes()),
      previous_lead_(opening.previous_lead),
      placement_(placement::make_placement(codec)),
      settled_before_(opening.first_step) {
  for (std::size_t i = 0; i < opening.fields.size(); ++i) {
    const auto levels = static_cast<double>(opening.fields[i].levels.values.size());
    step_cost_ += codec.cost(static_cast<int>(i)) * levels;
  }
  // A server gets several runs of records a step, so that the first is written while the next is encoded.
  chunk_cost_ = step_cost_ / (4.0 * context.roster.servers());
  if (!ledger_) return;
  for (const std::string& path : ledger_->left_open()) {
    files_[path].left_open = true;
    current_path_ = path;
  }
}

void StreamRoot::on_reference(const Descriptor& descriptor, std::vector<SequenceEntry>& fresh) {
  switch (descriptor.kind) {
    case Descriptor::Kind::begin:
    case Descriptor::Kind::begin_failed:
      begin_step(descriptor, fresh);
      break;
    case Descriptor::Kind::piece:
      add_record(descriptor, fresh);
      break;
    case Descriptor::Kind::end: {
      close_chunk(fresh);
      Step& step = steps_.at(current_step_);
      step.complete = true;
      step.ended_at = context_.line.now();
      fresh.push_back({.kind = Kind::end_step, .step = current_step_});
      previous_lead_ = step.entry.lead;
      break;
    }
    case Descriptor::Kind::fence:
      fresh.push_back({.kind = Kind::fence, .step = descriptor.step});
      break;
    case Descriptor::Kind::close:
    case Descriptor::Kind::farewell:
    case Descriptor::Kind::define:
      break;
  }
}

void StreamRoot::begin_step(const Descriptor& descriptor, std::vector<SequenceEntry>& fresh) {
  current_step_ = descriptor.step;
  Step& step = steps_[current_step_];
  step.entry.step = descriptor.step;
  step.entry.lead = descriptor.lead;
  step.status = broken_.at({current_step_, -1, -1});
  if (descriptor.kind == Descriptor::Kind::begin_failed)
    step.status = Status(Code::io, "it failed on the server before this one").at({current_step_, -1, -1});
  if (step.status.is_ok()) {
    Result<std::string> path = ledger_->path_of(descriptor.lead);
    step.status = path.status().at({current_step_, -1, opening_.reference});
    // A step that has no file does not end the file of the one before.
    if (path.is_ok()) current_path_ = step.entry.path = *path;
  }
  ++files_[step.entry.path].steps;
  fresh.push_back({.kind = Kind::begin,
                   .step = current_step_,
                   .lead = descriptor.lead,
                   .interval_start = previous_lead_});
}

void StreamRoot::add_record(const Descriptor& descriptor, std::vector<SequenceEntry>& fresh) {
  const double cost = codec_.cost(descriptor.field);
  const Bytes bound = codec_.encoded_bound(descriptor.field);
  Step& step = steps_.at(current_step_);
  if (chunk_open_ && (open_cost_ + cost > chunk_cost_ * 1.0001 ||
                      open_bound_ + bound > context_.workspace_per_stream() / 2)) {
    close_chunk(fresh);
  }
  if (!chunk_open_) {
    chunk_open_ = true;
    placement_->announce(++chunk_number_);
    current_owner_ = next_owner_;
    next_owner_ = (next_owner_ + 1) % context_.roster.servers();
    Chunk& chunk = chunks_[chunk_number_];
    chunk.step = current_step_;
    chunk.owner = current_owner_;
    ++step.chunks;
    open_cost_ = 0;
    open_bound_ = 0;
  }
  open_cost_ += cost;
  open_bound_ += bound;
  const codec::Statistic& statistic = opening_.fields[static_cast<std::size_t>(descriptor.field)].statistic;
  SequenceEntry entry{.kind = Kind::record,
                      .field = descriptor.field,
                      .level = descriptor.level,
                      .owner = current_owner_,
                      .chunk = chunk_number_,
                      .step = current_step_,
                      .lead = step.entry.lead};
  switch (statistic.since) {
    case codec::Statistic::Since::start:
      entry.interval_start = 0;
      break;
    case codec::Statistic::Since::last_output:
      entry.interval_start = previous_lead_;
      break;
    case codec::Statistic::Since::duration:
      entry.interval_start = std::max<std::int64_t>(0, entry.lead - statistic.duration_seconds);
      break;
  }
  fresh.push_back(entry);
}

void StreamRoot::close_chunk(std::vector<SequenceEntry>& fresh) {
  if (!chunk_open_) return;
  chunk_open_ = false;
  fresh.push_back({.kind = Kind::end_chunk, .chunk = chunk_number_, .step = current_step_});
}

void StreamRoot::on_ended(int source, Unpacker& in) {
  const auto number = in.get<std::int64_t>();
  Step& step = steps_.at(number);
  step.note(Status::unpack(in));
  step.ended.insert(source);
  if (static_cast<int>(step.ended.size()) == homes_) accept(number, step);
}

void StreamRoot::accept(std::int64_t number, Step& step) {
  step.accepted = true;
  Status told = step.status.in(opening_.step_text(step.entry.lead));
  if (!unreported_.empty()) {
    if (!told.is_ok()) unreported_.push_back(told);
    told = unreported_.front();
    unreported_.pop_front();
  }
  step.reported = !step.status.is_ok();
  send_verdict(VerdictKind::accepted, number, told);
}

void StreamRoot::on_encoded(Unpacker& in) {
  const auto number = in.get<std::uint64_t>();
  Chunk& chunk = chunks_.at(number);
  chunk.poisoned = in.get<bool>();
  chunk.status = Status::unpack(in);
  for (auto count = in.get<std::int64_t>(); count > 0; --count) {
    const auto field = in.get<std::int32_t>();
    const auto level = in.get<std::int32_t>();
    const auto length = in.get<Bytes>();
    chunk.records.push_back({field, level, 0, length});
    chunk.size += length;
  }
  Step& step = steps_.at(chunk.step);
  step.note(chunk.status);
  step.poisoned = step.poisoned || chunk.poisoned;
  placement_->on_encoded(number, chunk.step);
}

void StreamRoot::on_written(Unpacker& in) {
  const auto number = in.get<std::int64_t>();
  Step& step = steps_.at(number);
  step.note(Status::unpack(in).at(cause_in(number, Stage::write)));
  --step.chunks;
}

void StreamRoot::on_synced(Unpacker& in) {
  const auto number = in.get<std::int64_t>();
  Step& step = steps_.at(number);
  step.note(Status::unpack(in).at(cause_in(number, Stage::sync)));
  if (--step.syncs == 0) step.state = Step::State::synced;
}

bool StreamRoot::advance() {
  bool moved = place();
  moved = settle() || moved;
  moved = commit() || moved;
  moved = finish_files() || moved;
  return moved;
}

/// A file that waits for space or for its hook does not hold up the others.
void StreamRoot::run_on_ledger(const std::string& path, std::function<Status(Ledger&)> job,
                               std::function<void(const Status&)> done) {
  context_.executor.wait(
      executor::key_of(path), [this, job = std::move(job)](int) { return job(*ledger_); }, std::move(done));
}

/// Returns true if the step's file exists, and begins it if it does not. A file that cannot be begun fails
/// the step.
bool StreamRoot::file_is_ready(Step& step) {
  File& file = files_[step.entry.path];
  if (file.cutting) return false;
  if (file.begun) return true;
  if (file.beginning || finishes_files()) return false;
  file.beginning = true;
  const std::int64_t number = step.entry.step;
  const std::string path = step.entry.path;
  const std::int64_t lead = step.entry.lead;
  Bytes expected = 0;
  for (const auto& [chunk_number, chunk] : chunks_) {
    if (chunk.step != number) continue;
    for (const RecordEntry& record : chunk.records) expected += record.length;
  }
  auto start = std::make_shared<Begun>();
  run_on_ledger(
      path,
      [path, lead, expected, start](Ledger& ledger) -> Status {
        Result<Begun> begun = ledger.begin_file(path, lead, expected);
        TR_TRY(begun.status());
        *start = std::move(*begun);
        return {};
      },
      [this, number, path, start](const Status& status) {
        File& begun = files_[path];
        begun.beginning = false;
        begun.begun = status.is_ok();
        begun.end = begun.committed = start->end;
        begun.start = std::move(*start);
        // The step may have failed meanwhile for another reason, and be forgotten.
        const auto first = steps_.find(number);
        if (first != steps_.end()) first->second.note(status.at(cause_in(number, Stage::begin_file)));
      });
  return false;
}

/// Returns true if the server that this one replaces was done with the step. If it has committed the step,
/// the verdict is success. If it has committed only later steps, this step failed there, and fails here too.
bool StreamRoot::was_committed(Step& step, const File& file) {
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

bool StreamRoot::place() {
  bool moved = false;
  // A step may still fail as a whole. The step behind it gets a place only when that is certain.
  while (const auto number = placement_->next(settled_before_)) {
    Chunk& chunk = chunks_.at(*number);
    Step& step = steps_.at(chunk.step);
    step.note(files_[step.entry.path].broken.at(cause_in(chunk.step, Stage::begin_file)));
    bool drop = !step.status.is_ok() || step.poisoned || chunk.size == 0 || step.was_committed;
    if (!drop && !file_is_ready(step)) break;
    File& file = files_[step.entry.path];
    drop = drop || (!step.has_writes && was_committed(step, file));
    Bytes offset = 0;
    if (drop) {
      placement_->drop(*number);
    } else {
      if (!step.has_writes) placement_->begin_step(step.entry.begin = file.end);
      step.has_writes = true;
      step.writers.insert(chunk.owner);
      placement_->place(*number, chunk.records);
      offset = chunk.records.front().offset;
      step.entry.records.insert(step.entry.records.end(), chunk.records.begin(), chunk.records.end());
    }
    Packer out;
    out.put(Message::place).put(opening_.stream).put(*number);
    out.put(!drop).put(offset).put_text(file.start.path).put(file.committed);
    context_.send_to_server(chunk.owner, out);
    chunks_.erase(*number);
    moved = true;
  }
  return moved;
}

bool StreamRoot::settle() {
  const auto found = steps_.find(settled_before_);
  if (found == steps_.end()) return false;
  Step& step = found->second;
  if (step.state != Step::State::open || !step.complete || step.chunks > 0 || !step.accepted) return false;
  if (step.poisoned && step.status.is_ok()) {
    step.status = Status(Code::order, "a rank's part of a record is missing").at({found->first, -1, -1});
  }
  File& file = files_[step.entry.path];
  if (step.status.is_ok() || !step.has_writes) {
    if (step.has_writes) file.end = step.entry.end = placement_->end();
    step.state = Step::State::settled;
    ++settled_before_;
    return true;
  }
  step.state = Step::State::cutting;
  const std::int64_t number = found->first;
  cut(step.entry.path, file.end, [this, number] {
    steps_.at(number).state = Step::State::settled;
    ++settled_before_;
  });
  return true;
}

bool StreamRoot::commit() {
  if (steps_.empty()) return false;
  const std::int64_t number = steps_.begin()->first;
  Step& step = steps_.begin()->second;
  warn_if_late(step);
  // A run that continues behind a step looks at no file before that step's. Therefore all of them must be
  // whole before the step can count as durable, or as failed.
  if (finishes_files()) return false;
  switch (step.state) {
    case Step::State::settled:
      if (!step.status.is_ok() || !step.has_writes) {
        decide(number, step);
      } else if (!try_unfinished(number)) {
        step.status = not_whole().at(cause_in(number, Stage::finish_earlier_file));
        if (step.status.is_ok())
          start_sync(number, step);
        else
          start_commit(number, step);  // takes back the written bytes
      }
      return true;
    case Step::State::synced:
      start_commit(number, step);
      return true;
    default:
      return false;
  }
}

/// Tries the files that are not whole once more, if that was not done yet for this step. Returns false if
/// there is nothing to try.
bool StreamRoot::try_unfinished(std::int64_t number) {
  if (tried_for_ == number) return false;
  tried_for_ = number;
  bool any = false;
  for (auto& [path, each] : unfinished_) any = (each.try_now = !each.is_whole) || any;
  return any;
}

Status StreamRoot::not_whole() const {
  for (const auto& [path, each] : unfinished_) {
    if (!each.is_whole)
      return each.why.in(cat("the step follows in another file only when ", path, " is finished"));
  }
  return {};
}

void StreamRoot::start_sync(std::int64_t number, Step& step) {
  step.state = Step::State::syncing;
  step.syncs = static_cast<int>(step.writers.size());
  Packer out;
  out.put(Message::sync).put(opening_.stream).put(number).put_text(files_[step.entry.path].start.path);
  for (const int server : step.writers) context_.send_to_server(server, out);
}

void StreamRoot::start_commit(std::int64_t number, Step& step) {
  step.state = Step::State::committing;
  const std::string path = step.entry.path;
  const Bytes committed = files_[path].committed;
  const auto cut = std::make_shared<Status>();
  run_on_ledger(
      path,
      [entry = step.entry, synced = step.status, committed, cut](Ledger& ledger) -> Status {
        Status status = synced;
        if (status.is_ok()) status = ledger.commit(entry);
        // Bytes that the index does not name must not stay in the file. A failure to cut them adds nothing to
        // the verdict.
        if (!status.is_ok()) *cut = ledger.cut(entry.path, committed);
        return status;
      },
      [this, number, path, cut](const Status& status) {
        Step& done = steps_.at(number);
        files_[path].broken = first_cause(files_[path].broken, *cut);
        done.note(status.at(cause_in(number, Stage::commit)));
        if (done.status.is_ok())
          files_[path].committed = done.entry.end;
        else
          take_back(number, path, done.status);
        decide(number, done);
      });
}

/// A step failed after later ones were placed behind it: they fail with it, and the next goes where it began.
void StreamRoot::take_back(std::int64_t number, const std::string& path, const Status& why) {
  File& file = files_[path];
  file.end = file.committed;
  bool settled = false;
  for (auto& [later, step] : steps_) {
    if (later == number || step.entry.path != path || !step.has_writes) continue;
    settled = settled || step.state == Step::State::settled;
    const std::string text = cat("not written, since the step before it in ", path, " failed: ", why.text());
    step.note(Status(why.code(), text).at({later, -1, -1}));
  }
  // A step that settles later is cut then. A step that has settled may have been written while, or after, the
  // failed one was cut.
  if (!settled) return;
  file.cutting = true;
  cut(path, file.committed, [this, path] { files_[path].cutting = false; });
}

/// A file that cannot be cut is broken.
void StreamRoot::cut(const std::string& path, Bytes size, std::function<void()> done) {
  run_on_ledger(
      path, [path, size](Ledger& ledger) { return ledger.cut(path, size); },
      [this, path, done = std::move(done)](const Status& status) {
        files_[path].broken = first_cause(files_[path].broken, status);
        done();
      });
}

void StreamRoot::decide(std::int64_t number, Step& step) {
  const Status status = step.status.in(opening_.step_text(step.entry.lead));
  if (!status.is_ok() && !step.reported) unreported_.push_back(status);
  --files_[step.entry.path].steps;
  steps_.erase(number);
  send_verdict(VerdictKind::durable, number, status);
}

/// Returns true if no step can come to the file any more, and none in it waits for its verdict.
bool StreamRoot::is_complete(const std::string& path, const File& file) const {
  return file.steps == 0 && (is_closing() || path != current_path_);
}

/// Returns true if a file is being finished, or is to be.
bool StreamRoot::finishes_files() const {
  return finishing_ || std::ranges::any_of(unfinished_ | std::views::values, &Unfinished::try_now) ||
         std::ranges::any_of(files_, [this](const auto& file) {
           const auto& [path, each] = file;
           return (each.begun || each.beginning || each.left_open) && is_complete(path, each);
         });
}

bool StreamRoot::finish_files() {
  if (finishing_ || finished_) return false;
  for (auto& [path, each] : unfinished_) {
    if (!each.try_now) continue;
    each.try_now = false;
    start_finish(path, true);
    return true;
  }
  for (auto file = files_.begin(); file != files_.end(); ++file) {
    if (!is_complete(file->first, file->second)) continue;
    if (file->second.beginning || file->second.cutting) return false;
    const std::string path = file->first;
    const bool begun = file->second.begun;
    const bool left_open = file->second.left_open;
    files_.erase(file);
    if (!begun && !left_open) return true;
    for (auto& [other, each] : unfinished_) each.try_now = true;
    start_finish(path, begun);
    return true;
  }
  if (!is_closing()) return false;
  if (!tried_last_ && !unfinished_.empty()) {
    tried_last_ = true;
    for (auto& [path, each] : unfinished_) each.try_now = true;
    return true;
  }
  finished_ = true;
  send_verdict(VerdictKind::finished, -1, unfinished_.empty() ? Status() : unfinished_.begin()->second.why);
  return true;
}

void StreamRoot::start_finish(const std::string& path, bool begun) {
  finishing_ = true;
  const auto is_whole = std::make_shared<bool>(false);
  run_on_ledger(
      path,
      [path, is_whole](Ledger& ledger) -> Status {
        TR_TRY(ledger.finish_file(path));
        *is_whole = true;
        return ledger.announce(path);
      },
      [this, path, begun, is_whole](const Status& status) { on_finished(path, begun, *is_whole, status); });
}

void StreamRoot::on_finished(const std::string& path, bool begun, bool is_whole, const Status& status) {
  finishing_ = false;
  if (status.is_ok()) {
    unfinished_.erase(path);
    return;
  }
  const auto [each, is_first] = unfinished_.try_emplace(path);
  each->second = {status, is_whole, each->second.try_now};
  // The stream's end tells the failure too, but a killed run never comes there.
  const std::string name = opening_.name();
  const bool names_it = status.text().starts_with(name + ":");
  if (is_first) log(LogLevel::error, names_it ? status.text() : status.in(name).text());
  // An error that is not of storage will be the same the next time. The data from which the stream is to go
  // on is not as it was left then: nothing can follow it.
  if (begun || is_whole || status.code() == Code::io) return;
  broken_ = status;
  for (auto& [number, step] : steps_) step.note(status.at({number, -1, -1}));
}

void StreamRoot::warn_if_late(Step& step) {
  const std::int64_t limit = opening_.policy.deadline_seconds;
  if (limit == 0 || step.warned || !step.complete) return;
  if (context_.line.now() - step.ended_at < limit * 1'000'000'000) return;
  step.warned = true;
  log(LogLevel::warn,
      cat(opening_.step_text(step.entry.lead), " is not durable ", limit, " s after it ended (deadline)"));
}

std::string StreamRoot::waiting_for() const {
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

void StreamRoot::send_verdict(VerdictKind kind, std::int64_t step, const Status& status) {
  Packer out;
  out.put(Message::decided).put(opening_.stream).put(kind).put(step);
  status.pack(out);
  context_.send_to_servers(out);
}

}  // namespace tailrace::pipeline
