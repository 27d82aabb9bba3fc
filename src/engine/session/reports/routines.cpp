// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/session/reports/routines.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <numeric>

#include "engine/pipeline/method.hpp"
#include "ground/base/text.hpp"

namespace tailrace::session {

namespace {

using comm::Routine;
using pipeline::Counters;
using pipeline::Statistics;

/// The workers of a server have spent so many nanoseconds on each kind of job, all of them together.
struct Jobs {
  std::int64_t encode = 0, assemble = 0, write = 0, fsync = 0, commit = 0, wait = 0;

  [[nodiscard]] std::int64_t sum() const { return encode + assemble + write + fsync + commit + wait; }
  [[nodiscard]] RoutineTimes times() const {
    return {{"encode", encode}, {"assemble", assemble}, {"write", write},
            {"fsync", fsync},   {"commit", commit},     {"wait", wait}};
  }
};

/// Returns the jobs of workers. Those of the thread that makes collective calls go to `calls`.
Jobs jobs_of(const Statistics& statistics, Jobs& calls) {
  Jobs jobs;
  for (const auto& [name, counters] : statistics.streams) {
    const bool is_collective = pipeline::methods()[static_cast<std::size_t>(counters.method)].is_collective;
    jobs.encode += counters.encode;
    jobs.assemble += counters.assemble;
    jobs.commit += counters.commit;
    jobs.wait += counters.wait;
    Jobs& writing = is_collective ? calls : jobs;
    writing.write += counters.write;
    writing.fsync += counters.sync;
  }
  return jobs;
}

std::int64_t sum_of(const RoutineTimes& times) {
  return std::accumulate(times.begin(), times.end(), std::int64_t{0},
                         [](std::int64_t sum, const auto& each) { return sum + each.second; });
}

/// The routines of an own thread by the names that the report has for them, in its order.
constexpr std::array<std::pair<Routine, std::string_view>, 12> own_names{{
    {Routine::capture, "capture"},
    {Routine::staging_full, "staging_full"},
    {Routine::skew, "skew"},
    {Routine::assemble, "assemble"},
    {Routine::message, "message"},
    {Routine::barrier, "barrier"},
    {Routine::get_wait, "get_wait"},
    {Routine::wait_for_messages, "wait_for_messages"},
    {Routine::wait_for_encoding, "wait_for_encoding"},
    {Routine::wait_for_storage, "wait_for_storage"},
    {Routine::idle, "idle"},
    {Routine::model, "model"},
}};

bool belongs_to(Routine routine, Role role) {
  switch (routine) {
    case Routine::message:
    case Routine::barrier:
    case Routine::wait_for_storage:
      return true;
    case Routine::assemble:
      return role != Role::compute;
    case Routine::wait_for_messages:
    case Routine::wait_for_encoding:
    case Routine::idle:
      return role == Role::server;
    default:
      return role != Role::server;
  }
}

std::string seconds_text(std::int64_t nanoseconds) {
  const double seconds = static_cast<double>(nanoseconds) * 1e-9;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), seconds < 10 ? "%.1f s" : "%.0f s", seconds);
  return text.data();
}

/// Returns "512 bytes", "184 MB", "3.9 GB".
std::string bytes_text(std::int64_t bytes) {
  if (bytes < 1000) return counted(bytes, "byte");
  double value = static_cast<double>(bytes);
  std::string_view unit;
  for (const std::string_view each : {"kB", "MB", "GB", "TB"}) {
    if (value < 999.5) break;
    value /= 1000;
    unit = each;
  }
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), value < 9.95 ? "%.1f " : "%.0f ", value);
  return cat(text.data(), unit);
}

Counters sums_of(const std::map<int, Statistics>& all) {
  Counters sums;
  for (const auto& [rank, statistics] : all) {
    for (const auto& [name, counters] : statistics.streams) {
      for (std::int64_t Counters::*each :
           {&Counters::files, &Counters::durable_steps, &Counters::durable_bytes, &Counters::failed_steps,
            &Counters::records_read, &Counters::read_bytes})
        sums.*each += counters.*each;
    }
  }
  return sums;
}

