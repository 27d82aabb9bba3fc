// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/session/report.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <numeric>
#include <span>
#include <string_view>
#include <system_error>

#include "engine/pipeline/method.hpp"
#include "ground/base/text.hpp"
#include "ground/storage/temporary.hpp"

#if TAILRACE_HAVE_JSON
#include <nlohmann/json.hpp>

#include "engine/session/accuracy_report.hpp"
#endif

namespace tailrace::session {

#if TAILRACE_HAVE_JSON

namespace {

using nlohmann::ordered_json;
using pipeline::Counters;
using pipeline::Statistics;

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
ordered_json seconds(const std::vector<Counters>& ranks, std::int64_t Counters::*member) {
  std::vector<double> values;
  for (const Counters& counters : ranks) values.push_back(static_cast<double>(counters.*member) * 1e-9);
  return spread(std::move(values));
}

std::int64_t sum(const std::vector<Counters>& ranks, std::int64_t Counters::*member) {
  std::int64_t total = 0;
  for (const Counters& counters : ranks) total += counters.*member;
  return total;
}

std::int64_t most(const std::vector<Counters>& ranks, std::int64_t Counters::*member) {
  std::int64_t value = 0;
  for (const Counters& counters : ranks) value = std::max(value, counters.*member);
  return value;
}

std::string_view name_of_way(std::int64_t way) {
  constexpr std::array<std::string_view, 3> names{"calls", "posix_aio", "io_uring"};
  return names.at(static_cast<std::size_t>(way));
}

std::vector<Counters> of_stream(const std::map<int, Statistics>& all, const std::vector<int>& ranks,
                                const std::string& name) {
  std::vector<Counters> list;
  for (const int rank : ranks) {
    const auto statistics = all.find(rank);
    if (statistics == all.end()) continue;
    const auto found = statistics->second.streams.find(name);
    if (found != statistics->second.streams.end()) list.push_back(found->second);
  }
  return list;
}

ordered_json stream_report(const std::map<int, Statistics>& all, const exchange::Roster& roster,
                           const std::string& name) {
  const std::vector<Counters> compute = of_stream(all, roster.compute_transport, name);
  const std::vector<Counters> servers = of_stream(all, roster.server_transport, name);
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
  report["records"] = sum(servers, &Counters::records);
  report["bytes_captured"] = sum(compute, &Counters::captured_bytes);
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
                       {"bytes_sent_between_nodes", sum(servers, &Counters::sent_bytes)},
                       {"workspace_peak_bytes", most(servers, &Counters::workspace_peak)},
                       {"rounds", most(servers, &Counters::rounds)},
                       {"waits_for_space", sum(servers, &Counters::space_waits)}};
  report["time_to_durable_seconds"] = spread(std::move(durable));
  return report;
}

ordered_json trace_events(const std::map<int, Statistics>& all, const exchange::Roster& roster) {
  ordered_json events = ordered_json::array();
  for (const auto& [rank, statistics] : all) {
    const bool serves = !roster.self_served && std::ranges::count(roster.server_transport, rank) > 0;
    events.push_back({{"ph", "M"},
                      {"name", "process_name"},
                      {"pid", rank},
                      {"args", {{"name", cat(serves ? "server, rank " : "compute, rank ", rank)}}}});
    for (const pipeline::Span& span : statistics.spans) {
      events.push_back({{"ph", "X"},
                        {"name", span.name},
                        {"cat", "tailrace"},
                        {"pid", rank},
                        {"tid", span.thread},
                        {"ts", static_cast<double>(span.begin) * 1e-3},
                        {"dur", static_cast<double>(span.end - span.begin) * 1e-3}});
    }
  }
  return events;
}

/// Goes past storage::Target: a report tells of faults and throttles, which would strike it, too.
Status replace_file(const std::string& path, const std::string& text) {
  const Result<storage::Temporary> temporary = storage::make_temporary(path);
  TR_TRY(temporary.status());
  Status status = temporary->file->write(std::as_bytes(std::span(text)), 0);
  if (status.is_ok()) status = temporary->file->close();
  if (status.is_ok() && std::rename(temporary->name.c_str(), path.c_str()) != 0)
    status = io_error("rename", path, errno);
  if (!status.is_ok()) std::remove(temporary->name.c_str());  // the first error is the one that is told
  return status;
}

/// Tests whether replace_file could write the file, and leaves nothing behind.
Status check_file(const std::string& path) {
  if (path.empty()) return {};
  std::error_code unknown;  // if this fails, opening a file beside it gives the reason
  if (std::filesystem::is_directory(path, unknown)) return io_error("write", path, EISDIR);
  const Result<storage::Temporary> temporary = storage::make_temporary(path);
  TR_TRY(temporary.status());
  if (std::remove(temporary->name.c_str()) != 0) return io_error("remove", temporary->name, errno);
  return {};
}

}  // namespace

Status check_report(const Settings& settings) {
  TR_TRY(check_file(settings.report).in("TAILRACE_REPORT"));
  return check_file(settings.trace).in("TAILRACE_TRACE");
}

Status write_report(const Settings& settings, const exchange::Roster& roster,
                    const std::map<int, pipeline::Statistics>& all) {
  Status status;
  if (!settings.report.empty()) {
    std::vector<std::string> names;
    for (const auto& [rank, statistics] : all) {
      for (const auto& [name, counters] : statistics.streams) {
        if (std::ranges::count(names, name) == 0) names.push_back(name);
      }
    }
    ordered_json report;
    report["compute_ranks"] = roster.computes();
    report["servers"] = roster.self_served ? 0 : roster.servers();
    report["executor"] = roster.self_served ? "inline" : "servers";
    report["streams"] = ordered_json::array();
    for (const std::string& name : names) report["streams"].push_back(stream_report(all, roster, name));
    status = replace_file(settings.report, report.dump(2) + "\n");
  }
  if (!settings.trace.empty()) {
    const ordered_json trace = {{"displayTimeUnit", "ms"}, {"traceEvents", trace_events(all, roster)}};
    status = first_cause(status, replace_file(settings.trace, trace.dump() + "\n"));
  }
  return status;
}

#else

Status check_report(const Settings& settings) { return write_report(settings, {}, {}); }

Status write_report(const Settings& settings, const exchange::Roster&,
                    const std::map<int, pipeline::Statistics>&) {
  if (settings.report.empty() && settings.trace.empty()) return {};
  return {Code::unsupported, "TAILRACE_REPORT and TAILRACE_TRACE need a build with nlohmann-json"};
}

#endif

}  // namespace tailrace::session
