// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>

#include "engine/pipeline/method.hpp"
#include "ground/base/text.hpp"
#include "scenario.hpp"

namespace tailrace::sim {
namespace {

Scenario random_scenario(Scheduler& dice, int ranks, Index longest = 12) {
  Scenario scenario;
  scenario.variables = random_variables(dice, ranks, longest);
  scenario.steps = static_cast<int>(dice.random(1, 4));
  scenario.in_parts = dice.once_in(2);
  scenario.format = any_format(static_cast<std::uint64_t>(dice.random(0, 99)));
  scenario.method = any_method(static_cast<std::uint64_t>(dice.random(0, 99)));
  scenario.prepare();
  return scenario;
}

TEST(sim_bytes, one_rank_alone_writes_the_records_in_put_order) {
  Scheduler dice(1);
  const Scenario scenario = random_scenario(dice, 1);
  Job job;
  job.nodes = {{1, 0}};
  expect_right_bytes(job, scenario, "inline");
}

/// Runs a random forecast on a random machine for each seed. `set` changes the machine before it runs.
void expect_right_bytes_at_random(std::uint64_t factor, Index longest,
                                  void (*set)(Job& job, const Scenario& scenario, Scheduler& dice)) {
  for (std::uint64_t seed = 1; seed <= seeds(100); ++seed) {
    Scheduler dice(seed * factor);
    const int ranks = static_cast<int>(dice.random(1, 8));
    const int servers = static_cast<int>(dice.random(0, 4));
    const Scenario scenario = random_scenario(dice, ranks, longest);
    Job job;
    job.nodes = random_nodes(dice, ranks, servers);
    job.seed = seed;
    job.threads = static_cast<int>(dice.random(1, 3));
    job.mixed = dice.once_in(2);
    set(job, scenario, dice);
    expect_right_bytes(job, scenario, cat("seed ", seed, ", ", ranks, " ranks, ", servers, " servers: "));
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(sim_bytes, are_those_of_one_rank_for_any_ranks_servers_nodes_and_timing) {
  expect_right_bytes_at_random(6151, 12, [](Job& job, const Scenario&, Scheduler& dice) {
    job.disk_bytes_per_second = dice.once_in(3) ? 1e5 : 1e9;
  });
}

TEST(sim_bytes, are_the_same_with_staging_and_workspace_of_one_record) {
  expect_right_bytes_at_random(
      3571, 60, [](Job& job, const Scenario& scenario, Scheduler&) { squeeze(job, *scenario.plan); });
}

/// Puts both streams' fields in turn, so that their records mix in the lanes.
void put_both(SessionRank& rank, PlannedStream& a, const StreamPlan& first, PlannedStream& b,
              const StreamPlan& second, std::int64_t step, Arrays& arrays) {
  for (std::size_t i = 0; i < std::max(first.fields.size(), second.fields.size()); ++i) {
    for (const bool is_first : {true, false}) {
      const StreamPlan& plan = is_first ? first : second;
      if (i >= plan.fields.size()) continue;
      const int field = static_cast<int>(i);
      std::vector<float>& array = arrays[{step * 2 + (is_first ? 1 : 0), field}];
      array = array_of(plan, rank.rank(), field, step);
      (is_first ? a : b).put(field, reinterpret_cast<const std::byte*>(array.data()));
    }
  }
}

constexpr std::int64_t steps_of_both = 3;

void two_streams(SessionRank& rank, const Scenario& first, const Scenario& second, Arrays& arrays) {
  PlannedStream a(rank, first.plan);
  PlannedStream b(rank, second.plan);
  for (PlannedStream* const stream : {&a, &b}) {
    const Status created = stream->create();
    EXPECT_TRUE(created.is_ok()) << created.text();
  }
  for (std::int64_t step = 0; step < steps_of_both; ++step) {
    a.begin(step * 3600);
    b.begin(step * 7200);
    put_both(rank, a, *first.plan, b, *second.plan, step, arrays);
    for (PlannedStream* const stream : {&b, &a}) {
      const Status ended = stream->end();
      EXPECT_TRUE(ended.is_ok()) << ended.text();
    }
  }
  for (PlannedStream* const stream : {&a, &b}) {
    const Status closed = stream->close();
    EXPECT_TRUE(closed.is_ok()) << closed.text();
  }
}

/// Two streams at once share lanes and workspace; steps of one roll over from file to file.
TEST(sim_bytes, two_streams_and_files_that_roll_over_do_not_disturb_each_other) {
  for (std::uint64_t seed = 1; seed <= seeds(40); ++seed) {
    Scheduler dice(seed * 2503);
    const int ranks = static_cast<int>(dice.random(1, 6));
    const int servers = static_cast<int>(dice.random(0, 3));
    Scenario first = random_scenario(dice, ranks);
    Scenario second = random_scenario(dice, ranks);
    first.pattern = "first.data";
    second.pattern = "second+{lead:03h}.data";
    for (Scenario* const each : {&first, &second}) {
      // The bytes of whole files are compared.
      if ((*pipeline::find_method(each->method))->has_any_order) each->method = "writer";
      each->prepare();
    }
    Job job;
    job.nodes = random_nodes(dice, ranks, servers);
    job.seed = seed;
    SessionWorld world(job);
    std::vector<Arrays> arrays(static_cast<std::size_t>(ranks));
    const Texts stuck = world.run([&](SessionRank& rank) {
      two_streams(rank, first, second, arrays[static_cast<std::size_t>(rank.rank())]);
    });
    const std::string where = cat("seed ", seed, ", ", ranks, " ranks, ", servers, " servers: ");
    ASSERT_TRUE(stuck.empty()) << where << text_of(stuck);
    std::vector<std::int64_t> steps;
    for (std::int64_t step = 0; step < steps_of_both; ++step) {
      steps.push_back(step);
      EXPECT_TRUE(read_file(world.storage(), name_for(cat("second+00", step * 2, ".data"), second.format)) ==
                  bytes_of_file(*second.plan, {step}, 7200))
          << where;
    }
    EXPECT_TRUE(read_file(world.storage(), first.pattern) == bytes_of_file(*first.plan, steps)) << where;
  }
}

}  // namespace
}  // namespace tailrace::sim
