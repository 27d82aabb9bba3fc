// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>

#include "base/text.hpp"
#include "scenario.hpp"

// Timers are off here: a server that sleeps through its bell sleeps for ever, and the simulation says so.
namespace tailrace::sim {
namespace {

constexpr std::uint64_t seeds = 200;

/// The outcome of a short forecast of two ranks and a server on one node.
Outcome run(SleepOrder order, std::uint64_t seed) {
  Scenario scenario;
  scenario.variables = {{"t", *layout::Layout::block({4, 4}, 2), "levels=hybrid:1-3"}};
  scenario.prepare();
  Shape shape;
  shape.nodes = {{2, 1}};
  shape.seed = seed;
  shape.sleep_order = order;
  World world(shape);
  std::vector<Arrays> arrays(2);
  std::vector<Told> told(2);
  return world.run([&](Rank& rank) {
    const auto me = static_cast<std::size_t>(rank.me());
    return forecast(rank, scenario, arrays[me], told[me]);
  });
}

int deadlocks(SleepOrder order, std::string& first) {
  int count = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const Outcome outcome = run(order, seed);
    if (!outcome.finished && count++ == 0) first = cat("seed ", seed, ":", outcome.stuck);
  }
  return count;
}

TEST(sim_wakeup, the_production_order_of_going_to_sleep_loses_no_wake_up) {
  std::string first;
  EXPECT_EQ(deadlocks(SleepOrder::production, first), 0) << first;
}

TEST(sim_wakeup, parking_without_looking_again_is_caught_as_a_deadlock) {
  std::string first;
  EXPECT_GT(deadlocks(SleepOrder::no_second_look, first), 0);
  EXPECT_NE(first.find("server 0 waits for its doorbell or a message"), std::string::npos) << first;
}

TEST(sim_wakeup, taking_the_ticket_after_the_second_look_is_caught_as_a_deadlock) {
  std::string first;
  EXPECT_GT(deadlocks(SleepOrder::ticket_after_second_look, first), 0);
  EXPECT_NE(first.find("server 0 waits for its doorbell or a message"), std::string::npos) << first;
}

/// What the timers of a real server are for: with them even a lost wake-up costs time only.
TEST(sim_wakeup, a_timer_heals_a_lost_wake_up) {
  Scenario scenario;
  scenario.variables = {{"t", *layout::Layout::block({4, 4}, 2), "levels=hybrid:1-3"}};
  scenario.prepare();
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Shape shape;
    shape.nodes = {{2, 1}};
    shape.seed = seed;
    shape.sleep_order = SleepOrder::no_second_look;
    shape.timer = 500'000;
    expect_right_bytes(shape, scenario, cat("seed ", seed, ": "));
  }
}

}  // namespace
}  // namespace tailrace::sim
