// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>

#include "base/text.hpp"
#include "scenario.hpp"

namespace tailrace::sim {
namespace {

TEST(sim_scale, four_thousand_ranks_on_64_nodes_write_one_right_file) {
  constexpr int nodes = 64;
  constexpr int ranks = 4096;
  Scenario scenario;
  scenario.steps = 2;
  scenario.variables = {{"t", *layout::Layout::block({128, 128}, ranks), "levels=hybrid:1-2"},
                        {"ps", *layout::Layout::block({128, 128}, ranks), "levels=surface"}};
  scenario.prepare();
  Shape shape;
  shape.nodes.assign(nodes, NodeShape{ranks / nodes, 1});
  shape.seed = 11;
  shape.lane = 4096;
  World world(shape);
  std::vector<Arrays> arrays(ranks);
  std::vector<Told> told(ranks);
  const Outcome outcome = world.run([&](Rank& rank) {
    const auto me = static_cast<std::size_t>(rank.me());
    return forecast(rank, scenario, arrays[me], told[me]);
  });
  ASSERT_TRUE(outcome.finished) << outcome.stuck.substr(0, 2000);
  for (int rank = 0; rank < ranks; ++rank) {
    expect_same(told[static_cast<std::size_t>(rank)], told[0], cat("rank ", rank));
    if (HasFailure()) return;
  }
  EXPECT_TRUE(told[0].closed.is_ok()) << told[0].closed.text();
  ByteVector expected = bytes_of_step(*scenario.plan, 0);
  const ByteVector second = bytes_of_step(*scenario.plan, 1);
  expected.insert(expected.end(), second.begin(), second.end());
  EXPECT_TRUE(read_file(world.storage(), scenario.pattern) == expected);
}

/// One bad rank among thousands: everybody hears of it, and the step after it is written.
TEST(sim_scale, an_error_of_one_of_a_thousand_ranks_reaches_all) {
  constexpr int ranks = 1024;
  constexpr int bad = 777;
  Scenario scenario;
  scenario.variables = {{"t", *layout::Layout::block({64, 64}, ranks), "levels=hybrid:1-2"}};
  scenario.prepare();
  Shape shape;
  shape.nodes.assign(16, NodeShape{ranks / 16, 1});
  shape.seed = 5;
  shape.lane = 4096;
  World world(shape);
  std::vector<Arrays> arrays(ranks);
  std::vector<Status> verdicts(ranks);
  const Outcome outcome = world.run([&](Rank& rank) -> Task<> {
    const auto me = static_cast<std::size_t>(rank.me());
    Stream stream(rank, scenario.plan);
    const Status created = co_await stream.create();
    EXPECT_TRUE(created.is_ok());
    for (std::int64_t step = 0; step < 2; ++step) {
      co_await stream.begin(step);
      arrays[me][{step, 0}] = array_of(*scenario.plan, rank.me(), 0, step);
      if (step == 0 && rank.me() == bad) stream.latch(Status(Code::data, "rank 777 has met a NaN"));
      co_await stream.put(0, reinterpret_cast<const std::byte*>(arrays[me][{step, 0}].data()));
      const Status ended = co_await stream.end();
      verdicts[me] = first_cause(verdicts[me], ended);
    }
    const Status closed = co_await stream.close();
    EXPECT_TRUE(closed.is_ok()) << closed.text();
    co_await rank.leave();
  });
  ASSERT_TRUE(outcome.finished) << outcome.stuck.substr(0, 2000);
  EXPECT_NE(verdicts[0].text().find("rank 777 has met a NaN"), std::string::npos) << verdicts[0].text();
  EXPECT_EQ(verdicts[0].rank(), bad);
  for (int rank = 0; rank < ranks; ++rank)
    expect_same(verdicts[static_cast<std::size_t>(rank)], verdicts[0], cat("rank ", rank));
  EXPECT_TRUE(read_file(world.storage(), scenario.pattern) == bytes_of_step(*scenario.plan, 1));
}

}  // namespace
}  // namespace tailrace::sim
