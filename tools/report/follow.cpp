// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "follow.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>

#include "advice.hpp"
#include "ground/base/text.hpp"
#include "moment.hpp"
#include "screen.hpp"
#include "words.hpp"

namespace tailrace::reports {

namespace {

using Clock = std::chrono::steady_clock;

/// So long a report may be gone or half-written once it has been read, or while it is copied: seconds, and
/// looks.
constexpr double kPatience = 5, kPatientLooks = 20;

double seconds_since(Clock::time_point then) {
  return std::chrono::duration<double>(Clock::now() - then).count();
}

bool has_ended(const Run& run) { return run.state == State::ended || run.state == State::failed; }

/// Looks at a report again and again.
class Watched {
 public:
  explicit Watched(const FollowRequest& request) : request_(request) {}

  /// Returns true if there is news. A report that cannot be read is an error only after some seconds, or if
  /// there is none and nobody is to wait for it.
  Result<bool> look() {
    Result<std::string> text = read_text(request_.path, Reads::files);
    if (!text.is_ok()) return forgive(text.status());
    if (moment_ && *text == text_) {
      moment_->age_seconds = age_at_news_ + seconds_since(news_);
      return false;
    }
    if (passes_over_ && *text == text_) return false;
    Result<Run> run = parse_run(request_.path, *text);
    if (!run.is_ok()) return forgive(run.status());
    if (request_.waits && is_first_ && has_ended(*run)) {
      is_first_ = false;
      passes_over_ = true;
      text_ = std::move(*text);
      return false;
    }
    is_first_ = passes_over_ = false;
    trouble_.reset();
    text_ = std::move(*text);
    news_ = Clock::now();
    // The clocks of two machines may differ: that of the writer counts for the first look alone.
    age_at_news_ = moment_ ? 0 : age_of(*run).value_or(0);
    moment_ = Moment::after(std::move(moment_), std::move(*run), age_at_news_);
    return true;
  }

  [[nodiscard]] const std::optional<Moment>& moment() const { return moment_; }
  [[nodiscard]] bool is_over() const { return moment_ && has_ended(moment_->now); }
  /// Returns what is waited for, as long as there is no moment.
  [[nodiscard]] std::string waiting() const {
    const std::string path = plain(request_.path);
    if (passes_over_) return cat(path, " is of a run that has ended; waiting for the next run");
    return cat("waiting for ", path);
  }

 private:
  Result<bool> forgive(const Status& status) {
    const bool is_absent = status.error_number() == ENOENT && !moment_;
    is_first_ = false;  // what comes now is news
    if (is_absent && request_.waits) return false;
    if (is_absent)
      return Status(status.code(), cat(status.text(), "; TAILRACE_REPORT=", request_.path,
                                       " has a job write it, and --wait waits for it"));
    // A file may be copied at this moment; a report that was there comes back. All else stays as it is.
    if (!moment_ && status.code() != Code::corrupt) return status;
    if (!trouble_) trouble_ = Clock::now();
    if (seconds_since(*trouble_) > std::min(kPatience, kPatientLooks * request_.interval)) return status;
    return false;
  }

  const FollowRequest& request_;
  std::optional<Moment> moment_;
  std::string text_;
  Clock::time_point news_;
  double age_at_news_ = 0;
  std::optional<Clock::time_point> trouble_;
  bool is_first_ = true;      // nobody has looked yet
  bool passes_over_ = false;  // text_ is the report of an earlier run
};

/// Prints lines: one for each news, and one when there has been none for long.
class Lines {
 public:
  /// Returns an error if standard output does not take the lines.
  Status show(const Watched& watched, bool is_news) {
    const std::optional<Moment>& moment = watched.moment();
    if (moment)
      show(*moment, is_news);
    else if (watched.waiting() != said_)
      print(said_ = watched.waiting());
    return status_;
  }

 private:
  void show(const Moment& moment, bool is_news) {
    const bool is_silent = !no_news(moment.now, moment.age_seconds).empty();
    if (is_news || (is_silent && !was_silent_)) print(line_of(moment));
    was_silent_ = is_silent && !has_ended(moment.now);
    if (is_news) show_advice(moment.now);
    if (is_news && moment.now.state == State::unknown && !said_endless_)
      print(
          "note: an older version of the library wrote this; it does not say when the run ends (Ctrl-C ends "
          "this command)");
    said_endless_ = true;
  }
  void print(const std::string& line) {
    if (std::puts(line.c_str()) < 0 || std::fflush(stdout) != 0)
      status_ = io_error("write", "standard output", errno);
  }
  /// Prints a rule's advice when it begins to speak: its numbers change with each look.
  void show_advice(const Run& run) {
    std::vector<std::string_view> rules;
    for (const Advice& advice : advise(run)) {
      if (std::find(rules_.begin(), rules_.end(), advice.rule) == rules_.end() &&
          std::find(rules.begin(), rules.end(), advice.rule) == rules.end())
        print(cat("advice: ", advice.text));
      rules.push_back(advice.rule);
    }
    rules_ = std::move(rules);
  }

  std::vector<std::string_view> rules_;
  Status status_;
  std::string said_;
  bool said_endless_ = false;
  bool was_silent_ = false;
};

std::vector<std::string> frame(const Watched& watched) {
  const std::optional<Moment>& moment = watched.moment();
  if (!moment) return {watched.waiting(), "", "q or Ctrl-C ends"};
  std::vector<std::string> lines = frame_of(*moment, Screen::size().columns);
  lines.emplace_back();
  lines.emplace_back(moment->now.state == State::unknown
                         ? "The report does not say when the run ends (older version). q or Ctrl-C ends."
                         : "q or Ctrl-C ends");
  return lines;
}

/// Looks until the run is over, the user has enough, or the report cannot be read.
Result<Followed> follow_to_end(const FollowRequest& request, Watched& watched, bool is_news, Screen* screen) {
  Lines lines;
  for (;;) {
    if (screen == nullptr)
      TR_TRY(lines.show(watched, is_news));
    else if (screen->is_ours())
      screen->draw(frame(watched));
    if (watched.is_over()) return Followed{watched.moment()->now.state, 0};
    Signals::wait(request.interval, screen != nullptr && screen->has_keys());
    if (Signals::ending() != 0) return Followed{State::unknown, Signals::ending()};
    if (screen != nullptr && screen->wants_to_quit()) return Followed{};
    if (Signals::take_stop()) {
      if (screen != nullptr)
        screen->stop();
      else
        ::raise(SIGSTOP);
    }
    const Result<bool> looked = watched.look();
    TR_TRY(looked.status());
    is_news = *looked;
  }
}

}  // namespace

Result<Followed> follow(const FollowRequest& request) {
  const Signals signals;
  Watched watched(request);
  // A file that is not there is told before the terminal is taken.
  const Result<bool> is_news = watched.look();
  TR_TRY(is_news.status());
  std::unique_ptr<Screen> screen;
  if (!request.lines && ::isatty(STDOUT_FILENO) != 0) screen = std::make_unique<Screen>();
  Result<Followed> followed = follow_to_end(request, watched, *is_news, screen.get());
  screen.reset();
  // Lines of a log are as long as they are.
  const std::size_t width = ::isatty(STDOUT_FILENO) != 0 ? Screen::size().columns : 1'000'000;
  if (followed.is_ok() && watched.is_over())
    std::fputs(farewell_of(watched.moment()->now, width).c_str(), stdout);
  return followed;
}

}  // namespace tailrace::reports
