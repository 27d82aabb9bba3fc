// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Where the time of simulated ranks and servers goes, and the report of the running session.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <thread>

#include "engine/session/reports/report.hpp"
#include "engine/session/reports/routines.hpp"
#include "formats/registry/registry.hpp"
#include "ground/base/text.hpp"
#include "scenario.hpp"
#include "tailrace/encoders.h"

namespace tailrace::sim {
namespace report_test {

using session::Role;
using session::RoutineTimes;

constexpr Nanoseconds second = 1'000'000'000;

std::int64_t in(const RoutineTimes& times, std::string_view name) {
  const auto found = std::ranges::find(times, name, &RoutineTimes::value_type::first);
  return found == times.end() ? -1 : found->second;
}

void expect_sum(const RoutineTimes& times, std::int64_t expected, const std::string& where) {
  std::int64_t sum = 0;
  for (const auto& [name, nanoseconds] : times) {
    EXPECT_GE(nanoseconds, 0) << where << name;
    sum += nanoseconds;
  }
  EXPECT_EQ(sum, expected) << where;
}

/// The figures of a process at the end of its program, or of its service.
struct Figures {
  Role role = Role::compute;
  pipeline::Statistics statistics;

  [[nodiscard]] RoutineTimes own() const { return own_routines(role, statistics); }
};

/// Where processes pay for encoding. Encoders stay registered as long as the process lives.
Disk* encoding_disk = nullptr;

/// Appends the values as they are, and charges for them.
int encode_paid(const tr_record* record, tr_encoded* out, void*, void*) {
  encoding_disk->charge_encoding(4 * record->count);
  return tr_encoded_append(out, record->values, 4 * record->count);
}

bool register_paid() {
  tr_encoder functions = TR_ENCODER;
  functions.encode = encode_paid;
  return formats::register_encoder("paid", &functions, nullptr).is_ok();
}

/// Runs a job and returns the figures of all processes, servers first. `between` runs behind each step.
std::vector<Figures> figures_of(Job job, const Scenario& scenario,
                                const std::function<void(SessionRank&)>& between = {}) {
  std::vector<Figures> all;
  const auto note = [&all](session::Session& session, Role role) {
    pipeline::Statistics statistics = session.statistics();
    statistics.process = session.spent();
    all.push_back({role, std::move(statistics)});
  };
  job.on_server = [&](session::Session& session) {
    return std::shared_ptr<void>(&all, [&session, note](void*) { note(session, Role::server); });
  };
  SessionWorld world(job);
  if (job.costs) encoding_disk = &world.disk();
  std::map<int, Arrays> arrays;
  const Texts stuck = world.run([&](SessionRank& rank) {
    PlannedStream stream(rank, scenario.plan);
    EXPECT_TRUE(stream.create().is_ok());
    for (std::int64_t step = 0; step < scenario.steps; ++step) {
      stream.begin(step * 3600);
      for (int field = 0; field < static_cast<int>(scenario.variables.size()); ++field) {
        std::vector<float>& array = arrays[rank.rank()][{step, field}];
        array = array_of(*scenario.plan, rank.rank(), field, step);
        stream.put(field, reinterpret_cast<const std::byte*>(array.data()));
      }
      EXPECT_TRUE(stream.end().is_ok());
      if (between) between(rank);
    }
    EXPECT_TRUE(stream.close().is_ok());
    note(rank.session(),
         rank.session().topology().roster().self_served ? Role::compute_and_server : Role::compute);
  });
  EXPECT_TRUE(stuck.empty()) << text_of(stuck);
  std::ranges::stable_sort(all, {}, [](const Figures& each) { return each.role != Role::server; });
  return all;
}

TEST(sim_report, the_times_of_all_processes_sum_to_what_has_elapsed) {
  for (std::uint64_t seed = 1; seed <= seeds(60); ++seed) {
    Scheduler dice(seed * 7919);
    const int ranks = static_cast<int>(dice.random(1, 5));
    const int servers = static_cast<int>(dice.random(0, 3));
    Scenario scenario;
    scenario.format = any_format(seed);
    scenario.method = any_method(seed);
    scenario.variables = random_variables(dice, ranks);
    scenario.prepare();
    Job job;
    job.nodes = random_nodes(dice, ranks, servers);
    job.seed = seed;
    job.threads = static_cast<int>(dice.random(1, 3));
    if (dice.once_in(2)) job.disk_bytes_per_second = 1e6;
    if (dice.once_in(3)) squeeze(job, *scenario.plan);
    for (const Figures& each : figures_of(job, scenario)) {
      const std::string where =
          cat("seed ", seed, ", ", scenario.format, ", ", scenario.method, ", ", name_of(each.role), ": ");
      const pipeline::Process& process = each.statistics.process;
      EXPECT_GT(process.elapsed, 0) << where;
      expect_sum(each.own(), process.elapsed, where);
      const std::int64_t threads = session::threads_of(each.statistics);
      expect_sum(session::thread_routines(each.statistics), threads * process.elapsed, where);
      EXPECT_EQ(threads > 0, each.role == Role::server || process.makes_calls > 0) << where;
    }
    if (HasFailure()) return;
  }
}

Scenario one_field(int steps) {
  Scenario scenario;
  scenario.variables = {{"t", *layout::Layout::block({40, 40}, 2), "levels=hybrid:1-4"}};
  scenario.steps = steps;
  scenario.prepare();
  return scenario;
}

TEST(sim_report, a_server_of_slow_storage_waits_for_it_and_the_model_for_room) {
  Job job;
  job.nodes = {{2, 1}};
  job.disk_bytes_per_second = 1e5;
  Scenario scenario = one_field(4);
  squeeze(job, *scenario.plan);
  const std::vector<Figures> all = figures_of(job, scenario);
  ASSERT_EQ(all.size(), 3U);
  const RoutineTimes server = all[0].own();
  EXPECT_GT(in(server, "wait_for_storage"), all[0].statistics.process.elapsed / 2);
  EXPECT_EQ(in(server, "wait_for_messages"), 0) << "there is no other server";
  for (const std::size_t rank : {1U, 2U}) {
    const RoutineTimes model = all[rank].own();
    EXPECT_GT(in(model, "staging_full") + in(model, "skew") + in(model, "wait_for_storage"),
              all[rank].statistics.process.elapsed / 2);
    EXPECT_GT(in(model, "wait_for_storage"), 0) << "of tr_stream_close";
  }
}

/// Nothing but the rate of the encoder differs between the jobs.
TEST(sim_report, a_server_of_a_slow_encoder_waits_for_it) {
  [[maybe_unused]] static const bool registered = register_paid();
  Scenario scenario;
  scenario.format = "paid";
  scenario.variables = {{"t", *layout::Layout::block({40, 40}, 2), "levels=hybrid:1-4"}};
  scenario.steps = 4;
  scenario.prepare();
  std::map<double, RoutineTimes> own;
  std::map<double, std::int64_t> elapsed;
  for (const double rate : {1e9, 1e5}) {
    Job job;
    job.nodes = {{2, 1}};
    job.costs = Costs();
    job.costs->encoded_bytes_per_second = rate;
    const std::vector<Figures> all = figures_of(job, scenario);
    ASSERT_EQ(all.size(), 3U);
    own[rate] = all[0].own();
    elapsed[rate] = all[0].statistics.process.elapsed;
  }
  const std::int64_t values = std::int64_t{4} * 40 * 40 * 4 * 4;  // bytes, encoded by one thread
  EXPECT_GT(in(own[1e5], "wait_for_encoding"), time_for(values, 1e5) / 2);
  EXPECT_GT(in(own[1e5], "wait_for_encoding"), elapsed[1e5] / 2);
  EXPECT_LT(in(own[1e9], "wait_for_encoding"), in(own[1e5], "wait_for_encoding") / 100);
  for (const char* const other : {"wait_for_storage", "wait_for_messages", "assemble"})
    EXPECT_LT(in(own[1e5], other), in(own[1e5], "wait_for_encoding") / 10) << other;
}

TEST(sim_report, servers_of_a_model_that_computes_are_idle) {
  for (const int servers : {1, 2}) {
    Job job;
    job.nodes = {{2, servers}};
    const std::vector<Figures> all =
        figures_of(job, one_field(3), [](SessionRank& rank) { rank.compute(second); });
    ASSERT_EQ(all.size(), 2U + static_cast<std::size_t>(servers));
    for (const Figures& each : all) {
      const bool serves = each.role == Role::server;
      EXPECT_GT(in(each.own(), serves ? "idle" : "model"), each.statistics.process.elapsed * 9 / 10)
          << servers << " servers";
    }
  }
}

std::string text_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::int64_t count_of(const std::string& text, const std::string& part) {
  std::int64_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++count;
  return count;
}

TEST(sim_report, a_server_waits_for_the_pieces_of_another) {
  Job job;
  job.nodes = {{1, 1}, {1, 1}};
  job.disk_bytes_per_second = 1e7;
  std::int64_t waited = 0;
  for (const Figures& each : figures_of(job, one_field(4), [](SessionRank& rank) {
         rank.compute(rank.rank() == 0 ? second / 10 : second);
       }))
    waited += each.role == Role::server ? in(each.own(), "wait_for_messages") : 0;
  EXPECT_GT(waited, second / 10);
}

TEST(sim_report, a_stream_that_is_written_again_counts_what_is_there) {
  Job job;
  job.nodes = {{2, 0}};
  const Scenario scenario = one_field(2);
  std::int64_t once = 0, files = 0;
  SessionWorld world(job);
  std::map<int, Arrays> arrays;
  const Texts stuck = world.run([&](SessionRank& rank) {
    for (int again = 0; again < 3; ++again) {
      PlannedStream stream(rank, scenario.plan);
      EXPECT_TRUE(stream.create().is_ok());
      for (std::int64_t step = 0; step < scenario.steps; ++step) {
        stream.begin(step * 3600);
        std::vector<float>& array = arrays[rank.rank()][{step, 0}];
        array = array_of(*scenario.plan, rank.rank(), 0, step);
        stream.put(0, reinterpret_cast<const std::byte*>(array.data()));
        EXPECT_TRUE(stream.end().is_ok());
      }
      EXPECT_TRUE(stream.close().is_ok());
      std::int64_t bytes = 0;
      for (const auto& [name, counters] : rank.session().statistics().streams) {
        if (rank.rank() == 0) files = counters.files;
        bytes += counters.durable_bytes;
      }
      if (rank.rank() != 0) continue;
      EXPECT_EQ(files, 1) << again;
      if (again == 0) once = bytes;
      EXPECT_GT(bytes, 0);
      EXPECT_EQ(bytes, once) << again;
    }
  });
  EXPECT_TRUE(stuck.empty()) << text_of(stuck);
}

TEST(sim_report, of_a_running_session_has_figures_that_other_servers_tell) {
  if (!session::has_reports()) GTEST_SKIP();
  const std::string path = cat("sim-report-told-", ::getpid(), ".json");
  Job job;
  job.nodes = {{1, 1}, {1, 1}};
  job.settings = cat("report=", path);
  std::string during;
  figures_of(job, one_field(5), [&](SessionRank& rank) {
    // After each report the writer is quiet for 20 times as long as that took, by the real clock.
    if (rank.rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(60));
    rank.compute(2 * second);
    if (rank.rank() == 0) during = text_of_file(path);
  });
  std::filesystem::remove(path);
  EXPECT_TRUE(session::is_running(during)) << during;
  EXPECT_EQ(count_of(during, "\"role\": \"server\""), 2) << during;
  EXPECT_EQ(count_of(during, "\"role\": \"compute\""), 2) << "rank 1 is at home on server 1: " << during;
}

TEST(sim_report, is_there_while_the_session_runs_and_tells_its_end) {
  if (!session::has_reports()) GTEST_SKIP();
  const std::string path = cat("sim-report-", ::getpid(), ".json");
  for (const int servers : {0, 1, 2}) {
    for (const bool fails : {false, true}) {
      std::filesystem::remove(path);
      Job job;
      job.nodes = {{2, servers}};
      job.settings = cat("report=", path);
      const Scenario scenario = one_field(3);
      SessionWorld world(job);
      std::string during;
      std::map<int, Arrays> arrays;
      std::map<int, Told> told;
      const Texts stuck = world.run([&](SessionRank& rank) {
        PlannedStream stream(rank, scenario.plan);
        EXPECT_TRUE(stream.create().is_ok());
        if (rank.rank() == 0 && fails)
          world.storage_of(0).restart({3, storage::Fault::io_error, storage::all_calls});
        forecast_steps(rank, stream, scenario, arrays[rank.rank()], told[rank.rank()], true);
        if (rank.rank() == 0) during = text_of_file(path);
      });
      ASSERT_TRUE(stuck.empty()) << text_of(stuck);
      const std::string after = text_of_file(path);
      EXPECT_TRUE(session::is_running(during)) << servers << " servers: " << during;
      EXPECT_TRUE(has(after, fails ? "\"state\": \"failed\"" : "\"state\": \"ended\"")) << after;
      EXPECT_EQ(has(after, "\"error\": "), fails) << after;
      EXPECT_TRUE(has(after, cat("\"servers\": ", servers))) << after;
      if (!fails) EXPECT_TRUE(has(after, "\"durable_steps\": 3")) << after;
      if (!fails) EXPECT_TRUE(has(after, "\"last_durable\": \"lead 7200 s\"")) << after;
      EXPECT_EQ(count_of(after, "\"role\": "), 2 + servers) << "figures of all ranks: " << after;
    }
  }
  std::filesystem::remove(path);
}

}  // namespace report_test
}  // namespace tailrace::sim