/// Says what was written, and whether it is durable.
std::string written_text(const Counters& sums, bool has_error) {
  if (sums.files == 0 && sums.durable_steps == 0 && sums.failed_steps == 0) return {};
  std::string text = counted(sums.files, "file");
  if (sums.durable_bytes > 0) text += cat(", ", bytes_text(sums.durable_bytes));
  if (sums.failed_steps == 0 && !has_error) return cat(text, ", durable");
  if (sums.failed_steps == 0) return cat(text, " durable, but with an error");
  return cat(text, " durable, but ", sums.failed_steps, " of ",
             counted(sums.durable_steps + sums.failed_steps, "step"), " failed");
}

}  // namespace

std::vector<Role> roles_of(const exchange::Roster& roster) {
  if (roster.self_served) return std::vector<Role>(roster.compute_transport.size(), Role::compute_and_server);
  std::vector<Role> roles(roster.compute_transport.size() + roster.server_transport.size(), Role::compute);
  for (const int rank : roster.server_transport) roles[static_cast<std::size_t>(rank)] = Role::server;
  return roles;
}

std::string_view name_of(Role role) {
  constexpr std::array<std::string_view, 3> names{"compute", "server", "compute and server"};
  return names[static_cast<std::size_t>(role)];
}

RoutineTimes own_routines(Role role, const Statistics& statistics) {
  const pipeline::Process& process = statistics.process;
  RoutineTimes times;
  for (const auto& [routine, name] : own_names) {
    if (belongs_to(routine, role)) times.emplace_back(name, process.spent[routine]);
  }
  const auto at = [&times](std::string_view name) -> std::int64_t& {
    return std::ranges::find(times, name, &RoutineTimes::value_type::first)->second;
  };
  if (process.threads == 0 && role != Role::compute) {
    Jobs calls;
    for (const auto& [name, nanoseconds] : jobs_of(statistics, calls).times()) {
      if (name == "assemble")
        at(name) += nanoseconds;
      else
        times.emplace_back(name, nanoseconds);
    }
  }
  // A rank without workers does jobs on its own thread. The time around these jobs, and that of a job which
  // has not been counted yet, is in none of the figures above: `message` takes it, so that all sum to what
  // has elapsed.
  at("message") += process.elapsed - sum_of(times);
  return times;
}

std::int64_t threads_of(const Statistics& statistics) {
  return statistics.process.threads + statistics.process.makes_calls;
}

RoutineTimes thread_routines(const Statistics& statistics) {
  Jobs calls;
  Jobs jobs = jobs_of(statistics, calls);
  if (statistics.process.threads == 0) jobs = {};
  jobs.write += calls.write;
  jobs.fsync += calls.fsync;
  RoutineTimes times = jobs.times();
  times.emplace_back("idle", threads_of(statistics) * statistics.process.elapsed - jobs.sum());
  return times;
}

std::int64_t waited(const Statistics& statistics) {
  const pipeline::Process& process = statistics.process;
  return process.elapsed - process.spent[Routine::model] - process.spent[Routine::capture];
}

std::string error_of(const exchange::Roster& roster, const std::map<int, Statistics>& all) {
  for (const auto& [rank, statistics] : all) {
    if (!statistics.failed.empty()) return statistics.failed.begin()->second;
  }
  for (const int rank : roster.compute_transport) {
    const auto found = all.find(rank);
    if (found != all.end() && !found->second.error.empty()) return found->second.error;
  }
  return {};
}

std::string summary_of(const exchange::Roster& roster, const std::map<int, Statistics>& all) {
  const Counters sums = sums_of(all);
  std::string text = written_text(sums, !error_of(roster, all).empty());
  if (sums.records_read > 0)
    text += cat(text.empty() ? "" : "; ", "read ", counted(sums.records_read, "record"), ", ",
                bytes_text(sums.read_bytes));
  if (text.empty()) return text;
  std::int64_t longest = 0, of = 0;
  for (const int rank : roster.compute_transport) {
    const auto found = all.find(rank);
    if (found == all.end()) continue;
    longest = std::max(longest, waited(found->second));
    of = std::max(of, found->second.process.elapsed);
  }
  return cat(text, "; the model waited ", seconds_text(longest), " of ", seconds_text(of));
}

}  // namespace tailrace::session
