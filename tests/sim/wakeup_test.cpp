// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>

#include "ground/base/text.hpp"
#include "scenario.hpp"

// Nothing limits the sleep here: a rank that sleeps through its bell sleeps for ever, and the simulation says
// so.
namespace tailrace::sim {
namespace {

constexpr std::uint64_t seeds = 200;

Scenario short_forecast() {
  Scenario scenario;
  scenario.variables = {{"t", *layout::Layout::block({4, 4}, 2), "levels=hybrid:1-3"}};
  scenario.prepare();
  return scenario;
}

Job two_ranks_and_a_server(std::uint64_t seed, bool parks_late) {
  Job job;
  job.nodes = {{2, 1}};
  job.seed = seed;
  job.parks_late = parks_late;
  return job;
}

/// Returns the ranks that do not come to the end of a short forecast.
Texts run(bool parks_late, std::uint64_t seed) {
  const Scenario scenario = short_forecast();
  SessionWorld world(two_ranks_and_a_server(seed, parks_late));
  std::vector<Arrays> arrays(2);
  std::vector<Told> told(2);
  return world.run([&](SessionRank& rank) {
    const auto me = static_cast<std::size_t>(rank.rank());
    forecast(rank, scenario, arrays[me], told[me]);
  });
}

int deadlocks(bool parks_late, std::string& first) {
  int count = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const Texts stuck = run(parks_late, seed);
    if (!stuck.empty() && count++ == 0) first = cat("seed ", seed, ":", text_of(stuck));
  }
  return count;
}

TEST(sim_wakeup, the_production_order_of_going_to_sleep_loses_no_wake_up) {
  std::string first;
  EXPECT_EQ(deadlocks(false, first), 0) << first;
}

TEST(sim_wakeup, taking_the_ticket_after_the_second_look_is_caught_as_a_deadlock) {
  std::string first;
  EXPECT_GT(deadlocks(true, first), 0);
  EXPECT_NE(first.find("rank 2 waits for its doorbell or a message"), std::string::npos) << first;
}

/// Real ranks limit their sleep, so that a lost wake-up only costs time.
TEST(sim_wakeup, a_limit_heals_a_lost_wake_up) {
  const Scenario scenario = short_forecast();
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Job job = two_ranks_and_a_server(seed, true);
    job.limits_parks = true;
    expect_right_bytes(job, scenario, cat("seed ", seed, ": "));
  }
}

}  // namespace
}  // namespace tailrace::sim
