// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Headers of GRIB2 are prepared where fields are defined. No rank prepares them again in the first step,
// which would wait for it: servers and the other ranks get them from compute rank 0.
#include <gtest/gtest.h>

#include "formats/grib2/handle.hpp"
#include "ground/base/text.hpp"
#include "scenario.hpp"

namespace tailrace::sim {
namespace {

Scenario many_records(int ranks) {
  Scenario scenario;
  scenario.pattern = "fc.grib2";
  scenario.steps = 2;
  for (const char* name : {"t", "u", "v", "q", "w"})
    scenario.variables.push_back(
        {name, *layout::Layout::block({6, 10}, ranks), "levels=hybrid:1-20 accuracy=0.01"});
  scenario.variables.push_back(
      {"tp", *layout::Layout::block({6, 10}, ranks), "levels=surface statistic=accum"});
  Result<std::shared_ptr<const StreamPlan>> plan =
      StreamPlan::make(scenario.pattern,
                       "base=2026-03-01 format=grib2 keys=\"gridType=regular_ll, "
                       "latitudeOfFirstGridPointInDegrees=50, longitudeOfFirstGridPointInDegrees=5, "
                       "latitudeOfLastGridPointInDegrees=45, longitudeOfLastGridPointInDegrees=14\"",
                       scenario.variables, false);
  EXPECT_TRUE(plan.is_ok()) << plan.status().text();
  if (plan.is_ok()) scenario.plan = *plan;
  return scenario;
}

/// Returns the file of a run, in which ecCodes must not be asked for anything.
ByteVector file_of(const std::vector<NodeShape>& nodes, int ranks) {
  const Scenario scenario = many_records(ranks);
  if (scenario.plan == nullptr) return {};
  Job job;
  job.nodes = nodes;
  SessionWorld world(job);
  std::vector<Arrays> arrays(static_cast<std::size_t>(world.ranks()));
  std::vector<Told> told(arrays.size());
  std::int64_t before = 0;
  const Texts stuck = world.run([&](SessionRank& rank) {
    const auto me = static_cast<std::size_t>(rank.rank());
    PlannedStream stream(rank, scenario.plan);
    const Status created = stream.create();
    EXPECT_TRUE(created.is_ok()) << created.text();
    before = grib2::Handle::opened();  // all ranks have defined all fields
    forecast_steps(rank, stream, scenario, arrays[me], told[me]);
  });
  EXPECT_EQ(grib2::Handle::opened(), before);
  EXPECT_TRUE(stuck.empty()) << text_of(stuck);
  for (const Told& each : told) EXPECT_TRUE(each.closed.is_ok()) << each.closed.text();
  return read_file(world.storage(), scenario.pattern);
}

TEST(sim_headers, are_prepared_at_definition_alone_and_the_same_for_any_ranks_and_servers) {
  const ByteVector alone = file_of({{1, 0}}, 1);
  EXPECT_GT(alone.size(), 2u * 101u * 100u);
  EXPECT_EQ(file_of({{2, 0}}, 2), alone);
  EXPECT_EQ(file_of({{2, 1}}, 2), alone);
  EXPECT_EQ(file_of({{2, 1}, {1, 1}}, 3), alone);
}

}  // namespace
}  // namespace tailrace::sim
