// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "figures.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "ground/base/text.hpp"
#include "words.hpp"

namespace tailrace::reports {

namespace {

const Seconds& seconds_of(const Process& process, bool of_threads) {
  return of_threads ? process.thread_routines : process.routines;
}

/// The seconds that the threads of a process have lived: what its routines sum up to, if the report does not
/// say.
double lived(const Process& process, bool of_threads) {
  const double told = of_threads ? process.threads * process.elapsed : process.elapsed;
  double sum = 0;
  for (const auto& [name, seconds] : seconds_of(process, of_threads)) sum += seconds;
  return std::max(told, sum);
}

/// Returns where a routine stands in tables: unknown ones last.
std::size_t place_of(const std::string& name) {
  std::size_t place = 0;
  for (const Routine& routine : routines()) {
    if (routine.name == name) break;
    ++place;
  }
  return place;
}

double median_of(const std::vector<double>& sorted) {
  const std::size_t half = sorted.size() / 2;
  if (sorted.empty()) return 0;
  return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

/// Returns the figures of a routine from its seconds on each process that has it; the others spent none in
/// it.
RoutineFigures figures_of(const std::string& name, std::vector<double> values, const RoleFigures& role) {
  values.resize(std::max(values.size(), static_cast<std::size_t>(role.processes)), 0.0);
  std::ranges::sort(values);
  RoutineFigures figures;
  figures.name = name;
  figures.kind = routine_named(name).kind;
  figures.sum = std::accumulate(values.begin(), values.end(), 0.0);
  figures.share = role.seconds > 0 ? figures.sum / role.seconds : 0;
  figures.least = values.front();
  figures.median = median_of(values);
  figures.most = values.back();
  return figures;
}

RoleFigures figures_of(const Run& run, const std::string& role, bool of_threads) {
  RoleFigures figures;
  figures.role = role;
  figures.of_threads = of_threads;
  std::map<std::string, std::vector<double>> values;
  for (const Process& process : run.processes) {
    if (process.role != role || seconds_of(process, of_threads).empty()) continue;
    ++figures.processes;
    figures.threads += of_threads ? process.threads : 1;
    figures.seconds += lived(process, of_threads);
    for (const auto& [name, seconds] : seconds_of(process, of_threads)) values[name].push_back(seconds);
  }
  for (const auto& [name, each] : values) figures.routines.push_back(figures_of(name, each, figures));
  std::ranges::stable_sort(figures.routines, {},
                           [](const RoutineFigures& routine) { return place_of(routine.name); });
  return figures;
}

/// Returns the roles of a run: those that compute first, then others in the order of the report.
std::vector<std::string> roles_of(const Run& run) {
  std::vector<std::string> roles;
  for (const Process& process : run.processes) {
    if (std::ranges::count(roles, process.role) == 0) roles.push_back(process.role);
  }
  std::ranges::stable_partition(roles, [](const std::string& role) { return role.starts_with("compute"); });
  return roles;
}

}  // namespace

std::string RoleFigures::title() const {
  std::string name = shortened(plain(role), 40);
  if (role == "compute") name = "compute ranks";
  if (role == "server") name = "servers";
  if (role == "compute and server") name = "ranks that compute and write";
  return of_threads ? "threads of " + name : name;
}

double RoleFigures::of(Kind kind) const {
  double sum = 0;
  for (const RoutineFigures& routine : routines) {
    if (routine.kind == kind) sum += routine.sum;
  }
  return sum;
}

std::vector<RoleFigures> figures_of(const Run& run) {
  std::vector<RoleFigures> all;
  for (const std::string& role : roles_of(run)) {
    for (const bool of_threads : {false, true}) {
      RoleFigures figures = figures_of(run, role, of_threads);
      if (figures.processes > 0) all.push_back(std::move(figures));
    }
  }
  return all;
}

bool computes(const Process& process) { return process.role.starts_with("compute"); }
bool serves(const Process& process) { return process.role.ends_with("server"); }

Share share_of(const Process& process, bool of_threads, std::initializer_list<std::string_view> names) {
  Share share{0, lived(process, of_threads), 1};
  for (const auto& [name, seconds] : seconds_of(process, of_threads)) {
    if (std::ranges::count(names, std::string_view(name)) > 0) share.seconds += seconds;
  }
  return share;
}

Share share_of(const Run& run, bool (*chosen)(const Process&), bool of_threads,
               std::initializer_list<std::string_view> names) {
  Share all;
  for (const Process& process : run.processes) {
    if (!chosen(process)) continue;
    const Share share = share_of(process, of_threads, names);
    all.seconds += share.seconds;
    all.of += share.of;
    ++all.processes;
  }
  return all;
}

Share encoding_of(const Process& server) {
  Share share = share_of(server, true, {"encode", "assemble"});
  if (server.encoders > 0 && server.encoders < server.threads)
    share.of = std::max(share.seconds, server.encoders * server.elapsed);
  return share;
}

Share storing_of(const Process& server) {
  Share share = share_of(server, true, {"write", "fsync", "commit", "wait"});
  if (server.encoders > 0 && server.encoders < server.threads)
    share.of = std::max(share.seconds, (server.threads - server.encoders) * server.elapsed);
  return share;
}

double load_of(const Process& server) {
  const Share own = share_of(server, false, {"idle"}), threads = share_of(server, true, {"idle"});
  double load = std::max(encoding_of(server).value(), storing_of(server).value());
  for (const Share& share : {own, threads}) {
    if (share.of > 0) load = std::max(load, 1 - share.value());
  }
  return std::clamp(load, 0.0, 1.0);
}

Totals totals_of(const Run& run) {
  Totals totals;
  double blocked = 0;
  for (const Stream& stream : run.streams) {
    (stream.is_input ? totals.inputs : totals.streams) += 1;
    totals.bytes_read += stream.bytes_read;
    blocked += stream.blocked.sum;
    if (stream.is_input) continue;
    totals.steps += stream.steps;
    if (stream.files) totals.files = totals.files.value_or(0) + *stream.files;
    if (stream.durable_steps) totals.durable_steps = totals.durable_steps.value_or(0) + *stream.durable_steps;
    totals.bytes_captured += stream.bytes_captured;
    totals.bytes_written += stream.bytes_written;
    totals.bytes_durable += stream.durable_bytes.value_or(stream.bytes_written);
    totals.failed_steps += stream.failed_steps;
    const double mean = stream.steps > 0 ? stream.bytes_captured / stream.steps : 0;
    totals.staged_per_step += stream.bytes_staged_per_step.value_or(mean);
  }
  if (run.compute_ranks > 0) totals.blocked = blocked / run.compute_ranks;
  return totals;
}

}  // namespace tailrace::reports
