// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/session/reports/report.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <numeric>
#include <set>
#include <string_view>

#include "engine/pipeline/handoff_lanes.hpp"
#include "engine/pipeline/method.hpp"
#include "engine/session/reports/routines.hpp"
#include "ground/base/text.hpp"

#if TAILRACE_HAVE_JSON
#include <nlohmann/json.hpp>

#include "engine/session/reports/accuracy_report.hpp"
#endif

namespace tailrace::session {

#if TAILRACE_HAVE_JSON

namespace {

using nlohmann::ordered_json;
using pipeline::Counters;
using pipeline::Statistics;

/// The counters of one stream on some ranks.
using OfRanks = std::vector<const Counters*>;

/// Returns the value at fraction `q` of the sorted list (nearest rank).
double quantile(const std::vector<double>& sorted, double q) {
  if (sorted.empty()) return 0;
  const auto position = static_cast<std::size_t>(std::ceil(q * static_cast<double>(sorted.size())));
  return sorted[std::clamp<std::size_t>(position, 1, sorted.size()) - 1];
}

ordered_json spread(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {{"sum", std::accumulate(values.begin(), values.end(), 0.0)},
          {"median", quantile(values, 0.5)},
          {"p99", quantile(values, 0.99)},
          {"max", values.empty() ? 0 : values.back()},
          {"count", values.size()}};
}

/// Summarises one counter of time over the given ranks, in seconds.
ordered_json seconds(const OfRanks& ranks, std::int64_t Counters::*member) {
  std::vector<double> values;
  for (const Counters* counters : ranks) values.push_back(static_cast<double>(counters->*member) * 1e-9);
  return spread(std::move(values));
}

std::int64_t sum(const OfRanks& ranks, std::int64_t Counters::*member) {
  std::int64_t total = 0;
  for (const Counters* counters : ranks) total += counters->*member;
  return total;
}

std::int64_t most(const OfRanks& ranks, std::int64_t Counters::*member) {
  std::int64_t value = 0;
  for (const Counters* counters : ranks) value = std::max(value, counters->*member);
  return value;
}

std::string_view name_of_way(std::int64_t way) {
  constexpr std::array<std::string_view, 3> names{"calls", "posix_aio", "io_uring"};
  return names.at(static_cast<std::size_t>(way));
}

OfRanks of_stream(const std::map<int, Statistics>& all, const std::vector<int>& ranks,
                  const std::string& name) {
  OfRanks list;
  for (const int rank : ranks) {
    const auto statistics = all.find(rank);
    if (statistics == all.end()) continue;
    const auto found = statistics->second.streams.find(name);
    if (found != statistics->second.streams.end()) list.push_back(&found->second);
  }
  return list;
}

/// Tells of the files and steps of a stream that is written, as its root has counted them.
void tell_durable(ordered_json& report, const std::map<int, Statistics>& all, const OfRanks& servers,
                  const std::string& name) {
  report["files"] = sum(servers, &Counters::files);
  report["durable_steps"] = sum(servers, &Counters::durable_steps);
  report["durable_bytes"] = sum(servers, &Counters::durable_bytes);
  report["failed_steps"] = sum(servers, &Counters::failed_steps);
  for (const auto& [rank, statistics] : all) {
    if (const auto last = statistics.last_durable.find(name); last != statistics.last_durable.end())
      report["last_durable"] = last->second;
  }
}

ordered_json stream_report(const std::map<int, Statistics>& all, const exchange::Roster& roster,
                           const std::string& name) {
  const OfRanks compute = of_stream(all, roster.compute_transport, name);
  const OfRanks servers = of_stream(all, roster.server_transport, name);
  std::vector<double> durable;
  for (const auto& [rank, statistics] : all) {
    const auto found = statistics.durable.find(name);
    if (found != statistics.durable.end())
      durable.insert(durable.end(), found->second.begin(), found->second.end());
  }
  ordered_json report;
  report["name"] = name.substr(0, name.find('\n'));  // streams that are read have a second line
  report["steps"] = most(compute, &Counters::steps);
  if (most(compute, &Counters::is_input) > 0) {
    report["input"] = {{"gets_in_memory", sum(compute, &Counters::gets_in_memory)},
                       {"gets_late", sum(compute, &Counters::gets_late)},
                       {"wait_seconds", seconds(compute, &Counters::get_wait)},
                       {"records_read", sum(compute, &Counters::records_read)},
                       {"bytes_read", sum(compute, &Counters::read_bytes)}};
  } else {
    const auto& method = pipeline::methods()[static_cast<std::size_t>(most(servers, &Counters::method))];
    report["method"] = method.name;
    report["handoff"] =
        pipeline::taken_handoff(static_cast<pipeline::Handoff>(most(servers, &Counters::handoff)), roster);
    if (method.is_overlapped) report["writes_by"] = name_of_way(most(servers, &Counters::way));
    for (const auto& [rank, statistics] : all) {
      const auto why = statistics.why_method.find(name);
      if (why != statistics.why_method.end()) report["method_chosen"] = why->second;
    }
    const auto offsets = static_cast<pipeline::OffsetsBy>(most(servers, &Counters::offsets));
    if (offsets == pipeline::OffsetsBy::one_sided) report["offsets"] = "one-sided";
    if (offsets == pipeline::OffsetsBy::messages) report["offsets"] = "messages";
  }
  if (auto told = accuracy_report(all, name); !told.empty()) report["accuracy"] = std::move(told);
  tell_durable(report, all, servers, name);
  report["records"] = sum(servers, &Counters::records);
  report["bytes_captured"] = sum(compute, &Counters::captured_bytes);
  const std::int64_t steps = most(compute, &Counters::steps);
  report["bytes_staged_per_step"] = steps > 0 ? sum(compute, &Counters::captured_bytes) / steps : 0;
  report["bytes_in_intervals"] = sum(compute, &Counters::interval_bytes);
  report["bytes_written"] = sum(servers, &Counters::encoded_bytes);
  report["compute"] = {{"blocked_seconds", seconds(compute, &Counters::blocked)},
                       {"capture_seconds", seconds(compute, &Counters::capture)},
                       {"staging_full_seconds", seconds(compute, &Counters::staging_full)},
                       {"staging_full_count", sum(compute, &Counters::staging_full_count)},
                       {"skew_seconds", seconds(compute, &Counters::verdict_wait)}};
  report["servers"] = {{"assemble_seconds", seconds(servers, &Counters::assemble)},
                       {"encode_seconds", seconds(servers, &Counters::encode)},
                       {"write_seconds", seconds(servers, &Counters::write)},
                       {"fsync_seconds", seconds(servers, &Counters::sync)},
                       {"commit_seconds", seconds(servers, &Counters::commit)},
                       {"wait_seconds", seconds(servers, &Counters::wait)},
                       {"bytes_sent_between_nodes", sum(servers, &Counters::sent_bytes)},
                       {"workspace_peak_bytes", most(servers, &Counters::workspace_peak)},
                       {"rounds", most(servers, &Counters::rounds)},
                       {"waits_for_space", sum(servers, &Counters::space_waits)}};
  report["time_to_durable_seconds"] = spread(std::move(durable));
  return report;
}

std::string_view name_of(State state) {
  constexpr std::array<std::string_view, 3> names{"running", "ended", "failed"};
  return names[static_cast<std::size_t>(state)];
}

/// Returns a time in UTC, as "2026-11-30T21:49:53Z".
std::string utc(std::int64_t unix_seconds) {
  const std::time_t seconds = unix_seconds;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

double in_seconds(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; }

ordered_json table(const RoutineTimes& times) {
  ordered_json table = ordered_json::object();
  for (const auto& [name, nanoseconds] : times) table[std::string(name)] = in_seconds(nanoseconds);
  return table;
}

ordered_json process_report(int rank, Role role, const ReportFacts& facts, const Statistics& statistics) {
  const std::int64_t threads = threads_of(statistics);
  ordered_json report;
  report["rank"] = rank;
  report["role"] = name_of(role);
  report["node"] = facts.nodes[static_cast<std::size_t>(rank)];
  report["threads"] = role == Role::server ? threads : 1;
  if (role == Role::server) report["encoders"] = statistics.process.encoders;
  report["elapsed_seconds"] = in_seconds(statistics.process.elapsed);
  report["routines"] = table(own_routines(role, statistics));
  if (threads > 0) report["threads_routines"] = table(thread_routines(statistics));
  return report;
}

ordered_json all_processes(const ReportFacts& facts, const std::map<int, Statistics>& all) {
  const std::vector<Role> roles = roles_of(facts.roster);
  ordered_json processes = ordered_json::array();
  for (const auto& [rank, statistics] : all) {
    // A rank of which nothing was heard yet has no figures.
    if (statistics.process.elapsed > 0)
      processes.push_back(process_report(rank, roles[static_cast<std::size_t>(rank)], facts, statistics));
  }
  return processes;
}

/// Names of files need not be UTF-8, which JSON has to be.
std::string text_of(const ordered_json& report) {
  return report.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

/// The file may be anybody's.
bool has(const ordered_json& parsed, const char* key, std::string_view value) {
  if (!parsed.is_object() || !parsed.contains(key)) return false;
  return parsed[key].is_string() && parsed[key].get<std::string>() == value;
}

double elapsed_seconds(const std::map<int, Statistics>& all) {
  std::int64_t longest = 0;
  for (const auto& [rank, statistics] : all) longest = std::max(longest, statistics.process.elapsed);
  return in_seconds(longest);
}

}  // namespace

std::string report_text(const ReportFacts& facts, const std::map<int, Statistics>& all, State state) {
  std::set<std::string> names;
  for (const auto& [rank, statistics] : all) {
    for (const auto& [name, counters] : statistics.streams) names.insert(name);
  }
  const std::string error = error_of(facts.roster, all);
  ordered_json report;
  report["version"] = 2;
  report["tailrace"] = TAILRACE_VERSION;
  report["state"] = name_of(state);
  report["session"] = facts.session;
  if (!error.empty()) report["error"] = error;
  for (const auto& [rank, statistics] : all) {
    if (!statistics.stopped.empty()) report["stopped"] = statistics.stopped;
  }
  report["begun"] = utc(facts.begun);
  report["written"] = utc(std::time(nullptr));
  report["elapsed_seconds"] = elapsed_seconds(all);
  report["nodes"] = std::set<int>(facts.nodes.begin(), facts.nodes.end()).size();
  report["staging_bytes"] = facts.staging;
  report["compute_ranks"] = facts.roster.computes();
  report["servers"] = facts.roster.self_served ? 0 : facts.roster.servers();
  report["executor"] = facts.roster.self_served ? "inline" : "servers";
  report["processes"] = all_processes(facts, all);
  report["streams"] = ordered_json::array();
  for (const std::string& name : names) report["streams"].push_back(stream_report(all, facts.roster, name));
  return text_of(report);
}

std::optional<std::string> as_failed(const std::string& report, std::string_view session,
                                     std::string_view why) {
  ordered_json parsed = ordered_json::parse(report, nullptr, false);
  if (!has(parsed, "state", name_of(State::running)) || !has(parsed, "session", session)) return std::nullopt;
  parsed["state"] = name_of(State::failed);
  if (!why.empty()) parsed["error"] = why;
  parsed["written"] = utc(std::time(nullptr));
  return text_of(parsed);
}

bool is_running(std::string_view report, std::string_view session) {
  const std::string_view head = report.substr(0, head_of_report);
  return head.find(cat("\n  \"state\": \"", name_of(State::running), "\",\n")) != head.npos &&
         (session.empty() || head.find(cat("\n  \"session\": \"", session, "\",\n")) != head.npos);
}

bool has_reports() { return true; }

#else

std::string report_text(const ReportFacts&, const std::map<int, pipeline::Statistics>&, State) { return {}; }
std::optional<std::string> as_failed(const std::string&, std::string_view, std::string_view) {
  return std::nullopt;
}
bool is_running(std::string_view, std::string_view) { return false; }
bool has_reports() { return false; }

#endif

}  // namespace tailrace::session
