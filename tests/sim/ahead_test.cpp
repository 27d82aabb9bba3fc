// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>

#include "base/text.hpp"
#include "scenario.hpp"

namespace tailrace::sim {
namespace {

constexpr std::int64_t puts = 1000;

/// One step of a thousand puts in which rank `ahead` comes `head_start` before the others, which trickle in.
void run_ahead(Shape shape, int ranks, int ahead, Bytes lane, std::int64_t& times_full) {
  Scenario scenario;
  scenario.steps = 1;
  for (std::int64_t i = 0; i < puts; ++i) {
    scenario.variables.push_back({cat("f", i), *layout::Layout::block({4, 8}, ranks), "levels=surface"});
  }
  scenario.prepare();
  scenario.squeeze(shape);
  if (lane > 0) shape.lane = lane;
  World world(shape);
  std::vector<Arrays> arrays(static_cast<std::size_t>(ranks));
  const Outcome outcome = world.run([&](Rank& rank) -> Task<> {
    Arrays& mine = arrays[static_cast<std::size_t>(rank.me())];
    Stream stream(rank, scenario.plan);
    Status status = co_await stream.create();
    EXPECT_TRUE(status.is_ok());
    // A second before its first put, every other rank is still busy with something else.
    if (rank.me() != ahead) co_await rank.compute(1'000'000'000);
    co_await stream.begin(0);
    for (int field = 0; field < puts; ++field) {
      mine[{0, field}] = array_of(*scenario.plan, rank.me(), field, 0);
      co_await stream.put(field, reinterpret_cast<const std::byte*>(mine[{0, field}].data()));
    }
    status = co_await stream.end();
    EXPECT_TRUE(status.is_ok()) << status.text();
    status = co_await stream.close();
    EXPECT_TRUE(status.is_ok()) << status.text();
    co_await rank.leave();
  });
  ASSERT_TRUE(outcome.finished) << outcome.stuck;
  times_full = world.rank(ahead).times_full();
  EXPECT_TRUE(read_file(world.storage(), scenario.pattern) == bytes_of_step(*scenario.plan, 0));
}

TEST(sim_ahead, a_rank_far_ahead_waits_for_staging_of_one_record_and_the_bytes_are_right) {
  for (const int ahead : {0, 2}) {  // the rank whose puts are the put order, and another one
    for (const int servers : {1, 2}) {
      Shape shape;
      shape.nodes = {{3, servers}};
      shape.seed = static_cast<std::uint64_t>(10 * ahead + servers);
      std::int64_t times_full = 0;
      run_ahead(shape, 3, ahead, 0, times_full);
      EXPECT_GT(times_full, 0);
    }
  }
}

TEST(sim_ahead, so_does_one_whose_node_has_no_server) {
  for (const int ahead : {0, 3}) {
    Shape shape;
    shape.nodes = {{2, 1}, {2, 0}};
    shape.seed = static_cast<std::uint64_t>(40 + ahead);
    std::int64_t times_full = 0;
    run_ahead(shape, 4, ahead, 0, times_full);
    EXPECT_GT(times_full, 0);
  }
}

TEST(sim_ahead, a_lane_of_a_thousand_records_lets_it_run_ahead_without_waiting) {
  Shape shape;
  shape.nodes = {{3, 1}};
  shape.seed = 77;
  std::int64_t times_full = 0;
  // Of a lane of 448 KiB an eighth holds a thousand descriptors; the records take less.
  run_ahead(shape, 3, 2, 448 * 1024, times_full);
  EXPECT_EQ(times_full, 0);
}

}  // namespace
}  // namespace tailrace::sim
