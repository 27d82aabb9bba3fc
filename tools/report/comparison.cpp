// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "comparison.hpp"

#include <algorithm>
#include <cmath>

#include "ground/base/text.hpp"

namespace tailrace::reports {

namespace {

/// What differs by less is not said first: shares of the longer run, and of a stream's own figures.
constexpr double kOfRun = 0.005, kOfStream = 0.05, kOfBytes = 0.05;
constexpr std::size_t kMostChanges = 5;

/// A sentence about a change, and how large the change is as a share of the run.
struct Change {
  double weight = 0;
  std::string text;
};

double elapsed_of(const Run& run) { return run.elapsed.value_or(0); }

std::optional<double> rate_of(const Run& run) {
  if (elapsed_of(run) <= 0) return {};
  return totals_of(run).bytes_durable / elapsed_of(run);
}

ComparedPart whole(const Run& a, const Run& b) {
  const Totals x = totals_of(a), y = totals_of(b);
  return {"the whole run",
          {{"elapsed", Unit::seconds, a.elapsed, b.elapsed, {}, {}},
           {"compute ranks", Unit::count, a.compute_ranks, b.compute_ranks, {}, {}},
           {"servers", Unit::count, a.servers, b.servers, {}, {}},
           {"nodes", Unit::count, a.nodes, b.nodes, {}, {}},
           {"files", Unit::count, x.files, y.files, {}, {}},
           {"steps", Unit::count, x.steps, y.steps, {}, {}},
           {"captured", Unit::bytes, x.bytes_captured, y.bytes_captured, {}, {}},
           {"written", Unit::bytes, x.bytes_written, y.bytes_written, {}, {}},
           {"rate to durable", Unit::bytes_per_second, rate_of(a), rate_of(b), {}, {}},
           {"a rank in calls", Unit::seconds, x.blocked, y.blocked, {}, {}}}};
}

bool is_own_of_ranks(const RoleFigures& role) { return !role.of_threads && role.role.starts_with("compute"); }

/// Returns the figures of a role in another run. Without servers ranks compute and write: they are compared
/// with those that only compute.
const RoleFigures* role_in(const std::vector<RoleFigures>& roles, const RoleFigures& role) {
  for (const RoleFigures& each : roles) {
    if (each.role == role.role && each.of_threads == role.of_threads) return &each;
  }
  const auto alike = std::ranges::find_if(roles, is_own_of_ranks);
  return is_own_of_ranks(role) && alike != roles.end() ? &*alike : nullptr;
}

/// Fills in one side of a role's figures.
void take_role(const RoleFigures& role, bool is_after, ComparedPart& part) {
  for (const RoutineFigures& routine : role.routines) {
    auto found = std::ranges::find(part.figures, routine.name, &Compared::name);
    if (found == part.figures.end()) {
      part.figures.push_back({routine.name, Unit::seconds, {}, {}, {}, {}});
      found = part.figures.end() - 1;
    }
    (is_after ? found->after : found->before) = role.mean(routine);
    (is_after ? found->sum_after : found->sum_before) = routine.sum;
  }
}

ComparedPart role_part(const RoleFigures* before, const RoleFigures* after) {
  const RoleFigures& any = before != nullptr ? *before : *after;
  const auto processes = [](const RoleFigures* role) {
    return role == nullptr ? std::string("none") : count_text(role->processes);
  };
  const bool are_alike = before != nullptr && after != nullptr && before->role != after->role;
  ComparedPart part{cat(any.title(), are_alike ? cat(", ", after->title()) : "", " (", processes(before),
                        " and ", processes(after), "): seconds of a process, in the mean"),
                    {}};
  if (before != nullptr) take_role(*before, false, part);
  if (after != nullptr) take_role(*after, true, part);
  for (Compared& figure : part.figures) {
    if (!are_alike) break;
    // What only the ranks of one run do takes no time on those of the other.
    if (!figure.before) figure.before = figure.sum_before = 0;
    if (!figure.after) figure.after = figure.sum_after = 0;
  }
  return part;
}

ComparedPart stream_part(const Stream* a, const Stream* b) {
  const Stream& any = a != nullptr ? *a : *b;
  ComparedPart part{cat("stream ", plain(any.name)), {}};
  if (a == nullptr || b == nullptr)
    part.title += a == nullptr ? " (only in the second run)" : " (only in the first run)";
  if (a != nullptr && b != nullptr && a->method != b->method)
    part.title += cat(" (", plain(a->method), " and ", plain(b->method), ")");
  const auto add = [&](const char* name, Unit unit, auto get) {
    std::optional<double> before, after;
    if (a != nullptr) before = get(*a);
    if (b != nullptr) after = get(*b);
    if (before || after) part.figures.push_back({name, unit, before, after, {}, {}});
  };
  const auto durable = [](double Spread::*member) {
    return [member](const Stream& stream) {
      return stream.durable.count > 0 ? std::optional<double>(stream.durable.*member) : std::nullopt;
    };
  };
  const auto mean = [](const Spread& spread) {
    return spread.count > 0 ? std::optional<double>(spread.sum / spread.count) : std::nullopt;
  };
  add("steps", Unit::count, [](const Stream& stream) { return std::optional<double>(stream.steps); });
  add("blocked, a rank", Unit::seconds, [&](const Stream& stream) { return mean(stream.blocked); });
  if (any.is_input) {
    add("late gets", Unit::count,
        [](const Stream& stream) { return std::optional<double>(stream.gets_late); });
    add("read", Unit::bytes, [](const Stream& stream) { return std::optional<double>(stream.bytes_read); });
    return part;
  }
  add("records", Unit::count, [](const Stream& stream) { return std::optional<double>(stream.records); });
  add("captured", Unit::bytes,
      [](const Stream& stream) { return std::optional<double>(stream.bytes_captured); });
  add("written", Unit::bytes,
      [](const Stream& stream) { return std::optional<double>(stream.bytes_written); });
  add("to durable, median", Unit::seconds, durable(&Spread::median));
  add("to durable, p99", Unit::seconds, durable(&Spread::p99));
  add("to durable, max", Unit::seconds, durable(&Spread::most));
  return part;
}

const Stream* stream_in(const Run& run, const Stream& stream) {
  for (const Stream& each : run.streams) {
    if (each.name == stream.name && each.is_input == stream.is_input) return &each;
  }
  return nullptr;
}

std::string change_of(const Compared& figure) {
  const std::string change = change_text(*figure.before, *figure.after);
  return cat(text_of(figure.unit, figure.before), " -> ", text_of(figure.unit, figure.after),
             change == unknown ? "" : cat(" (", change, ")"));
}

/// Adds the changes of the routines of a role. What is idle is only what the others leave.
void add_changes(const ComparedPart& part, const RoleFigures& role, double longest,
                 std::vector<Change>& changes) {
  const double threads = role.processes > 0 ? std::max(1.0, role.threads / role.processes) : 1;
  for (const Compared& figure : part.figures) {
    if (!figure.before || !figure.after || routine_named(figure.name).kind == Kind::idle) continue;
    double weight = longest > 0 ? std::fabs(*figure.after - *figure.before) / (longest * threads) : 0;
    if (weight < kOfRun) continue;
    // What a rank does not wait is left to the model: the cause stands before what is left.
    if (routine_named(figure.name).kind == Kind::program) weight *= 0.9;
    changes.push_back({weight, cat(plain(figure.name), " of the ", role.title(), ": ", change_of(figure),
                                   " for each process")});
  }
}

/// Adds what has changed much of a stream: its bytes, and how soon it is durable.
void add_stream_changes(const ComparedPart& part, double longest, std::vector<Change>& changes) {
  for (const Compared& figure : part.figures) {
    if (!figure.before || !figure.after || *figure.before <= 0) continue;
    const double change = std::fabs(*figure.after / *figure.before - 1);
    const bool is_delay = figure.name == "to durable, p99" || figure.name == "to durable, median";
    if (change < kOfStream || (!is_delay && figure.name != "written")) continue;
    // Bytes are no time: they stand behind what changed by a twentieth of the run.
    const double weight = !is_delay     ? std::min(1.0, change) * kOfBytes
                          : longest > 0 ? std::fabs(*figure.after - *figure.before) / longest
                                        : 0;
    changes.push_back({weight, cat(part.title, ": ", figure.name, " ", change_of(figure))});
  }
}

std::vector<std::string> differences(const Run& a, const Run& b) {
  std::vector<std::string> texts;
  std::string jobs;
  const Totals x = totals_of(a), y = totals_of(b);
  const auto differ = [&jobs](double before, double after, std::string_view one) {
    if (before == after) return;
    jobs += cat(jobs.empty() ? "" : "; ", count_text(before), " and ", count_of(after, one));
  };
  differ(a.compute_ranks, b.compute_ranks, "compute rank");
  differ(a.servers, b.servers, "server");
  differ(a.nodes, b.nodes, "node");
  differ(x.steps, y.steps, "step");
  if (!jobs.empty())
    texts.push_back(cat("The jobs are not the same: ", jobs, ". Means of a process are compared."));
  for (const Run* run : {&a, &b}) {
    for (const std::string& remark : remarks(*run)) texts.push_back(cat(plain(run->path), ": ", remark));
    if (run->state == State::running || run->state == State::failed)
      texts.push_back(cat(plain(run->path),
                          run->state == State::running ? ": the run has not ended." : ": the run failed."));
  }
  return texts;
}

bool have_times(const Run& a, const Run& b) { return !a.processes.empty() && !b.processes.empty(); }

std::vector<std::string> told(std::vector<Change> changes, const Run& a, const Run& b) {
  std::ranges::stable_sort(changes, std::greater<>(), &Change::weight);
  if (changes.size() > kMostChanges) changes.resize(kMostChanges);
  std::vector<std::string> texts;
  for (Change& change : changes) texts.push_back(std::move(change.text));
  if (texts.empty())
    texts.push_back(have_times(a, b) ? "No routine changed by more than 0.5 % of the run."
                                     : "No stream changed by more than 5 %.");
  return texts;
}

}  // namespace

Comparison compare(const Run& before, const Run& after) {
  Comparison comparison;
  std::vector<Change> changes;
  const double longest = std::max(elapsed_of(before), elapsed_of(after));
  comparison.parts.push_back(whole(before, after));
  const Compared& elapsed = comparison.parts.front().figures.front();
  if (longest > 0 && elapsed.before && elapsed.after &&
      std::fabs(*elapsed.after - *elapsed.before) >= kOfRun * longest)
    changes.push_back(
        {std::fabs(*elapsed.after - *elapsed.before) / longest, "elapsed: " + change_of(elapsed)});
  const std::vector<RoleFigures> ours = figures_of(before), theirs = figures_of(after);
  for (const RoleFigures& role : ours) {
    comparison.parts.push_back(role_part(&role, role_in(theirs, role)));
    add_changes(comparison.parts.back(), role, longest, changes);
  }
  for (const RoleFigures& role : theirs) {
    if (role_in(ours, role) == nullptr) comparison.parts.push_back(role_part(nullptr, &role));
  }
  for (const Stream& stream : before.streams) {
    comparison.parts.push_back(stream_part(&stream, stream_in(after, stream)));
    add_stream_changes(comparison.parts.back(), longest, changes);
  }
  for (const Stream& stream : after.streams) {
    if (stream_in(before, stream) == nullptr) comparison.parts.push_back(stream_part(nullptr, &stream));
  }
  comparison.changes = told(std::move(changes), before, after);
  comparison.remarks = differences(before, after);
  return comparison;
}

std::string text_of(Unit unit, const std::optional<double>& value) {
  if (!value) return std::string(unknown);
  switch (unit) {
    case Unit::seconds:
      return seconds_text(*value);
    case Unit::bytes:
      return bytes_text(*value);
    case Unit::bytes_per_second:
      return bytes_text(*value) + "/s";
    case Unit::share:
      return percent_text(*value);
    case Unit::count:
      return count_text(*value);
  }
  return {};
}

std::vector<Titled> comparison_tables(const Comparison& comparison) {
  std::vector<Titled> tables;
  for (const ComparedPart& part : comparison.parts) {
    const bool has_sums = std::ranges::any_of(
        part.figures, [](const Compared& each) { return each.sum_before || each.sum_after; });
    Titled table{part.title, {{"", "first", "second", "change"}}, 1};
    if (has_sums) table.cells[0].insert(table.cells[0].end(), {"first, summed", "second, summed"});
    for (const Compared& each : part.figures) {
      std::vector<std::string> line{
          plain(each.name), text_of(each.unit, each.before), text_of(each.unit, each.after),
          each.before && each.after ? change_text(*each.before, *each.after) : std::string(unknown)};
      if (has_sums)
        line.insert(line.end(), {text_of(each.unit, each.sum_before), text_of(each.unit, each.sum_after)});
      table.cells.push_back(std::move(line));
    }
    tables.push_back(std::move(table));
  }
  return tables;
}

std::string comparison_text(const Run& before, const Run& after, std::size_t width) {
  const Comparison comparison = compare(before, after);
  std::string out = cat("first:  ", wrapped(headline(before).front(), width - 8, "        "),
                        "\nsecond: ", wrapped(headline(after).front(), width - 8, "        "), "\n");
  for (const std::string& remark : comparison.remarks)
    out += cat("note: ", wrapped(remark, width - 6, "      "), "\n");
  out += "\nwhat changed most\n";
  for (const std::string& change : comparison.changes)
    out += cat("  - ", wrapped(change, width - 4, "    "), "\n");
  for (const Titled& table : comparison_tables(comparison))
    out += cat("\n", wrapped(table.title, width, "  "), "\n", table_text(table.cells, table.left, width));
  return out;
}

}  // namespace tailrace::reports
