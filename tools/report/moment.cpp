// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "moment.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "advice.hpp"
#include "ground/base/text.hpp"
#include "tables.hpp"

namespace tailrace::reports {

namespace {

constexpr std::size_t kRoutinesOfRole = 4;

/// Returns the seconds in `now` that have been added since `before`, by name.
Seconds added(const Seconds& before, const Seconds& now) {
  Seconds all = now;
  for (auto& [name, seconds] : all) {
    for (const auto& [other, earlier] : before) {
      if (other == name) seconds = std::max(0.0, seconds - earlier);
    }
  }
  return all;
}

/// Returns what a process did between two looks.
Process between(const Process& before, const Process& now) {
  Process process = now;
  process.elapsed -= before.elapsed;
  process.routines = added(before.routines, now.routines);
  process.thread_routines = added(before.thread_routines, now.thread_routines);
  // Threads may have begun meanwhile: then idle counts from the beginning of the run for each of them.
  double busy = 0;
  for (const auto& [name, seconds] : process.thread_routines) busy += name == "idle" ? 0 : seconds;
  for (auto& [name, seconds] : process.thread_routines) {
    if (name == "idle" && process.threads > 0)
      seconds = std::max(0.0, process.threads * process.elapsed - busy);
  }
  return process;
}

bool has_role(const std::vector<Process>& processes, const std::string& role) {
  return std::ranges::any_of(processes, [&role](const Process& each) { return each.role == role; });
}

/// Returns what Moment::recent has.
std::vector<Process> recent_of(const Run& now, const Moment* earlier) {
  if (earlier == nullptr || earlier->now.begun != now.begun) return now.processes;
  std::map<std::int64_t, const Process*> before;
  for (const Process& process : earlier->now.processes) before[process.rank] = &process;
  std::vector<Process> recent;
  for (const Process& process : now.processes) {
    const auto found = before.find(process.rank);
    // The figures of a rank are those of its last message, which may be the same.
    if (found != before.end() && found->second->elapsed < process.elapsed)
      recent.push_back(between(*found->second, process));
  }
  // Roles of which nobody has news, or of which all are new.
  const std::vector<Process> news = recent;
  for (const Process& process : earlier->recent) {
    if (!has_role(news, process.role)) recent.push_back(process);
  }
  const std::vector<Process> known = recent;
  for (const Process& process : now.processes) {
    if (!has_role(known, process.role)) recent.push_back(process);
  }
  return recent;
}

std::vector<RoleFigures> recent_figures(const Moment& moment) {
  Run run;
  run.processes = moment.recent;
  return figures_of(run);
}

/// Returns "model 96 %, skew 2.1 %": the routines with the largest shares.
std::string largest(RoleFigures role) {
  std::ranges::stable_sort(role.routines, std::greater<>(), &RoutineFigures::share);
  std::string text;
  for (std::size_t i = 0; i < std::min(kRoutinesOfRole, role.routines.size()); ++i) {
    if (role.routines[i].share < 0.001) break;
    text += cat(i > 0 ? ", " : "", plain(role.routines[i].name), " ", percent_text(role.routines[i].share));
  }
  return text.empty() ? "nothing yet" : text;
}

std::string rate_text(double before, double now, double seconds) {
  return seconds > 0 ? bytes_text(std::max(0.0, now - before) / seconds) + "/s" : std::string(unknown);
}

std::string state_text(const Moment& moment) {
  const Run& run = moment.now;
  std::string text = run.state == State::unknown ? "no state" : std::string(name_of(run.state));
  if (run.elapsed) text += cat(" ", seconds_text(*run.elapsed));
  return text;
}

/// Returns the sentence about a report that nobody writes any more; "" if there is news.
std::string silence_of(const Moment& moment) {
  const State state = moment.now.state;
  return state == State::ended || state == State::failed ? "" : no_news(moment.now, moment.age_seconds);
}

std::string steps_text(const Totals& totals) {
  if (!totals.durable_steps) return count_of(totals.steps, "step");
  return cat(count_text(*totals.durable_steps), " of ", count_of(totals.steps, "step"), " durable");
}

const Stream* earlier(const Moment& moment, const Stream& stream) {
  if (!moment.before) return nullptr;
  for (const Stream& each : moment.before->streams) {
    if (each.name == stream.name && each.is_input == stream.is_input) return &each;
  }
  return nullptr;
}

Cells streams_of(const Moment& moment) {
  Cells cells{{"stream", "steps", "durable", "last durable", "written", "now", "to durable", "max"}};
  for (const Stream& stream : moment.now.streams) {
    if (stream.is_input) continue;
    const Stream* const before = earlier(moment, stream);
    const bool known = stream.durable.count > 0;
    cells.push_back(
        {shortened(plain(stream.name), 32), count_text(stream.steps),
         stream.durable_steps ? count_text(*stream.durable_steps) : std::string(unknown),
         stream.last_durable.empty() ? std::string(unknown) : shortened(plain(stream.last_durable), 20),
         bytes_text(stream.bytes_written),
         before == nullptr ? std::string(unknown)
                           : rate_text(before->bytes_written, stream.bytes_written, moment.passed()),
         known ? seconds_text(stream.durable.median) : std::string(unknown),
         known ? seconds_text(stream.durable.most) : std::string(unknown)});
  }
  return cells;
}

void add_lines(const std::string& text, std::vector<std::string>& lines) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
}

std::string staging_text(const Run& run) {
  if (!run.staging_used_bytes || !run.staging_bytes || *run.staging_bytes <= 0) return "";
  return cat(bytes_text(*run.staging_used_bytes), " of ", bytes_text(*run.staging_bytes), " in use (",
             percent_text(*run.staging_used_bytes / *run.staging_bytes), ")");
}

void add_advice(const Run& run, std::size_t width, std::vector<std::string>& lines) {
  lines.emplace_back();
  const std::vector<Advice> all = advise(run);
  for (const Advice& advice : all) add_lines(cat("- ", wrapped(advice.text, width - 2, "  "), "\n"), lines);
  if (all.empty())
    lines.emplace_back(can_advise(run) ? "nothing to advise so far" : "too little is known for advice");
}

}  // namespace

