// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/pipeline/root/stream_files.hpp"

#include <algorithm>
#include <ranges>

#include "ground/base/log.hpp"

namespace tailrace::pipeline {

StreamFiles::StreamFiles(Context& context, const Opening& opening, Result<std::unique_ptr<Ledger>> ledger,
                         Done on_broken, IsClosed is_closed)
    : context_(context),
      opening_(opening),
      broken_(ledger.status()),
      ledger_(ledger.is_ok() ? *std::move(ledger) : nullptr),
      on_broken_(std::move(on_broken)),
      is_closed_(std::move(is_closed)) {
  if (!ledger_) return;
  for (const std::string& path : ledger_->left_open()) {
    files_[path].left_open = true;
    current_path_ = path;
  }
}

Result<std::string> StreamFiles::enter(std::int64_t lead) {
  Result<std::string> path = ledger_->path_of(lead);
  // A step that has no file does not end the file of the one before.
  if (path.is_ok()) current_path_ = *path;
  return path;
}

void StreamFiles::run(const std::string& path, std::function<Status(Ledger&)> job, Done done) {
  context_.commit(
      opening_.name(), path, [this, job = std::move(job)](int) { return job(*ledger_); }, std::move(done));
}

bool StreamFiles::is_ready(const std::string& path, std::int64_t lead, Bytes expected, Done done) {
  File& file = files_[path];
  if (file.cutting) return false;
  if (file.begun) return true;
  if (file.beginning || finishes()) return false;
  file.beginning = true;
  auto start = std::make_shared<Begun>();
  run(
      path,
      [path, lead, expected, start](Ledger& ledger) -> Status {
        Result<Begun> begun = ledger.begin_file(path, lead, expected);
        TR_TRY(begun.status());
        *start = std::move(*begun);
        return {};
      },
      [this, path, start, done = std::move(done)](const Status& status) {
        File& begun = files_[path];
        begun.beginning = false;
        begun.begun = status.is_ok();
        if (begun.begun) context_.count_file(opening_.name(), path, start->end);
        begun.end = begun.committed = start->end;
        begun.start = std::move(*start);
        done(status);
      });
  return false;
}

void StreamFiles::commit(const StepEntry& entry, const Status& synced, Done done) {
  const std::string& path = entry.path;
  const auto cut = std::make_shared<Status>();
  run(
      path,
      [entry, synced, committed = files_[path].committed, cut](Ledger& ledger) -> Status {
        Status status = synced;
        if (status.is_ok()) status = ledger.commit(entry);
        // Bytes that the index does not name must not stay in the file. A failure to cut them adds nothing to
        // the verdict.
        if (!status.is_ok()) *cut = ledger.cut(entry.path, committed);
        return status;
      },
      [this, path, cut, done = std::move(done)](const Status& status) {
        files_[path].broken = first_cause(files_[path].broken, *cut);
        done(status);
      });
}

void StreamFiles::check_owner(const std::string& path, Done done) {
  run(
      path, [path](Ledger& ledger) { return ledger.check_owner(path); }, std::move(done));
}

void StreamFiles::cut(const std::string& path, Bytes size, std::function<void()> done) {
  run(
      path, [path, size](Ledger& ledger) { return ledger.cut(path, size); },
      [this, path, done = std::move(done)](const Status& status) {
        files_[path].broken = first_cause(files_[path].broken, status);
        done();
      });
}

bool StreamFiles::try_all(bool whole_ones) {
  bool any = false;
  for (auto& [path, each] : unfinished_) {
    each.try_now = !each.is_whole || (whole_ones && !each.only_waits());
    any = each.try_now || any;
  }
  return any;
}

bool StreamFiles::try_again(std::int64_t step) {
  if (tried_for_ == step) return false;
  tried_for_ = step;
  return try_all(false);
}

Status StreamFiles::not_whole() const {
  for (const auto& [path, each] : unfinished_) {
    if (!each.is_whole)
      return each.why.in(cat("the step follows in another file only when ", path, " is finished"));
  }
  return {};
}

bool StreamFiles::finishes() const {
  return finishing_ || std::ranges::any_of(unfinished_ | std::views::values, &Unfinished::try_now) ||
         std::ranges::any_of(files_, [this](const auto& file) {
           const auto& [path, each] = file;
           return (each.begun || each.beginning || each.left_open) && is_complete(path, each, false);
         });
}

bool StreamFiles::advance(bool closing, bool knows_failures) {
  if (finishing_) return false;
  knows_failures_ = knows_failures;
  for (auto& [path, each] : unfinished_) {
    if (!each.try_now && !(knows_failures && each.only_waits())) continue;
    each.try_now = false;
    start_finish(path, true, each.lacks_steps);
    return true;
  }
  for (auto file = files_.begin(); file != files_.end(); ++file) {
    if (!is_complete(file->first, file->second, closing)) continue;
    if (file->second.beginning || file->second.cutting || !is_closed_(file->second.start.path)) return false;
    const std::string path = file->first;
    const bool begun = file->second.begun;
    const bool left_open = file->second.left_open;
    const bool lacks_steps = file->second.lacks_steps;
    files_.erase(file);
    if (!begun && !left_open) return true;
    try_all(true);
    start_finish(path, begun, lacks_steps);
    return true;
  }
  if (!closing || tried_last_) return false;
  tried_last_ = true;
  return try_all(true);
}

Status StreamFiles::unfinished() const {
  for (const auto& [path, each] : unfinished_) {
    if (!each.why.is_ok()) return each.why;
  }
  return {};
}

bool StreamFiles::are_over() const { return tried_last_ && files_.empty() && !finishes(); }

void StreamFiles::start_finish(const std::string& path, bool begun, bool lacks_steps) {
  finishing_ = true;
  const bool announces = knows_failures_ || !lacks_steps;
  const auto is_whole = std::make_shared<bool>(false);
  run(
      path,
      [path, announces, is_whole](Ledger& ledger) -> Status {
        TR_TRY(ledger.finish_file(path));
        *is_whole = true;
        return announces ? ledger.announce(path) : Status();
      },
      [this, path, begun, lacks_steps, announces, is_whole](const Status& status) {
        on_finished(path, begun, {status, *is_whole, false, lacks_steps}, announces);
      });
}

void StreamFiles::on_finished(const std::string& path, bool begun, Unfinished now, bool announced) {
  finishing_ = false;
  const Status status = now.why;
  if (status.is_ok() && !begun && !context_.written.contains(path))
    context_.count_file(opening_.name(), path, 0);
  if (status.is_ok() && announced) {
    unfinished_.erase(path);
    return;
  }
  Unfinished& each = unfinished_[path];
  const bool is_news = each.why.is_ok();
  now.try_now = each.try_now;
  each = std::move(now);
  if (status.is_ok()) return;
  // The stream's end tells the failure too, but a killed run never comes there.
  const std::string name = opening_.name();
  const bool names_it = status.text().starts_with(name + ":");
  if (is_news) log(LogLevel::error, names_it ? status.text() : status.in(name).text());
  // A file that this run did not begin was left by the run before. If it fails, and not because of storage,
  // it will fail again: the data is not as the run before has left it, and no step can follow it.
  if (begun || each.is_whole || status.code() == Code::io) return;
  broken_ = status;
  on_broken_(status);
}

}  // namespace tailrace::pipeline
