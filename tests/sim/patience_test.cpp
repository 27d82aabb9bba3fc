// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>

#include "ground/base/text.hpp"
#include "scenario.hpp"

// Ranks that announce late. Timers are off: a sleeper whose bell is not rung sleeps for ever.
namespace tailrace::sim {
namespace {

/// A forecast and a machine at random for each seed; `set` gives the lanes their size.
void expect_right_bytes_of_patient_ranks(std::uint64_t factor, Index longest,
                                         void (*set)(Job& job, const Scenario& scenario, Scheduler& dice)) {
  for (std::uint64_t seed = 1; seed <= seeds(100); ++seed) {
    Scheduler dice(seed * factor);
    const int ranks = static_cast<int>(dice.random(1, 8));
    const int servers = static_cast<int>(dice.random(1, 4));
    Scenario scenario;
    scenario.variables = random_variables(dice, ranks, longest);
    scenario.in_parts = dice.once_in(2);
    scenario.format = any_format(seed);
    scenario.method = any_method(seed / 3);
    scenario.prepare();
    Job job;
    job.nodes = random_nodes(dice, ranks, servers);
    job.seed = seed;
    job.mixed = dice.once_in(2);
    job.crowded = true;
    set(job, scenario, dice);
    expect_right_bytes(job, scenario, cat("seed ", seed, ", ", ranks, " ranks, ", servers, " servers: "));
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(sim_patience, is_heard_at_the_end_of_each_step) {
  expect_right_bytes_of_patient_ranks(4129, 12, [](Job&, const Scenario&, Scheduler&) {});
}

TEST(sim_patience, ends_where_lanes_hold_a_piece_or_a_few) {
  expect_right_bytes_of_patient_ranks(7919, 60, [](Job& job, const Scenario& scenario, Scheduler& dice) {
    squeeze(job, *scenario.plan);
    job.staging *= dice.random(1, 9);
  });
}

/// Two ranks of one node. The second owns 31 times as much as the first.
Scenario uneven() {
  Scenario scenario;
  const std::vector<layout::Box> boxes{{{0, 0}, {1, 1024}}, {{1, 0}, {32, 1024}}};
  const layout::Layout layout = *layout::Layout::boxes({32, 1024}, boxes);
  scenario.variables = {{"t", layout, "levels=hybrid:1-8"}, {"u", layout, "levels=hybrid:1-8"}};
  scenario.prepare();
  return scenario;
}

/// The model's own messages make the first rank wait, between its puts, until the second has put everything.
/// The second rank finds no room before the first one's piece, which waits in a nearly empty lane, was taken.
void in_lockstep(SessionRank& rank, const Scenario& scenario, Arrays& arrays, bool& has_put) {
  PlannedStream stream(rank, scenario.plan);
  const Status created = stream.create();
  EXPECT_TRUE(created.is_ok()) << created.text();
  stream.begin(0);
  for (int field = 0; field < 2; ++field) {
    while (rank.rank() == 0 && field == 1 && !has_put) rank.compute(1'000'000);
    std::vector<float>& array = arrays[{0, field}];
    array = array_of(*scenario.plan, rank.rank(), field, 0);
    stream.put(field, reinterpret_cast<const std::byte*>(array.data()));
  }
  if (rank.rank() == 1) has_put = true;
  const Status ended = stream.end();
  EXPECT_TRUE(ended.is_ok()) << ended.text();
  const Status closed = stream.close();
  EXPECT_TRUE(closed.is_ok()) << closed.text();
}

TEST(sim_patience, of_one_rank_does_not_hold_up_another_that_has_no_room) {
  const Scenario scenario = uneven();
  for (std::uint64_t seed = 1; seed <= seeds(60); ++seed) {
    Job job;
    job.nodes = {{2, 1}};
    job.seed = seed;
    job.crowded = true;
    job.staging = Bytes{3400} << 10;  // a lane holds the second rank's pieces of one field, but not of both
    SessionWorld world(job);
    std::vector<Arrays> arrays(2);
    bool has_put = false;
    std::int64_t times_full = 0;
    const Texts stuck = world.run([&](SessionRank& rank) {
      in_lockstep(rank, scenario, arrays[static_cast<std::size_t>(rank.rank())], has_put);
      if (rank.rank() == 1)
        times_full = rank.session().statistics().streams[scenario.pattern].staging_full_count;
    });
    ASSERT_TRUE(stuck.empty()) << "seed " << seed << ":" << text_of(stuck);
    EXPECT_GT(times_full, 0);
    EXPECT_TRUE(read_file(world.storage(), scenario.pattern) == bytes_of_step(*scenario.plan, 0));
  }
}

}  // namespace
}  // namespace tailrace::sim
