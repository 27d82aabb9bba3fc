// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>

#include <functional>

#include "base/text.hpp"
#include "scenario.hpp"

// Ranks that announce late. Timers are off: who sleeps without being rung sleeps for ever.
namespace tailrace::sim {
namespace {

/// A forecast and a machine at random for each seed; `set` gives the lanes their size.
void expect_right_bytes_of_patient_ranks(
    std::uint64_t factor,
    const std::function<void(Shape& shape, const Scenario& scenario, Scheduler& dice)>& set) {
  for (std::uint64_t seed = 1; seed <= seeds(100); ++seed) {
    Scheduler dice(seed * factor);
    const int ranks = static_cast<int>(dice.random(1, 8));
    const int servers = static_cast<int>(dice.random(1, 4));
    Scenario scenario;
    scenario.variables = random_variables(dice, ranks);
    scenario.in_parts = dice.once_in(2);
    scenario.prepare();
    Shape shape;
    shape.nodes = random_nodes(dice, ranks, servers);
    shape.seed = seed;
    shape.mixed = dice.once_in(2);
    shape.patient = true;
    set(shape, scenario, dice);
    expect_right_bytes(shape, scenario, cat("seed ", seed, ", ", ranks, " ranks, ", servers, " servers: "));
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(sim_patience, is_heard_at_the_end_of_each_step) {
  expect_right_bytes_of_patient_ranks(4129, [](Shape&, const Scenario&, Scheduler&) {});
}

TEST(sim_patience, ends_where_lanes_hold_a_piece_or_a_few) {
  expect_right_bytes_of_patient_ranks(7919, [](Shape& shape, const Scenario& scenario, Scheduler& dice) {
    scenario.squeeze(shape);
    shape.lane *= dice.random(1, 9);
  });
}

/// Two ranks of one node, of which the second owns seven times as much as the first.
Scenario uneven() {
  Scenario scenario;
  const std::vector<layout::Box> boxes{{{0, 0}, {1, 16}}, {{1, 0}, {8, 16}}};
  const layout::Layout layout = *layout::Layout::boxes({8, 16}, boxes);
  scenario.variables = {{"t", layout, "levels=hybrid:1"}, {"u", layout, "levels=hybrid:1"}};
  scenario.prepare();
  return scenario;
}

/// The model's own messages make the first rank wait, between its puts, until the second has put all. That
/// one finds no room before the first one's piece, which waits in a lane nearly empty, was taken.
Task<> in_lockstep(Rank& rank, const Scenario& scenario, Arrays& arrays, bool& has_put) {
  Stream stream(rank, scenario.plan);
  const Status created = co_await stream.create();
  EXPECT_TRUE(created.is_ok()) << created.text();
  co_await stream.begin(0);
  for (int field = 0; field < 2; ++field) {
    if (rank.me() == 0 && field == 1) {
      const std::function<bool()> awake = [&has_put] { return has_put; };
      co_await rank.actor().sleep(awake, "the model's other rank");
    }
    std::vector<float>& array = arrays[{0, field}];
    array = array_of(*scenario.plan, rank.me(), field, 0);
    co_await stream.put(field, reinterpret_cast<const std::byte*>(array.data()));
  }
  if (rank.me() == 1) has_put = true;
  const Status ended = co_await stream.end();
  EXPECT_TRUE(ended.is_ok()) << ended.text();
  const Status closed = co_await stream.close();
  EXPECT_TRUE(closed.is_ok()) << closed.text();
  co_await rank.leave();
}

TEST(sim_patience, of_one_rank_does_not_hold_up_another_that_has_no_room) {
  const Scenario scenario = uneven();
  for (std::uint64_t seed = 1; seed <= seeds(200); ++seed) {
    Shape shape;
    shape.nodes = {{2, 1}};
    shape.seed = seed;
    shape.patient = true;
    scenario.squeeze(shape);
    World world(shape);
    std::vector<Arrays> arrays(2);
    bool has_put = false;
    const Outcome outcome = world.run([&](Rank& rank) {
      return in_lockstep(rank, scenario, arrays[static_cast<std::size_t>(rank.me())], has_put);
    });
    ASSERT_TRUE(outcome.finished) << "seed " << seed << ":" << outcome.stuck;
    EXPECT_GT(world.rank(1).times_full(), 0);
    EXPECT_TRUE(read_file(world.storage(), scenario.pattern) == bytes_of_step(*scenario.plan, 0));
  }
}

}  // namespace
}  // namespace tailrace::sim
