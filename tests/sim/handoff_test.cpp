// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// How data reaches servers (handoff=): through memory of the node, by messages, by one-sided gets.
#include <gtest/gtest.h>

#include "engine/pipeline/handoff.hpp"
#include "ground/base/text.hpp"
#include "scenario.hpp"

namespace tailrace::sim {
namespace handoff_test {

TEST(sim_handoff, bytes_are_the_same_with_every_method_for_any_ranks_servers_nodes_and_timing) {
  for (std::uint64_t seed = 1; seed <= seeds(160); ++seed) {
    Scheduler dice(seed * 7919);
    const int ranks = static_cast<int>(dice.random(1, 6));
    const int servers = static_cast<int>(dice.random(0, 4));
    Scenario scenario;
    scenario.handoff = pipeline::handoffs()[seed % 4].name;
    scenario.format = any_format(seed / 4);
    scenario.method = any_method(seed / 16);
    // Most pieces of such fields are too large to travel with their descriptors.
    scenario.variables = random_variables(dice, ranks, dice.once_in(2) ? 12 : 60);
    scenario.steps = static_cast<int>(dice.random(1, 5));
    scenario.in_parts = dice.once_in(3);
    scenario.prepare();
    Job job;
    job.nodes = scenario.handoff == "shared" && servers > 0 ? nodes_with_servers(dice, ranks, servers)
                                                            : random_nodes(dice, ranks, servers);
    job.seed = seed;
    job.threads = static_cast<int>(dice.random(1, 3));
    job.mixed = dice.once_in(2);
    job.crowded = dice.once_in(3);
    job.disk_bytes_per_second = dice.once_in(3) ? 1e5 : 1e9;
    if (dice.once_in(2)) squeeze(job, *scenario.plan);
    expect_right_bytes(job, scenario,
                       cat("seed ", seed, ", handoff=", scenario.handoff, " method=", scenario.method, ", ",
                           ranks, " ranks, ", servers, " servers: "));
    if (HasFatalFailure()) return;
  }
}

/// What one job with a stream of each handoff has done.
struct Outcome {
  std::int64_t gets = 0;
  Bytes got = 0;
};

/// All streams of a rank are open at once, and each has its own lane. A round of steps goes over all of them.
Outcome put_in_streams_of_all_handoffs(const Job& job, const std::string& settings_of_one, int ranks,
                                       const std::string& where) {
  std::vector<Scenario> scenarios;
  for (const pipeline::HandoffRow& each : pipeline::handoffs()) {
    Scenario scenario;
    scenario.pattern = cat(each.name, ".data");
    scenario.handoff = each.name == settings_of_one ? "" : each.name;
    scenario.variables = {{"t", *layout::Layout::block({40, 50}, ranks), "levels=hybrid:1-3"},
                          {"u", *layout::Layout::block({6, 5}, ranks), "levels=surface"}};
    scenario.prepare();
    scenarios.push_back(scenario);
  }
  SessionWorld world(job);
  std::map<std::tuple<int, std::size_t, std::int64_t, int>, std::vector<float>> arrays;
  const auto program = [&](SessionRank& rank) {
    std::vector<std::unique_ptr<PlannedStream>> streams;
    for (const Scenario& each : scenarios) {
      streams.push_back(std::make_unique<PlannedStream>(rank, each.plan));
      const Status created = streams.back()->create();
      EXPECT_TRUE(created.is_ok()) << where << created.text();
    }
    for (std::int64_t step = 0; step < 3; ++step) {
      for (std::size_t i = 0; i < streams.size(); ++i) {
        streams[i]->begin(step * 3600);
        for (int field = 0; field < 2; ++field) {
          std::vector<float>& array = arrays[{rank.rank(), i, step, field}];
          array = array_of(*scenarios[i].plan, rank.rank(), field, step);
          streams[i]->put(field, reinterpret_cast<const std::byte*>(array.data()));
        }
        const Status ended = streams[i]->end();
        EXPECT_TRUE(ended.is_ok()) << where << ended.text();
      }
    }
    // In another order than that of the steps.
    for (std::size_t i = streams.size(); i > 0; --i) {
      const Status closed = streams[i - 1]->close();
      EXPECT_TRUE(closed.is_ok()) << where << closed.text();
    }
  };
  const Texts stuck = world.run(program);
  EXPECT_TRUE(stuck.empty()) << where << text_of(stuck);
  for (const Status& each : world.failures()) ADD_FAILURE() << where << each.text();
  if (!stuck.empty()) return {};
  for (const Scenario& each : scenarios)
    expect_committed(world.storage(), each, {}, cat(where, each.pattern, ": "));
  return {world.exposed().gets(), world.exposed().bytes()};
}

TEST(sim_handoff, streams_with_different_ones_in_one_session_do_not_disturb_each_other) {
  constexpr int ranks = 5;
  for (std::uint64_t seed = 1; seed <= seeds(40); ++seed) {
    const pipeline::HandoffRow& usual = pipeline::handoffs()[seed % 4];
    Job job;
    job.nodes = {{2, 1}, {3, static_cast<int>(1 + seed % 2)}};
    job.seed = seed;
    job.settings = cat("handoff=", usual.name);
    job.mixed = seed % 3 == 0;
    job.crowded = seed % 5 == 0;
    job.staging = seed % 2 == 0 ? Bytes{1} << 20 : Bytes{200} << 10;  // rings that are full, and that are not
    const Outcome outcome =
        put_in_streams_of_all_handoffs(job, std::string(usual.name), ranks, cat("seed ", seed, ": "));
    if (HasFailure()) return;
    // One stream has its large pieces of three steps brought by gets, and nobody else has.
    EXPECT_EQ(outcome.got, Bytes{3} * 3 * 40 * 50 * 4) << "seed " << seed;
    EXPECT_GE(outcome.gets, 3) << "seed " << seed;
  }
}

TEST(sim_handoff, by_one_sided_gets_becomes_messages_where_the_mpi_has_none) {
  for (std::uint64_t seed = 1; seed <= seeds(20); ++seed) {
    Job job;
    job.nodes = {{2, 1}, {3, 1}};
    job.seed = seed;
    job.lacks_gets = true;
    const Outcome outcome = put_in_streams_of_all_handoffs(job, "auto", 5, cat("seed ", seed, ": "));
    EXPECT_EQ(outcome.gets, 0);
  }
}

/// Several steps are open at once, and end in another order than they began.
TEST(sim_handoff, steps_of_many_streams_may_be_open_at_once) {
  const std::string names[] = {"auto", "messages", "onesided", "messages", "onesided"};
  for (std::uint64_t seed = 1; seed <= seeds(30); ++seed) {
    Scheduler dice(seed * 7919);
    const int ranks = static_cast<int>(dice.random(2, 6));
    Job job;
    job.seed = seed;
    job.nodes = random_nodes(dice, ranks, static_cast<int>(dice.random(1, 4)));
    job.mixed = dice.once_in(2);
    job.crowded = dice.once_in(3);
    job.staging = Bytes{150 + dice.random(0, 600)} << 10;
    std::vector<Scenario> scenarios;
    for (const std::string& name : names) {
      Scenario& scenario = scenarios.emplace_back();
      scenario.pattern = cat("fc", scenarios.size(), ".data");
      scenario.handoff = name;
      scenario.method = any_method(static_cast<std::uint64_t>(dice.random(0, 20)));
      scenario.variables = {{"t", *layout::Layout::block({20, 30}, ranks), "levels=hybrid:1-3"},
                            {"u", *layout::Layout::block({6, 5}, ranks), "levels=surface"}};
      scenario.prepare();
    }
    SessionWorld world(job);
    std::map<std::tuple<int, std::size_t, std::int64_t, int>, std::vector<float>> arrays;
    const Texts stuck = world.run([&](SessionRank& rank) {
      std::vector<std::unique_ptr<PlannedStream>> streams;
      for (const Scenario& each : scenarios) {
        streams.push_back(std::make_unique<PlannedStream>(rank, each.plan));
        const Status created = streams.back()->create();
        EXPECT_TRUE(created.is_ok()) << "seed " << seed << ": " << created.text();
      }
      for (std::int64_t step = 0; step < 3; ++step) {
        for (auto& stream : streams) stream->begin(step * 3600);
        for (int field = 0; field < 2; ++field) {
          for (std::size_t i = 0; i < streams.size(); ++i) {
            std::vector<float>& array = arrays[{rank.rank(), i, step, field}];
            array = array_of(*scenarios[i].plan, rank.rank(), field, step);
            streams[i]->put(field, reinterpret_cast<const std::byte*>(array.data()));
          }
        }
        for (std::size_t i = streams.size(); i > 0; --i) {
          const Status ended = streams[i - 1]->end();
          EXPECT_TRUE(ended.is_ok()) << "seed " << seed << ": " << ended.text();
        }
      }
      for (auto& stream : streams) {
        const Status closed = stream->close();
        EXPECT_TRUE(closed.is_ok()) << "seed " << seed << ": " << closed.text();
      }
    });
    EXPECT_TRUE(stuck.empty()) << "seed " << seed << ": " << text_of(stuck);
    if (HasFailure()) return;
    for (const Scenario& each : scenarios)
      expect_committed(world.storage(), each, {}, cat("seed ", seed, ", ", each.pattern, ": "));
  }
}

/// A server may hear of the lanes before it hears of a stream whose servers need counters, and another server
/// the other way round.
TEST(sim_handoff, memory_is_exposed_while_servers_open_a_stream_that_needs_counters) {
  for (std::uint64_t seed = 1; seed <= seeds(30); ++seed) {
    std::vector<Scenario> scenarios(2);
    for (Scenario& each : scenarios) {
      each.variables = {{"t", *layout::Layout::block({20, 30}, 2), "levels=surface"}};
      each.pattern = &each == scenarios.data() ? "counted.data" : "exposed.data";
      (&each == scenarios.data() ? each.method : each.handoff) =
          &each == scenarios.data() ? "offset_sharing" : "onesided";
      each.prepare();
    }
    Job job;
    job.nodes = {{2, 3}};
    job.seed = seed;
    SessionWorld world(job);
    std::map<std::pair<int, std::size_t>, std::vector<float>> arrays;
    const Texts stuck = world.run([&](SessionRank& rank) {
      std::vector<std::unique_ptr<PlannedStream>> streams;
      for (std::size_t i = 0; i < scenarios.size(); ++i) {
        streams.push_back(std::make_unique<PlannedStream>(rank, scenarios[i].plan));
        EXPECT_TRUE(streams[i]->create().is_ok());
        streams[i]->begin(0);
        arrays[{rank.rank(), i}] = array_of(*scenarios[i].plan, rank.rank(), 0, 0);
        streams[i]->put(0, reinterpret_cast<const std::byte*>(arrays[{rank.rank(), i}].data()));
        EXPECT_TRUE(streams[i]->end().is_ok());
      }
      for (auto& stream : streams) EXPECT_TRUE(stream->close().is_ok());
    });
    ASSERT_TRUE(stuck.empty()) << "seed " << seed << ": " << text_of(stuck);
  }
}

/// Creates a stream on all ranks. Returns what each was told.
std::vector<Status> create_on_all(const Job& job, const std::string& options) {
  SessionWorld world(job);
  const auto made =
      StreamPlan::make("fc.data", cat("base=2026-03-01 format=raw ", options),
                       {{"t", *layout::Layout::block({6, 6}, world.ranks()), "levels=surface"}});
  EXPECT_TRUE(made.is_ok()) << made.status().text();
  std::vector<Status> told(static_cast<std::size_t>(world.ranks()));
  const Texts stuck = world.run([&](SessionRank& rank) {
    PlannedStream stream(rank, *made);
    told[static_cast<std::size_t>(rank.rank())] = stream.create();
    // A stream that cannot be made leaves the session as it was.
    PlannedStream another(rank,
                          *StreamPlan::make("other.data", "base=2026-03-01 format=raw handoff=auto", {}));
    const Status created = another.create();
    EXPECT_TRUE(created.is_ok()) << created.text();
    const Status closed = another.close();
    EXPECT_TRUE(closed.is_ok()) << closed.text();
    if (!told[static_cast<std::size_t>(rank.rank())].is_ok()) return;
    const Status ended = stream.close();
    EXPECT_TRUE(ended.is_ok()) << ended.text();
  });
  EXPECT_TRUE(stuck.empty()) << text_of(stuck);
  return told;
}

void expect_refused(const Job& job, const std::string& options, Code code, const std::string& words) {
  for (const Status& each : create_on_all(job, options)) {
    EXPECT_EQ(each.code(), code) << options << ": " << each.text();
    EXPECT_NE(each.text().find(words), std::string::npos) << each.text();
  }
}

TEST(sim_handoff, in_memory_of_the_node_is_refused_on_every_rank_where_a_node_has_no_server) {
  Job job;
  job.nodes = {{2, 1}, {2, 0}};
  expect_refused(job, "handoff=shared", Code::unsupported,
                 "handoff=shared is not possible here: compute rank 2 runs on a node without a server");
  job.settings = "handoff=shared";
  expect_refused(job, "", Code::unsupported, "handoff=shared is not possible here: compute rank 2");
  for (const Status& each : create_on_all(job, "handoff=messages")) EXPECT_TRUE(each.is_ok()) << each.text();
}

TEST(sim_handoff, that_is_none_is_refused_on_every_rank_with_the_nearest_name) {
  Job job;
  job.nodes = {{2, 1}};
  job.settings = "handoff=one_sided";
  expect_refused(job, "", Code::settings, "did you mean \"onesided\"");
}

TEST(sim_handoff, whose_lanes_the_budget_does_not_hold_is_refused_on_every_rank) {
  Job job;
  job.nodes = {{2, 1}, {2, 1}};
  job.settings = "memory=2MiB";
  for (const std::string handoff : {"messages", "onesided"}) {
    expect_refused(job, cat("handoff=", handoff), Code::memory, "set TAILRACE_MEMORY higher");
    job.settings = "memory=8MiB";
    for (const Status& each : create_on_all(job, cat("handoff=", handoff)))
      EXPECT_TRUE(each.is_ok()) << each.text();
    job.settings = "memory=2MiB";
  }
}

TEST(sim_handoff, whose_lanes_a_node_with_servers_alone_does_not_hold_is_refused_on_every_rank) {
  Job job;
  job.nodes = {{2, 0}, {2, 0}, {0, 1}};
  job.staging = Bytes{16} << 20;
  bool is_refused_there = false;
  for (int mib = 17; mib <= 40; mib += mib < 30 ? 1 : 5) {
    job.settings = cat("memory=", mib, "MiB");
    for (const Status& each : create_on_all(job, "handoff=onesided")) {
      EXPECT_EQ(each.is_ok(), mib >= 28) << mib << ": " << each.text();
      is_refused_there =
          is_refused_there || each.text().find("a node without compute ranks") != std::string::npos;
    }
  }
  EXPECT_TRUE(is_refused_there);
}

TEST(sim_handoff, that_another_server_cannot_take_over_is_refused_where_one_may_come) {
  Job job;
  job.nodes = {{2, 1}};
  job.keeps_steps = true;
  expect_refused(job, "handoff=messages", Code::unsupported, "choose handoff=shared");
  for (const Status& each : create_on_all(job, "handoff=shared")) EXPECT_TRUE(each.is_ok()) << each.text();
}

TEST(sim_handoff, is_nothing_that_ranks_without_servers_need) {
  Job job;
  job.nodes = nodes_of(3, 2);
  for (const pipeline::HandoffRow& each : pipeline::handoffs())
    for (const Status& told : create_on_all(job, cat("handoff=", each.name)))
      EXPECT_TRUE(told.is_ok()) << told.text();
}

}  // namespace handoff_test
}  // namespace tailrace::sim
