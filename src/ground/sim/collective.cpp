// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/sim/collective.hpp"

#include <algorithm>
#include <bit>
#include <memory>
#include <stdexcept>
#include <utility>

#include "ground/base/text.hpp"

namespace tailrace::sim {

SimCollectiveFiles::~SimCollectiveFiles() {
  meetings_.present_[process_] = nullptr;
  ++meetings_.meeting_;
  meetings_.is_meeting_ = false;
}

void SimCollectiveFiles::open(std::string path, comm::Hints hints, Own own, Opened opened) {
  std::string what = cat("open ", path);
  for (const auto& [key, value] : hints) what += cat(" ", key, "=", value);
  const auto part = [this, path](bool all_are_ready) -> Status {
    if (!all_are_ready) return {};
    Result<std::unique_ptr<storage::File>> file = target_->open(path, storage::OpenMode::existing);
    TR_TRY(file.status());
    files_[path] = *std::move(file);
    meetings_.pointers_[path] = 0;
    return {};
  };
  auto call = std::make_shared<Call>(Call{std::move(what), std::move(own), part, {}});
  call->path = path;
  call->is_open = std::make_shared<bool>(false);
  call->done = [opened = std::move(opened), is_open = call->is_open](const Status& status) {
    opened(status, *is_open);
  };
  calls_.push_back(std::move(call));
  meetings_.look();
}

Status SimCollectiveFiles::write_now(const std::string& path, const std::vector<Run>& runs) const {
  for (const Run& run : runs) TR_TRY(files_.at(path)->write_gathered(run.parts, run.offset));
  return {};
}

void SimCollectiveFiles::write(std::string path, std::vector<Run> runs, int calls, Own own, Done done) {
  int needed = 0;
  for (const Run& run : runs) needed += calls_for(storage::bytes_in(run.parts));
  if (needed > calls)
    throw std::logic_error(
        cat("a server needs ", needed, " calls to write ", path, ", and all make ", calls));
  auto call = std::make_shared<Call>();
  call->what = cat("write ", path, " in ", calls, " calls");
  const auto ready = std::make_shared<bool>(false);
  call->own = [own = std::move(own), ready]() -> Status {
    TR_TRY(own());
    *ready = true;
    return {};
  };
  call->part = [this, path, runs = std::move(runs), ready](bool) -> Status {
    if (files_.count(path) == 0) return {Code::state, cat("write ", path, ": it is not open")};
    return *ready ? write_now(path, runs) : Status();
  };
  call->done = std::move(done);
  calls_.push_back(std::move(call));
  meetings_.look();
}

void SimCollectiveFiles::append(std::string path, Bytes offset, Run::Parts parts, Own own, Done started,
                                Done done) {
  auto call = std::make_shared<Call>();
  call->what = cat("append to ", path);
  call->append = [this, path, offset, parts = std::move(parts), own = std::move(own),
                  done = std::move(done)]() -> Status {
    TR_TRY(own());
    if (files_.count(path) == 0) return {Code::state, cat("append to ", path, ": it is not open")};
    Bytes& pointer = meetings_.pointers_[path];
    if (pointer != offset)
      throw std::logic_error(
          cat("a server appends to ", path, " at ", offset, ", and the shared file pointer is at ", pointer));
    pointer += storage::bytes_in(parts);
    const auto write = [this, path, offset, parts] { return files_.at(path)->write_gathered(parts, offset); };
    appends_.push_back({write, done});
    return {};
  };
  call->done = std::move(started);
  calls_.push_back(std::move(call));
  meetings_.look();
}

/// Makes the append in front, if it is one, at a moment of its own.
void SimCollectiveFiles::begin_append() {
  if (is_appending_ || calls_.empty() || !calls_.front()->append) return;
  is_appending_ = true;
  Meetings& all = meetings_;
  const auto is_there = [&all, i = process_, me = this] { return all.present_[i] == me; };
  all.scheduler_.after(all.scheduler_.step_delay(), [this, &all, is_there] {
    if (!is_there()) return;
    const std::shared_ptr<Call> call = calls_.front();
    calls_.pop_front();
    is_appending_ = false;
    const Status begun = call->append();
    made_.emplace_back(std::move(call->done), begun);
    wake_();
    if (begun.is_ok()) {
      all.scheduler_.after(all.scheduler_.step_delay(), [this, is_there] {
        if (is_there()) end_append();
      });
    }
    all.look();
  });
}

/// Makes the write of the oldest append that is under way, if there still is one.
void SimCollectiveFiles::end_append() {
  if (appends_.empty()) return;
  const Append append = std::move(appends_.front());
  appends_.pop_front();
  made_.emplace_back(append.done, append.write());
  wake_();
}

/// A call that all make waits for the appends of all files.
void SimCollectiveFiles::end_appends() {
  while (!appends_.empty()) end_append();
}

void SimCollectiveFiles::seek(std::string path, Bytes offset, Done done) {
  const auto part = [this, path, offset](bool) -> Status {
    if (files_.count(path) == 0) return {Code::state, cat("seek in ", path, ": it is not open")};
    end_appends();
    meetings_.pointers_[path] = offset;
    return {};
  };
  calls_.push_back(std::make_shared<Call>(
      Call{cat("seek ", path, " to ", offset), [] { return Status(); }, part, std::move(done)}));
  meetings_.look();
}

void SimCollectiveFiles::try_appends(std::string path, Done done) {
  const auto part = [this, path](bool) -> Status {
    return meetings_.has_pointers_
               ? Status()
               : Status(Code::io, cat("append to ", path, ": the MPI has no shared file pointers"));
  };
  calls_.push_back(std::make_shared<Call>(
      Call{cat("try appends to ", path), [] { return Status(); }, part, std::move(done)}));
  meetings_.look();
}

void SimCollectiveFiles::sync(std::string path, Own own, Done done) {
  const auto part = [this, path, own = std::move(own)](bool) -> Status {
    if (files_.count(path) == 0) return {Code::state, cat("sync ", path, ": it is not open")};
    end_appends();
    const Status synced = files_.at(path)->sync();
    const Status mine = own();
    return synced.is_ok() ? mine : synced;
  };
  calls_.push_back(
      std::make_shared<Call>(Call{cat("sync ", path), [] { return Status(); }, part, std::move(done)}));
  meetings_.look();
}

void SimCollectiveFiles::close(std::string path, Own own, Done done) {
  const auto part = [this, path, own = std::move(own)](bool) -> Status {
    end_appends();
    auto file = files_.extract(path);
    const Status closed = file.empty() ? Status() : file.mapped()->close();
    const Status mine = own();
    return closed.is_ok() ? mine : closed;
  };
  calls_.push_back(
      std::make_shared<Call>(Call{cat("close ", path), [] { return Status(); }, part, std::move(done)}));
  meetings_.look();
}

bool SimCollectiveFiles::poll() {
  const auto made = std::exchange(made_, {});
  for (const auto& [done, status] : made) done(status);
  return !made.empty();
}

std::unique_ptr<comm::CollectiveFiles> Meetings::join(std::size_t process,
                                                      std::shared_ptr<storage::Target> target,
                                                      std::function<void()> wake) {
  auto files = std::make_unique<SimCollectiveFiles>(*this, process, std::move(target), std::move(wake));
  present_[process] = files.get();
  return files;
}

void Meetings::look() {
  for (SimCollectiveFiles* const each : present_) {
    if (each != nullptr) each->begin_append();
  }
  const auto has_come = [](const SimCollectiveFiles* each) {
    return each != nullptr && !each->calls_.empty() && !each->calls_.front()->append;
  };
  if (is_meeting_ || !std::ranges::all_of(present_, has_come)) return;
  const std::string& what = present_.front()->calls_.front()->what;
  for (const SimCollectiveFiles* const each : present_) {
    if (each->calls_.front()->what != what)
      throw std::logic_error(
          cat("servers meet for different calls: ", what, "; ", each->calls_.front()->what));
  }
  is_meeting_ = true;
  make_own_parts();
}

/// Runs `part` for each server at a moment of its own, and then `then`.
void Meetings::each_at_its_moment(
    const std::function<void(SimCollectiveFiles&, SimCollectiveFiles::Call&)>& part,
    void (Meetings::*then)()) {
  const auto missing = std::make_shared<std::size_t>(present_.size());
  for (std::size_t i = 0; i < present_.size(); ++i) {
    scheduler_.after(scheduler_.step_delay(), [this, part, then, missing, i, meeting = meeting_] {
      if (meeting != meeting_) return;
      part(*present_[i], *present_[i]->calls_.front());
      const Nanoseconds spent = disk_ != nullptr ? disk_->take_spent() : 0;
      scheduler_.after(spent, [this, then, missing, meeting] {
        if (meeting != meeting_ || --*missing > 0) return;
        scheduler_.after(barrier(), [this, then, meeting] {
          if (meeting == meeting_) (this->*then)();
        });
      });
    });
  }
}

/// Returns the time of a barrier of all servers: as many messages one after another as the dissemination
/// barrier has rounds (Hensgen et al., 1988). Without costs it takes none.
Nanoseconds Meetings::barrier() const {
  const Costs* const costs = scheduler_.costs();
  if (costs == nullptr) return 0;
  const auto rounds = static_cast<Nanoseconds>(std::bit_width(present_.size() - 1));
  return rounds * (costs->message_latency + costs->message_gap);
}

void Meetings::make_own_parts() {
  each_at_its_moment([](SimCollectiveFiles&, SimCollectiveFiles::Call& call) { call.status = call.own(); },
                     &Meetings::make_call);
}

void Meetings::make_call() {
  const bool all_are_ready = std::ranges::all_of(
      present_, [](const SimCollectiveFiles* each) { return each->calls_.front()->status.is_ok(); });
  each_at_its_moment(
      [all_are_ready](SimCollectiveFiles&, SimCollectiveFiles::Call& call) {
        const Status made = call.part(all_are_ready);
        if (call.status.is_ok()) call.status = made;
      },
      &Meetings::tell);
}

void Meetings::tell() {
  ++made_;
  is_meeting_ = false;
  const bool is_open_call = present_.front()->calls_.front()->is_open != nullptr;
  const bool has_failed = std::ranges::any_of(
      present_, [](const SimCollectiveFiles* each) { return !each->calls_.front()->status.is_ok(); });
  std::vector<SimCollectiveFiles*> all = present_;
  for (SimCollectiveFiles* const each : all) {
    const std::shared_ptr<SimCollectiveFiles::Call> call = each->calls_.front();
    each->calls_.pop_front();
    // No server has a file open that some cannot open.
    if (is_open_call && has_failed) each->files_.erase(call->path);
    if (is_open_call) *call->is_open = !has_failed;
    each->made_.emplace_back(std::move(call->done), call->status);
  }
  for (SimCollectiveFiles* const each : all) {
    scheduler_.after(scheduler_.step_delay(), [this, i = each->process_, meeting = meeting_] {
      if (meeting == meeting_ && present_[i] != nullptr) present_[i]->wake_();
    });
  }
  look();
}

}  // namespace tailrace::sim
