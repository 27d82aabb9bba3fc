// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/session/reports/reporter.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <optional>
#include <span>
#include <system_error>
#include <thread>
#include <utility>

#include "engine/session/reports/routines.hpp"
#include "engine/session/reports/trace.hpp"
#include "ground/base/log.hpp"
#include "ground/base/text.hpp"
#include "ground/base/thread.hpp"
#include "ground/storage/posix.hpp"
#include "ground/storage/temporary.hpp"

namespace tailrace::session {

namespace {

/// Runs `body` and turns what it throws into a Status: a report must not end the job.
template <typename Body>
Status contained(const Body& body) {
  try {
    return guarded(body);
  } catch (const std::exception& error) {
    return {Code::unsupported, cat("the report cannot be made: ", error.what())};
  }
}

/// Tells whether a file is the one that was written last, without reading it.
using Identity = std::pair<dev_t, ino_t>;
std::optional<Identity> identity_of(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return std::nullopt;
  return Identity(found.st_dev, found.st_ino);
}

/// Writes a new file `name`, which must not exist, and renames it to `path`. Returns which file it is. `make`
/// is called once the file is there, and returns its text. Goes past storage::Target: a report tells of
/// faults and throttles, which would strike it, too.
template <typename Make>
Result<std::optional<Identity>> put_in_place(const std::string& name, const std::string& path,
                                             const Make& make) {
  const int descriptor = ::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (descriptor < 0) return io_error("create", name, errno);
  storage::PosixFile file(std::make_shared<storage::System>(), descriptor, name);
  Status status = contained([&]() -> Status {
    const std::optional<std::string> text = make();
    if (!text) return {Code::state, cat(path, " has changed")};
    TR_TRY(file.write(std::as_bytes(std::span(*text)), 0));
    return file.close();
  });
  const std::optional<Identity> identity = identity_of(name);
  if (status.is_ok() && std::rename(name.c_str(), path.c_str()) != 0)
    status = io_error("rename", path, errno);
  if (!status.is_ok()) {
    std::remove(name.c_str());  // the first error is the one that is told
    return status;
  }
  return identity;
}

/// Replaces the file. There is one writer of `path`: its temporary file always has the same name, so that
/// jobs that are killed leave one at most.
Result<std::optional<Identity>> replace_report(const std::string& path, const std::string& text) {
  const std::string name = path + ".tmp";
  std::remove(name.c_str());  // that of a job that was killed
  return put_in_place(name, path, [&] { return std::optional(text); });
}

/// Tests whether replace_report could write the file, and leaves nothing behind.
Status check_file(const std::string& path) {
  if (path.empty()) return {};
  std::error_code unknown;  // if this fails, opening a file beside it gives the reason
  if (std::filesystem::is_directory(path, unknown)) return io_error("write", path, EISDIR);
  const Result<storage::Temporary> temporary = storage::make_temporary(path);
  TR_TRY(temporary.status());
  if (std::remove(temporary->name.c_str()) != 0) return io_error("remove", temporary->name, errno);
  return {};
}

std::string text_of_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Returns the begin of the file, which says whose report it is.
std::string head_of_file(const std::string& path) {
  std::string head(head_of_report, '\0');
  std::ifstream in(path, std::ios::binary);
  in.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(std::max<std::streamsize>(in.gcount(), 0)));
  return head;
}

constexpr std::chrono::milliseconds most_for_mark(2000);

/// Marks the report, again and again until the writer has replaced it no more for a while. The temporary file
/// is the claim of the one rank that marks. The others wait with it: the first to end the job ends this rank.
void mark_until_quiet(const std::string& path, const std::string& session, const std::string& why) {
  constexpr std::chrono::milliseconds quiet(200);
  constexpr std::chrono::milliseconds pause(10);
  const auto begin = std::chrono::steady_clock::now();
  auto last = begin;  // when the report was that of a running session
  while (std::chrono::steady_clock::now() < std::min(last + quiet, begin + most_for_mark)) {
    if (is_running(head_of_file(path), session)) {
      last = std::chrono::steady_clock::now();
      // A failure is tried again: nobody is left to be told.
      static_cast<void>(put_in_place(cat(path, ".failed-", session), path,
                                     [&] { return as_failed(text_of_file(path), session, why); }));
    }
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace

Status check_report(const Settings& settings) {
  if (!has_reports() && !(settings.report.empty() && settings.trace.empty()))
    return {Code::unsupported, "TAILRACE_REPORT and TAILRACE_TRACE need a build with nlohmann-json"};
  TR_TRY(check_file(settings.report).in("TAILRACE_REPORT"));
  return check_file(settings.trace).in("TAILRACE_TRACE");
}

void fix_places(Settings& settings) {
  for (std::string* path : {&settings.report, &settings.trace}) {
    std::error_code unknown;  // of a directory that is gone: then the file cannot be written either
    if (!path->empty()) *path = std::filesystem::absolute(*path, unknown).string();
  }
}

void mark_failed(const std::string& path, const std::string& session, std::string_view why) {
  struct Shared {
    std::mutex mutex;
    std::condition_variable is_done;
    bool done = false;
  };
  std::shared_ptr<Shared> shared;
  const Status begun = contained([&]() -> Status {
    shared = std::make_shared<Shared>();
    Result<std::thread> thread = start_thread([shared, path, session, why = std::string(why)] {
      // Nobody is left to be told of a failure.
      static_cast<void>(contained([&]() -> Status {
        mark_until_quiet(path, session, why);
        return {};
      }));
      const std::lock_guard lock(shared->mutex);
      shared->done = true;
      shared->is_done.notify_all();
    });
    TR_TRY(thread.status());
    thread->detach();
    return {};
  });
  if (!begun.is_ok()) return;
  std::unique_lock lock(shared->mutex);
  shared->is_done.wait_for(lock, most_for_mark, [&] { return shared->done; });
}

/// The report of a running session. The jobs that write it share this with the reporter.
struct Reporter::Running {
  Running(std::string path, std::string session) : path(std::move(path)), session(std::move(session)) {}

  const std::string path;
  const std::string session;
  std::atomic<bool> is_busy = false;                       // a job writes, or is about to
  std::atomic<std::chrono::nanoseconds> quiet_until = {};  // of the steady clock: nothing is written before
  std::mutex mutex;                                        // of the members below, and of the file
  bool is_over = false;                                    // nothing more is written of the running session
  bool has_warned = false;
  std::optional<Identity> last{};  // the file that was written last

  /// Another rank that has ended the job may have marked the report as failed: then it stays so.
  void write(const std::string& text) {
    const std::lock_guard lock(mutex);
    if (is_over) return;
    if (last && identity_of(path) != last && identity_of(path) && !is_running(head_of_file(path))) {
      is_over = true;
      return;
    }
    const Result<std::optional<Identity>> replaced = replace_report(path, text);
    if (replaced.is_ok()) last = *replaced;
    const Status written = replaced.status();
    if (!written.is_ok() && !std::exchange(has_warned, true))
      log(LogLevel::warn, cat("the report of the running job: ", written.text()));
  }
};

Reporter::Reporter(const Settings& settings, ReportFacts facts, Submit submit)
    : settings_(settings),
      facts_(std::make_shared<const ReportFacts>(std::move(facts))),
      submit_(std::move(submit)),
      running_(std::make_shared<Running>(settings.report, facts_->session)) {}

Reporter::~Reporter() {
  const bool was_written = [this] {
    const std::lock_guard lock(running_->mutex);
    return !std::exchange(running_->is_over, true) && running_->last.has_value();
  }();
  if (was_written) mark_failed(running_->path, running_->session, "the session ended without tr_finalize");
}

namespace {

std::chrono::nanoseconds steady_now() { return std::chrono::steady_clock::now().time_since_epoch(); }

}  // namespace

bool Reporter::wants_figures() const {
  return steady_now() >= running_->quiet_until.load() && !running_->is_busy.load();
}

void Reporter::on_figures(pipeline::Figures all) {
  if (!wants_figures() || running_->is_busy.exchange(true)) return;
  const auto job = [running = running_, facts = facts_, all = std::move(all)] {
    const std::chrono::nanoseconds begin = steady_now();
    const Status written = contained([&]() -> Status {
      std::map<int, pipeline::Statistics> copied;
      for (const auto& [rank, statistics] : all) copied[rank] = *statistics;
      running->write(report_text(*facts, copied, State::running));
      return {};
    });
    static_cast<void>(written);  // memory is short: the next report may have some
    constexpr int share = 20;
    running->quiet_until = begin + share * (steady_now() - begin);
    running->is_busy = false;
  };
  const Status submitted = contained([&]() -> Status {
    submit_(job);
    return {};
  });
  if (!submitted.is_ok()) running_->is_busy = false;  // no job does it
}

void Reporter::on_end(const std::map<int, pipeline::Statistics>& all) {
  const Status told = contained([&] { return write_end(all); });
  if (!told.is_ok()) log(LogLevel::error, told.text());
  static_cast<void>(contained([&]() -> Status {
    if (const std::string line = summary_of(facts_->roster, all); !line.empty())
      log_line(LogLevel::warn, line);
    return {};
  }));
}

Status Reporter::write_end(const std::map<int, pipeline::Statistics>& all) {
  const exchange::Roster& roster = facts_->roster;
  Status status;
  if (!settings_.report.empty()) {
    const std::lock_guard lock(running_->mutex);
    running_->is_over = true;
    const State state = error_of(roster, all).empty() ? State::ended : State::failed;
    status = replace_report(settings_.report, report_text(*facts_, all, state)).status();
  }
  if (!settings_.trace.empty())
    status = first_cause(status, replace_report(settings_.trace, trace_text(roster, all)).status());
  return status;
}

}  // namespace tailrace::session
