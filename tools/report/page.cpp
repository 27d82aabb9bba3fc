// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "page.hpp"

#include <algorithm>
#include <cmath>

#include "advice.hpp"
#include "charts.hpp"
#include "comparison.hpp"
#include "ground/base/text.hpp"
#include "page_style.hpp"
#include "tables.hpp"

namespace tailrace::reports {

namespace {

/// A chart has a bar for each process of a role up to so many; beyond, a bar is a group of processes.
constexpr std::size_t kMostBars = 64, kGroups = 32;
/// Charts and lists of streams end here; the tables go on.
constexpr std::size_t kMostStreams = 40;

std::string style_of(const std::string& routine) {
  return routine_named(routine).name.empty() ? "k-other" : cat("k-", routine);
}

std::string paragraph(std::string_view style, std::string_view text) {
  return cat("<p class=\"", style, "\">", escaped(text), "</p>\n");
}

std::string table_html(const Titled& table) {
  std::string out = cat("<div class=\"scroll\"><table><caption>", escaped(table.title), "</caption>\n");
  for (std::size_t i = 0; i < table.cells.size(); ++i) {
    out += i == 0 ? "<thead><tr>" : i == 1 ? "<tbody><tr>" : "<tr>";
    for (std::size_t column = 0; column < table.cells[i].size(); ++column) {
      const bool is_head = i == 0 || column == 0;
      out += cat(is_head ? "<th" : "<td",
                 i == 0        ? " scope=\"col\""
                 : column == 0 ? " scope=\"row\""
                               : "",
                 column < table.left ? " class=\"l\">" : ">", escaped(table.cells[i][column]),
                 is_head ? "</th>" : "</td>");
    }
    out += i == 0 ? "</tr></thead>\n" : "</tr>\n";
  }
  return out + (table.cells.size() > 1 ? "</tbody>" : "") + "</table></div>\n";
}

std::string legend_of(const std::vector<RoleFigures>& roles) {
  std::string out = "<ul class=\"legend\">\n";
  const auto add = [&out](const std::string& name) {
    out += cat("<li><i class=\"", style_of(name), "\"></i>", escaped(shortened(plain(name), 40)), "</li>\n");
  };
  std::vector<std::string> others;
  const auto is_there = [&roles](std::string_view name) {
    return std::ranges::any_of(roles, [name](const RoleFigures& role) {
      return std::ranges::any_of(
          role.routines, [name](const RoutineFigures& each) { return each.name == name && each.sum > 0; });
    });
  };
  for (const Routine& routine : routines()) {
    if (is_there(routine.name)) add(std::string(routine.name));
  }
  for (const RoleFigures& role : roles) {
    for (const RoutineFigures& each : role.routines) {
      if (style_of(each.name) == "k-other" && std::ranges::count(others, each.name) == 0)
        others.push_back(each.name);
    }
  }
  for (const std::string& name : others) add(name);
  return out + "</ul>\n";
}

/// Returns the bar of a role: shares of its time, or seconds of one of its threads.
StackedRow row_of(const RoleFigures& role, const std::string& label, bool in_seconds) {
  StackedRow row{label, {}};
  for (const RoutineFigures& each : role.routines) {
    const double seconds = role.threads > 0 ? each.sum / role.threads : 0;
    row.segments.push_back({style_of(each.name), in_seconds ? seconds : each.share,
                            cat(label, ": ", plain(each.name), " ", percent_text(each.share), ", ",
                                seconds_text(each.sum), " in all"),
                            cat(shortened(plain(each.name), 30), " ",
                                in_seconds ? seconds_text(seconds) : percent_text(each.share))});
  }
  return row;
}

std::string overview(const std::vector<RoleFigures>& roles) {
  StackedChart chart{"roles",
                     "Share of the time of each role by routine",
                     "One bar for each role; the tables below have the numbers",
                     {},
                     1};
  for (const RoleFigures& role : roles) chart.rows.push_back(row_of(role, role.title(), false));
  return cat("<section class=\"card\"><h2>Where the time went</h2>\n",
             paragraph("about",
                       "Shares of the time of all threads of a role. Waiting for MPI is blue, waiting for "
                       "storage orange, work of the library green."),
             legend_of(roles), "<div class=\"scroll\">", svg_of(chart), "</div></section>\n");
}

/// Returns a bar for each process of a role, or for each group of them.
StackedChart process_chart(const Run& run, const RoleFigures& role, const std::string& id) {
  std::vector<const Process*> processes;
  for (const Process& process : run.processes) {
    if (process.role == role.role && !(role.of_threads ? process.thread_routines : process.routines).empty())
      processes.push_back(&process);
  }
  const std::size_t all = processes.size(), size = all <= kMostBars ? 1 : (all + kGroups - 1) / kGroups;
  StackedChart chart{
      id,
      cat("Share of the time of each process by routine: ", role.title()),
      size == 1 ? "One bar for each rank" : cat("One bar for each ", size, " ranks, in the mean"),
      {},
      1};
  chart.is_dense = all > 12;
  for (std::size_t begin = 0; begin < all; begin += size) {
    const std::size_t end = std::min(all, begin + size);
    Run group;
    for (std::size_t i = begin; i < end; ++i) group.processes.push_back(*processes[i]);
    const std::string label = end - begin == 1
                                  ? cat("rank ", processes[begin]->rank)
                                  : cat("ranks ", processes[begin]->rank, " to ", processes[end - 1]->rank);
    for (const RoleFigures& figures : figures_of(group)) {
      if (figures.of_threads == role.of_threads) chart.rows.push_back(row_of(figures, label, false));
    }
  }
  return chart;
}

std::string role_card(const Run& run, const RoleFigures& role, std::size_t number) {
  const StackedChart chart = process_chart(run, role, cat("role", number));
  std::string out = cat("<section class=\"card\"><h2>",
                        escaped(upper_case(role.title().substr(0, 1)) + role.title().substr(1)), "</h2>\n");
  out += paragraph("about", chart.description + ". Point at a bar for its numbers.");
  out += cat(legend_of({role}), "<div class=\"scroll\">", svg_of(chart), "</div>\n",
             table_html(role_table(role)));
  if (role.processes > static_cast<double>(kMostBars))
    return out + paragraph("about", "tailrace report --processes prints a row for each of them.") +
           "</section>\n";
  return out + cat("<details><summary>Seconds of each process</summary>",
                   table_html(process_table(run, role)), "</details></section>\n");
}

/// Adds the delays of the streams that are written.
void add_ranges(const Run& run, std::string_view style, std::string_view behind, RangeChart& chart) {
  for (const Stream& stream : run.streams) {
    if (stream.is_input || stream.durable.count < 1 || chart.rows.size() >= kMostStreams) continue;
    chart.rows.push_back({cat(plain(stream.name), behind), std::string(style), stream.durable.median,
                          stream.durable.p99, stream.durable.most});
  }
}

std::string durable_chart(RangeChart chart) {
  if (chart.rows.empty()) return "";
  return cat("<h3>Time to durable</h3>\n",
             paragraph("about",
                       "From the end of a step until it is on storage: median (circle), p99 (bar) and max "
                       "(diamond), on a logarithmic axis."),
             "<div class=\"scroll\">", svg_of(chart), "</div>\n");
}

std::string bytes_chart(const Run& run) {
  StackedChart chart{"bytes",
                     "Bytes captured and written by each stream",
                     "Two bars for each stream",
                     {},
                     0,
                     StackedChart::Axis::bytes};
  for (const Stream& stream : run.streams) {
    if (stream.is_input || stream.bytes_captured <= 0 || chart.rows.size() >= 2 * kMostStreams) continue;
    const std::string name = plain(stream.name), captured = bytes_text(stream.bytes_captured),
                      written = bytes_text(stream.bytes_written);
    chart.rows.push_back(
        {name,
         {{"k-capture", stream.bytes_captured, cat(name, ": captured ", captured), "captured " + captured}}});
    chart.rows.push_back(
        {cat("ratio ", ratio_text(stream.bytes_captured, stream.bytes_written)),
         {{"k-write", stream.bytes_written, cat(name, ": written ", written), "written " + written}}});
  }
  if (chart.rows.empty()) return "";
  return cat(
      "<h3>Bytes</h3>\n<ul class=\"legend\"><li><i class=\"k-capture\"></i>captured</li><li><i "
      "class=\"k-write\"></i>written</li></ul>\n<div class=\"scroll\">",
      svg_of(chart), "</div>\n");
}

std::string streams_card(const Run& run) {
  const Titled output = output_table(run), input = input_table(run);
  std::string out;
  if (output.cells.size() > 1) {
    RangeChart chart{"durable", "Seconds to durable of each stream", "Median, p99 and max", {}};
    add_ranges(run, "first", "", chart);
    out += cat("<section class=\"card\"><h2>Streams that are written</h2>\n", durable_chart(std::move(chart)),
               bytes_chart(run), table_html(output));
    for (const std::string& note : stream_notes(run)) out += paragraph("about", note);
    out += "</section>\n";
  }
  if (input.cells.size() > 1)
    out += cat("<section class=\"card\"><h2>Streams that are read</h2>\n", table_html(input), "</section>\n");
  return out;
}

std::string tile(std::string_view label, const std::string& value, const std::string& note) {
  return cat("<div class=\"tile\"><div class=\"label\">", escaped(label), "</div><div class=\"value\">",
             escaped(value), "</div><div class=\"note\">", escaped(note), "</div></div>\n");
}

std::string tiles_of(const Run& run) {
  const Totals totals = totals_of(run);
  const double elapsed = run.elapsed.value_or(0);
  std::string out = "<div class=\"tiles\">\n";
  out += tile("elapsed", run.elapsed ? seconds_text(elapsed) : std::string(unknown),
              std::string(name_of(run.state)));
  out += tile("written", bytes_text(totals.bytes_written),
              totals.bytes_written > 0 ? cat(ratio_text(totals.bytes_captured, totals.bytes_written), " of ",
                                             bytes_text(totals.bytes_captured))
                                       : "");
  out += tile("rate to durable",
              elapsed > 0 ? bytes_text(totals.bytes_durable / elapsed) + "/s" : std::string(unknown),
              "over the run");
  out += tile(
      "a rank in calls", seconds_text(totals.blocked),
      elapsed > 0 ? percent_text(totals.blocked / elapsed) + " of the time, in the mean" : "in the mean");
  return out + "</div>\n";
}

/// Returns the sentence with its setting marked, and the setting behind it if the sentence does not name it.
std::string advice_item(const Advice& advice) {
  std::string text = escaped(advice.text);
  if (advice.set.empty()) return text;
  const std::string set = escaped(advice.set), marked = cat("<code>", set, "</code>");
  const std::size_t found = text.find(set);
  return found == std::string::npos ? cat(text, " ", marked) : text.replace(found, set.size(), marked);
}

std::string advice_html(const Run& run) {
  std::string out = cat("<section class=\"advice\"><h2>",
                        run.state == State::running ? "Advice so far" : "Advice", "</h2>\n");
  const std::vector<Advice> all = advise(run);
  if (all.empty()) return out + paragraph("about", no_advice(run)) + "</section>\n";
  out += "<ol>\n";
  for (const Advice& advice : all) {
    out += cat("<li>", advice_item(advice), "</li>\n");
  }
  return out + "</ol></section>\n";
}

std::string remarks_html(const std::vector<std::string>& all) {
  if (all.empty()) return "";
  std::string out = "<ul class=\"remarks\">\n";
  for (const std::string& remark : all) out += cat("<li>", escaped(remark), "</li>\n");
  return out + "</ul>\n";
}

std::string whole_page(const std::string& title, const std::string& body) {
  return cat(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" "
      "content=\"light dark\">\n<title>",
      escaped(title), "</title>\n<style>", page_style,
      "</style>\n</head>\n<body>\n<main>\n<div class=\"brand\">Tailrace</div>\n", body,
      "<footer>Written by tailrace report. docs/reports.md says what each routine is and what to do about "
      "it.</footer>\n</main>\n</body>\n</html>\n");
}

std::string base_name(const std::string& path) { return plain(path.substr(path.find_last_of('/') + 1)); }

/// Returns a chart of both runs: for each role two bars of the seconds of a thread.
std::string compared_chart(const Run& before, const Run& after) {
  StackedChart chart{"roles",
                     "Seconds of a thread of each role by routine, in both runs",
                     "Two bars for each role",
                     {},
                     0,
                     StackedChart::Axis::seconds};
  std::vector<RoleFigures> all = figures_of(before);
  const std::vector<RoleFigures> theirs = figures_of(after);
  const auto add = [&chart](const std::vector<RoleFigures>& roles, const RoleFigures& role,
                            std::string_view which) {
    for (const RoleFigures& each : roles) {
      if (each.title() == role.title())
        chart.rows.push_back(row_of(each, cat(each.title(), ", ", which), true));
    }
  };
  const std::vector<RoleFigures> ours = all;
  for (const RoleFigures& role : theirs) {
    if (std::ranges::none_of(ours, [&](const RoleFigures& each) { return each.title() == role.title(); }))
      all.push_back(role);
  }
  for (const RoleFigures& role : all) {
    add(ours, role, "first");
    add(theirs, role, "second");
  }
  if (chart.rows.empty()) return "";
  all.insert(all.end(), theirs.begin(), theirs.end());
  return cat("<section class=\"card\"><h2>Where the time went</h2>\n",
             paragraph("about", "Seconds of one thread, in the mean of its role."), legend_of(all),
             "<div class=\"scroll\">", svg_of(chart), "</div></section>\n");
}

}  // namespace

std::string page_of(const Run& run) {
  const std::vector<std::string> lines = headline(run);
  std::string body = cat("<h1>", escaped(base_name(run.path)), "</h1>\n");
  for (const std::string& line : lines)
    body += paragraph(line.starts_with("error: ") ? "error" : "lead", line);
  body += tiles_of(run) + advice_html(run) + remarks_html(remarks(run));
  const std::vector<RoleFigures> roles = figures_of(run);
  if (!roles.empty()) body += overview(roles);
  for (std::size_t i = 0; i < roles.size(); ++i) body += role_card(run, roles[i], i);
  return whole_page(base_name(run.path) + ": a run of Tailrace", body + streams_card(run));
}

std::string page_of(const Run& before, const Run& after) {
  const Comparison comparison = compare(before, after);
  const std::string title = cat(base_name(before.path), " and ", base_name(after.path));
  std::string body =
      cat("<h1>", escaped(title), "</h1>\n", paragraph("lead", "first: " + headline(before).front()),
          paragraph("lead", "second: " + headline(after).front()));
  body += "<section class=\"advice\"><h2>What changed most</h2>\n<ol>\n";
  for (const std::string& change : comparison.changes) body += cat("<li>", escaped(change), "</li>\n");
  body += cat("</ol></section>\n", remarks_html(comparison.remarks), compared_chart(before, after));
  RangeChart chart{"durable", "Seconds to durable of each stream in both runs", "Median, p99 and max", {}};
  add_ranges(before, "first", ", first", chart);
  add_ranges(after, "second", ", second", chart);
  std::ranges::stable_sort(chart.rows, {}, [](const RangeRow& row) { return row.label; });
  if (!chart.rows.empty())
    body +=
        cat("<section class=\"card\"><h2>Streams</h2>\n", durable_chart(std::move(chart)), "</section>\n");
  body += "<section class=\"card\"><h2>All figures</h2>\n";
  for (const Titled& table : comparison_tables(comparison)) body += table_html(table);
  return whole_page(title + ": two runs of Tailrace", body + "</section>\n");
}

}  // namespace tailrace::reports