Moment Moment::after(std::optional<Moment> earlier, Run now, double age_seconds) {
  Moment moment;
  moment.age_seconds = age_seconds;
  moment.recent = recent_of(now, earlier ? &*earlier : nullptr);
  moment.now = std::move(now);
  if (earlier) moment.before = std::move(earlier->now);
  return moment;
}

double Moment::passed() const {
  if (!before || before->begun != now.begun) return 0;
  return std::max(0.0, now.elapsed.value_or(0) - before->elapsed.value_or(0));
}

std::vector<std::string> frame_of(const Moment& moment, std::size_t width) {
  const Run& run = moment.now;
  const Totals totals = totals_of(run);
  std::vector<std::string> lines{cat(state_text(moment), ", ", count_of(run.compute_ranks, "rank"), ", ",
                                     count_of(run.servers, "server"), ", report of ",
                                     whole_seconds_text(moment.age_seconds), " ago: ", plain(run.path))};
  const std::string silence = silence_of(moment);
  if (!silence.empty()) lines.push_back(silence);
  if (!run.error.empty()) lines.push_back(cat("error: ", shortened(plain(run.error), 2000)));
  lines.emplace_back();
  const Totals before = moment.before ? totals_of(*moment.before) : Totals{};
  const double passed = moment.passed();
  const std::vector<RoleFigures> roles = recent_figures(moment);
  std::size_t label = 8;
  for (const RoleFigures& role : roles) label = std::max(label, characters_in(role.title()));
  const auto add = [&](std::string title, const std::string& text) {
    title.append(label + 2 - characters_in(title), ' ');
    lines.push_back(title + text);
  };
  add("steps", steps_text(totals));
  std::string rates = cat(rate_text(before.bytes_captured, totals.bytes_captured, passed), " captured, ",
                          rate_text(before.bytes_written, totals.bytes_written, passed), " written");
  if (totals.inputs > 0) rates += cat(", ", rate_text(before.bytes_read, totals.bytes_read, passed), " read");
  add("now", rates);
  const std::string staging = staging_text(run);
  if (!staging.empty()) add("staging", staging);
  for (const RoleFigures& role : roles) add(role.title(), largest(role));
  const Cells streams = streams_of(moment);
  if (streams.size() > 1) {
    lines.emplace_back();
    add_lines(table_text(streams, 1), lines);
  }
  add_advice(run, width, lines);
  return lines;
}

std::string line_of(const Moment& moment) {
  const Run& run = moment.now;
  const Totals totals = totals_of(run);
  std::string line =
      cat(state_text(moment), ": ", steps_text(totals), ", ", bytes_text(totals.bytes_written), " written");
  if (moment.passed() > 0)
    line +=
        cat(", ", rate_text(totals_of(*moment.before).bytes_written, totals.bytes_written, moment.passed()),
            " now");
  for (const RoleFigures& role : recent_figures(moment)) line += cat("; ", role.title(), ": ", largest(role));
  const std::string silence = silence_of(moment);
  return silence.empty() ? line : cat(line, "; ", silence);
}

std::string farewell_of(const Run& run, std::size_t width) {
  std::string text;
  for (const std::string& line : headline(run)) text += wrapped(line, width, "  ") + "\n";
  for (const Advice& advice : advise(run)) text += cat("- ", wrapped(advice.text, width - 2, "  "), "\n");
  return text;
}

}  // namespace tailrace::reports
