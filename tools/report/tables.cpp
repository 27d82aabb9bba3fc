// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "tables.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "advice.hpp"
#include "ground/base/text.hpp"

namespace tailrace::reports {

namespace {

constexpr double kShort = 5;       // seconds: a run of which most is beginning and end
constexpr std::size_t kName = 40;  // characters of a stream's name in a table
constexpr std::size_t kWhy = 300;  // characters of a reason, or of an error's text
constexpr std::size_t kError = 2000;

std::string times_text(const Run& run) {
  if (run.begun.empty()) return run.written.empty() ? "" : cat(", written at ", plain(run.written));
  return cat(", ", plain(run.begun), " to ", run.written.empty() ? "?" : plain(run.written));
}

std::string state_line(const Run& run) {
  const std::string for_so_long = run.elapsed ? seconds_text(*run.elapsed) : "";
  std::string line = cat(plain(run.path), ": ");
  switch (run.state) {
    case State::running: {
      const double age = age_of(run).value_or(0);
      line += for_so_long.empty() ? "running" : "running for " + for_so_long;
      if (!no_news(run, age).empty()) line += cat(" when it was written, ", whole_seconds_text(age), " ago");
      break;
    }
    case State::ended:
      line += for_so_long.empty() ? "ended" : "ended after " + for_so_long;
      break;
    case State::failed:
      line += for_so_long.empty() ? "failed" : "failed after " + for_so_long;
      break;
    case State::unknown:
      line += "report of a run";
  }
  return line + times_text(run);
}

std::string ranks_line(const Run& run) {
  std::string line = count_of(run.compute_ranks, "compute rank");
  double threads = 0, encoders = 0;
  for (const Process& process : run.processes) {
    if (!serves(process)) continue;
    threads += process.threads;
    encoders += process.encoders;
  }
  line += run.servers > 0 ? cat(", ", count_of(run.servers, "server")) : ", no server";
  if (run.servers > 0 && threads > 0) line += cat(" with ", count_of(threads, "thread"));
  if (run.servers > 0 && encoders < threads)
    line += cat(" (", count_text(encoders), encoders == 1 ? " encodes)" : " encode)");
  if (run.version >= 2) line += cat(", ", count_of(run.nodes, "node"));
  if (run.staging_bytes)
    line +=
        cat(", staging of ", size_text(static_cast<Bytes>(std::min(*run.staging_bytes, 9e18))), " on each");
  return line;
}

std::string bytes_line(const Run& run, const Totals& totals) {
  std::string line;
  if (totals.files) line += cat(count_of(*totals.files, "file"), ", ");
  line += cat(count_of(totals.steps, "step"), " in ", count_of(totals.streams, "stream"), ", ");
  if (totals.durable_steps && *totals.durable_steps < totals.steps)
    line += cat(count_text(*totals.durable_steps), " of them durable, ");
  line += cat(bytes_text(totals.bytes_captured), " captured, ", bytes_text(totals.bytes_written), " written");
  if (totals.bytes_written > 0)
    line += cat(" (", ratio_text(totals.bytes_captured, totals.bytes_written), ")");
  if (run.elapsed.value_or(0) > 0)
    line += cat(", ", bytes_text(totals.bytes_durable / *run.elapsed), "/s to durable over the run");
  return line;
}

std::string waits_line(const Run& run, const Totals& totals) {
  if (run.elapsed.value_or(0) <= 0)
    return cat("a compute rank was in calls of the library for ", seconds_text(totals.blocked), " (mean)");
  return cat("a compute rank was in calls of the library for ", seconds_text(totals.blocked), " of ",
             seconds_text(*run.elapsed), " (mean, ", percent_text(totals.blocked / *run.elapsed), ")");
}

void add_waits(const RoleFigures& role, Kind kind, Cells& cells) {
  const double sum = role.of(kind);
  cells.push_back({cat("all that ", text_of(kind)), "", seconds_number(sum),
                   role.seconds > 0 ? percent_text(sum / role.seconds) : std::string(unknown), "", "", ""});
}

/// Returns the seconds that a process spent in a routine.
double seconds_in(const Process& process, bool of_threads, const std::string& name) {
  double sum = 0;
  for (const auto& [routine, seconds] : of_threads ? process.thread_routines : process.routines) {
    if (routine == name) sum += seconds;
  }
  return sum;
}

std::string block(const Titled& table, std::size_t width) {
  if (table.cells.size() < 2) return "";
  return cat("\n", wrapped(table.title, width, "  "), "\n", table_text(table.cells, table.left, width));
}

/// Removes a column.
void drop(std::string_view head, Cells& cells) {
  const auto found = std::ranges::find(cells[0], head);
  if (found == cells[0].end()) return;
  const auto column = found - cells[0].begin();
  for (auto& line : cells) line.erase(line.begin() + column);
}

std::string advice_text(const Run& run, std::size_t width) {
  std::string out = run.state == State::running ? "\nadvice so far\n" : "\nadvice\n";
  const std::vector<Advice> all = advise(run);
  for (const Advice& advice : all) out += cat("  - ", wrapped(advice.text, width - 4, "    "), "\n");
  if (all.empty()) out += cat("  ", wrapped(no_advice(run), width - 2, "  "), "\n");
  return out;
}

std::string threshold_text(const Rule& rule) {
  const bool is_one = rule.threshold == 1 && rule.unit.ends_with("s") && rule.unit.size() > 1;
  return cat(rule.threshold, " ", is_one ? rule.unit.substr(0, rule.unit.size() - 1) : rule.unit);
}

}  // namespace

std::vector<std::string> headline(const Run& run) {
  const Totals totals = totals_of(run);
  std::vector<std::string> lines{state_line(run)};
  if (!run.error.empty()) lines.push_back(cat("error: ", shortened(plain(run.error), kError)));
  lines.push_back(ranks_line(run));
  if (totals.streams > 0) lines.push_back(bytes_line(run, totals));
  if (totals.inputs > 0)
    lines.push_back(cat(bytes_text(totals.bytes_read), " read by ", count_of(totals.inputs, "stream")));
  if (run.compute_ranks > 0) lines.push_back(waits_line(run, totals));
  return lines;
}

std::vector<std::string> remarks(const Run& run) {
  std::vector<std::string> all;
  if (!run.missing.empty()) {
    std::string text = run.version < 2 ? "The report is of an older version of the library. It does not say "
                                       : "The report does not say ";
    for (std::size_t i = 0; i < run.missing.size(); ++i) {
      if (i > 0) text += i + 1 == run.missing.size() ? " and " : ", ";
      text += run.missing[i];
    }
    all.push_back(text + ".");
  }
  if (run.version > newest_version)
    all.push_back(cat("The report is of a newer version (", run.version, ") than this command (",
                      newest_version, "): what is new in it is not shown."));
  if (!run.stopped.empty())
    all.push_back(cat("The program was told to stop: ", shortened(plain(run.stopped), kWhy), "."));
  const double failed = totals_of(run).failed_steps;
  if (failed > 0)
    all.push_back(
        cat(count_of(failed, "step"), " failed, and ", failed == 1 ? "is" : "are", " not durable."));
  if (run.elapsed && *run.elapsed == 0)
    all.emplace_back("No time has passed yet, so there are no shares and rates.");
  if (run.elapsed.value_or(0) > 0 && *run.elapsed < kShort)
    all.push_back(cat("The run is short (", seconds_text(*run.elapsed),
                      "): beginning and end count for more than in a long one."));
  if (run.streams.empty()) all.emplace_back("No stream has been used.");
  if (run.state == State::running) {
    const std::string silent = no_news(run, age_of(run).value_or(0));
    if (!silent.empty())
      all.push_back(upper_case(silent.substr(0, 1)) + silent.substr(1) + " The figures are those of then.");
  }
  return all;
}

Titled role_table(const RoleFigures& role, std::size_t width) {
  Titled table;
  table.left = 2;
  table.title = cat(role.title(), ": ", count_of(role.processes, "process", "processes"));
  if (role.of_threads) table.title += cat(" with ", count_of(role.threads, "thread"));
  table.title += cat(", ", seconds_text(role.seconds), " in all; seconds of each process");
  table.cells.push_back({"routine", "", "summed", "share", "min", "median", "max"});
  for (const RoutineFigures& each : role.routines) {
    table.cells.push_back(
        {shortened(plain(each.name), kName), std::string(text_of(each.kind)), seconds_number(each.sum),
         role.seconds > 0 ? percent_text(each.share) : std::string(unknown), seconds_number(each.least),
         seconds_number(each.median), seconds_number(each.most)});
  }
  add_waits(role, Kind::waits_mpi, table.cells);
  add_waits(role, Kind::waits_storage, table.cells);
  for (const std::string_view head : {"median", "min"}) {
    if (width_of(table.cells) > width) drop(head, table.cells);
  }
  return table;
}

Titled process_table(const Run& run, const RoleFigures& role) {
  Titled table;
  table.title = cat("seconds of each process: ", role.title());
  std::vector<std::string> head{"rank", "node"};
  for (const RoutineFigures& routine : role.routines) head.push_back(shortened(plain(routine.name), kName));
  table.cells.push_back(std::move(head));
  for (const Process& process : run.processes) {
    if (process.role != role.role) continue;
    std::vector<std::string> line{cat(process.rank), cat(process.node)};
    for (const RoutineFigures& routine : role.routines)
      line.push_back(seconds_number(seconds_in(process, role.of_threads, routine.name)));
    table.cells.push_back(std::move(line));
  }
  return table;
}

Titled output_table(const Run& run) {
  Titled table{
      "streams that are written; blocked: seconds that a compute rank was in calls, in the mean; seconds to "
      "durable",
      {},
      2};
  table.cells.push_back({"stream", "method", "steps", "records", "captured", "written", "ratio", "blocked",
                         "median", "p99", "max"});
  for (const Stream& stream : run.streams) {
    if (stream.is_input) continue;
    const bool known = stream.durable.count > 0;
    const double blocked = stream.blocked.count > 0 ? stream.blocked.sum / stream.blocked.count : 0;
    const auto durable = [known](double seconds) {
      return known ? seconds_number(seconds) : std::string(unknown);
    };
    table.cells.push_back({shortened(plain(stream.name), kName), shortened(plain(stream.method), kName),
                           count_text(stream.steps), count_text(stream.records),
                           bytes_text(stream.bytes_captured), bytes_text(stream.bytes_written),
                           ratio_text(stream.bytes_captured, stream.bytes_written), seconds_number(blocked),
                           durable(stream.durable.median), durable(stream.durable.p99),
                           durable(stream.durable.most)});
  }
  return table;
}

Titled input_table(const Run& run) {
  Titled table{"streams that are read; waited: seconds of late gets of all ranks", {}, 1};
  table.cells.push_back({"stream", "steps", "gets in memory", "late gets", "waited", "records", "read"});
  for (const Stream& stream : run.streams) {
    if (!stream.is_input) continue;
    table.cells.push_back({shortened(plain(stream.name), kName), count_text(stream.steps),
                           count_text(stream.gets_in_memory), count_text(stream.gets_late),
                           seconds_number(stream.get_wait.sum), count_text(stream.records_read),
                           bytes_text(stream.bytes_read)});
  }
  return table;
}

std::vector<std::string> stream_notes(const Run& run) {
  std::vector<std::string> notes;
  for (const Stream& stream : run.streams) {
    std::string text;
    if (!stream.method_chosen.empty())
      text += cat("; method=auto took ", plain(stream.method), ": ",
                  shortened(plain(stream.method_chosen), kWhy));
    if (!stream.writes_by.empty()) text += cat("; writes by ", shortened(plain(stream.writes_by), kWhy));
    if (!stream.offsets.empty()) text += cat("; offsets ", shortened(plain(stream.offsets), kWhy));
    if (stream.files) text += cat("; ", count_of(*stream.files, "file"));
    if (stream.durable_steps && *stream.durable_steps < stream.steps)
      text +=
          cat("; ", count_text(*stream.durable_steps), " of ", count_of(stream.steps, "step"), " durable");
    if (!stream.last_durable.empty())
      text += cat("; last durable step: ", shortened(plain(stream.last_durable), kWhy));
    if (!text.empty()) notes.push_back(cat(shortened(plain(stream.name), kName), ": ", text.substr(2)));
  }
  return notes;
}

Cells rules_table() {
  Cells cells{{"rule", "threshold", "what reaches it", "advice"}};
  for (const Rule& rule : rules())
    cells.push_back(
        {cat("`", rule.name, "`"), threshold_text(rule), std::string(rule.speaks), std::string(rule.advice)});
  return cells;
}

Cells routines_table() {
  Cells cells{{"routine", "of", "means", "counts as", "if it is much"}};
  for (const Routine& routine : routines()) {
    std::string kind(text_of(routine.kind));
    if (kind.starts_with("waits")) kind = "waiting" + kind.substr(5);
    if (routine.kind == Kind::work) kind = "work";
    if (routine.kind == Kind::program) kind = "the program";
    if (routine.kind == Kind::idle) kind = "idle";
    cells.push_back({cat("`", routine.name, "`"), std::string(routine.who), std::string(routine.meaning),
                     kind, std::string(routine.remedy)});
  }
  return cells;
}

std::string paragraphs_of(const Cells& table, std::size_t width) {
  std::string out;
  for (std::size_t i = 1; i < table.size(); ++i) {
    out += cat(out.empty() ? "" : "\n", table[i][0], "\n");
    for (std::size_t column = 1; column < table[i].size(); ++column)
      out += cat("  ", wrapped(cat(table[0][column], ": ", table[i][column]), width - 2, "    "), "\n");
  }
  return out;
}

std::string report_text(const Run& run, bool processes, std::size_t width) {
  std::string out;
  for (const std::string& line : headline(run)) out += wrapped(line, width, "  ") + "\n";
  for (const std::string& remark : remarks(run))
    out += cat("note: ", wrapped(remark, width - 6, "      "), "\n");
  out += advice_text(run, width);
  for (const RoleFigures& role : figures_of(run)) {
    out += block(role_table(role, width), width);
    if (processes) out += block(process_table(run, role), width);
  }
  out += block(output_table(run), width);
  for (const std::string& note : stream_notes(run)) out += cat("  ", wrapped(note, width - 2, "    "), "\n");
  return out + block(input_table(run), width);
}

}  // namespace tailrace::reports
