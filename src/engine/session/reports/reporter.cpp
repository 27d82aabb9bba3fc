// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/session/reports/reporter.hpp"

#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "engine/session/reports/routines.hpp"
#include "engine/session/reports/trace.hpp"
#include "ground/base/log.hpp"
#include "ground/base/text.hpp"
#include "ground/base/thread.hpp"
#include "ground/storage/temporary.hpp"

namespace tailrace::session {

namespace {

/// Goes past storage::Target: a report tells of faults and throttles, which would strike it, too.
Status replace_report(const std::string& path, const std::string& text) {
  const Result<storage::Temporary> temporary = storage::make_temporary(path);
  TR_TRY(temporary.status());
  Status status = temporary->file->write(std::as_bytes(std::span(text)), 0);
  if (status.is_ok()) status = temporary->file->close();
  if (status.is_ok() && std::rename(temporary->name.c_str(), path.c_str()) != 0)
    status = io_error("rename", path, errno);
  if (!status.is_ok()) std::remove(temporary->name.c_str());  // the first error is the one that is told
  return status;
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

/// Tells whether a file is the one that was written last, without reading it.
using Identity = std::pair<dev_t, ino_t>;
std::optional<Identity> identity_of(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return std::nullopt;
  return Identity(found.st_dev, found.st_ino);
}

}  // namespace

Status check_report(const Settings& settings) {
  if (!has_reports() && !(settings.report.empty() && settings.trace.empty()))
    return {Code::unsupported, "TAILRACE_REPORT and TAILRACE_TRACE need a build with nlohmann-json"};
  TR_TRY(check_file(settings.report).in("TAILRACE_REPORT"));
  return check_file(settings.trace).in("TAILRACE_TRACE");
}

void mark_failed(const std::string& path, std::string_view why) {
  struct Shared {
    std::mutex mutex;
    std::condition_variable is_done;
    bool done = false;
  };
  const auto shared = std::make_shared<Shared>();
  const Status begun = guarded([&]() -> Status {
    Result<std::thread> thread = start_thread([shared, path, why = std::string(why)] {
      // Nobody is left to be told of a failure.
      static_cast<void>(guarded([&]() -> Status {
        const std::optional<std::string> text = as_failed(text_of_file(path), why);
        return text ? replace_report(path, *text) : Status();
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
  shared->is_done.wait_for(lock, std::chrono::seconds(2), [&] { return shared->done; });
}

/// The report of a running session. The jobs that write it share this with the reporter.
struct Reporter::Running {
  explicit Running(std::string path) : path(std::move(path)) {}

  const std::string path;
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
    if (last && identity_of(path) != last && !is_running(text_of_file(path)) && identity_of(path)) {
      is_over = true;
      return;
    }
    const Status written = replace_report(path, text);
    last = identity_of(path);
    if (!written.is_ok() && !std::exchange(has_warned, true))
      log(LogLevel::warn, cat("the report of the running job: ", written.text()));
  }
};

Reporter::Reporter(const Settings& settings, ReportFacts facts, Submit submit)
    : settings_(settings),
      facts_(std::make_shared<const ReportFacts>(std::move(facts))),
      submit_(std::move(submit)),
      running_(std::make_shared<Running>(settings.report)) {}

Reporter::~Reporter() {
  const bool was_written = [this] {
    const std::lock_guard lock(running_->mutex);
    return !std::exchange(running_->is_over, true) && running_->last.has_value();
  }();
  if (was_written) mark_failed(running_->path, "the session ended without tr_finalize");
}

namespace {

std::chrono::nanoseconds steady_now() { return std::chrono::steady_clock::now().time_since_epoch(); }

}  // namespace

void Reporter::on_figures(std::map<int, pipeline::Statistics> all) {
  if (steady_now() < running_->quiet_until.load() || running_->is_busy.exchange(true)) return;
  submit_([running = running_, facts = facts_, all = std::move(all)] {
    const std::chrono::nanoseconds begin = steady_now();
    const Status written = guarded([&]() -> Status {
      running->write(report_text(*facts, all, State::running));
      return {};
    });
    static_cast<void>(written);  // memory is short: the next report may have some
    constexpr int share = 20;
    running->quiet_until = begin + share * (steady_now() - begin);
    running->is_busy = false;
  });
}

void Reporter::on_end(const std::map<int, pipeline::Statistics>& all) {
  const exchange::Roster& roster = facts_->roster;
  Status status;
  if (!settings_.report.empty()) {
    const std::lock_guard lock(running_->mutex);
    running_->is_over = true;
    const State state = error_of(roster, all).empty() ? State::ended : State::failed;
    status = replace_report(settings_.report, report_text(*facts_, all, state));
  }
  if (!settings_.trace.empty())
    status = first_cause(status, replace_report(settings_.trace, trace_text(roster, all)));
  if (!status.is_ok()) log(LogLevel::error, status.text());
  if (const std::string line = summary_of(roster, all); !line.empty()) log_line(LogLevel::warn, line);
}

}  // namespace tailrace::session
