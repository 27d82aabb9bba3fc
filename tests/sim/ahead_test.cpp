// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>

#include "ground/base/text.hpp"
#include "scenario.hpp"

namespace tailrace::sim {
namespace {

constexpr std::int64_t puts = 1000;

/// Runs one step of a thousand puts in which rank `ahead` comes `head_start` before the others, which trickle
/// in.
void run_ahead(Job job, int ranks, int ahead, bool is_squeezed, std::int64_t& times_full) {
  Scenario scenario;
  scenario.steps = 1;
  for (std::int64_t i = 0; i < puts; ++i) {
    scenario.variables.push_back({cat("f", i), *layout::Layout::block({4, 8}, ranks), "levels=surface"});
  }
  scenario.prepare();
  if (is_squeezed) squeeze(job, *scenario.plan);
  SessionWorld world(job);
  std::vector<Arrays> arrays(static_cast<std::size_t>(ranks));
  const Texts stuck = world.run([&](SessionRank& rank) -> void {
    Arrays& mine = arrays[static_cast<std::size_t>(rank.rank())];
    PlannedStream stream(rank, scenario.plan);
    Status status = stream.create();
    EXPECT_TRUE(status.is_ok());
    // A second before its first put, every other rank is still busy with something else.
    if (rank.rank() != ahead) rank.compute(1'000'000'000);
    stream.begin(0);
    for (int field = 0; field < puts; ++field) {
      mine[{0, field}] = array_of(*scenario.plan, rank.rank(), field, 0);
      stream.put(field, reinterpret_cast<const std::byte*>(mine[{0, field}].data()));
    }
    status = stream.end();
    EXPECT_TRUE(status.is_ok()) << status.text();
    if (rank.rank() == ahead)
      times_full = rank.session().statistics().streams[scenario.pattern].staging_full_count;
    status = stream.close();
    EXPECT_TRUE(status.is_ok()) << status.text();
  });
  ASSERT_TRUE(stuck.empty()) << text_of(stuck);
  EXPECT_TRUE(read_file(world.storage(), scenario.pattern) == bytes_of_step(*scenario.plan, 0));
}

TEST(sim_ahead, a_rank_far_ahead_waits_for_staging_of_one_record_and_the_bytes_are_right) {
  for (const int ahead : {0, 2}) {  // the rank whose puts are the put order, and another rank
    for (const int servers : {1, 2}) {
      Job job;
      job.nodes = {{3, servers}};
      job.seed = static_cast<std::uint64_t>(10 * ahead + servers);
      std::int64_t times_full = 0;
      run_ahead(job, 3, ahead, true, times_full);
      EXPECT_GT(times_full, 0);
    }
  }
}

TEST(sim_ahead, so_does_one_whose_node_has_no_server) {
  for (const int ahead : {0, 3}) {
    Job job;
    job.nodes = {{2, 1}, {2, 0}};
    job.seed = static_cast<std::uint64_t>(40 + ahead);
    std::int64_t times_full = 0;
    run_ahead(job, 4, ahead, true, times_full);
    EXPECT_GT(times_full, 0);
  }
}

TEST(sim_ahead, a_lane_of_a_thousand_records_lets_it_run_ahead_without_waiting) {
  Job job;
  job.nodes = {{3, 1}};
  job.seed = 77;
  job.staging = Bytes{8} << 20;
  std::int64_t times_full = 0;
  run_ahead(job, 3, 2, false, times_full);
  EXPECT_EQ(times_full, 0);
}

}  // namespace
}  // namespace tailrace::sim
