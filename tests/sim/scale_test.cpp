// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>

#include <cstdlib>

#include "ground/base/text.hpp"
#include "scenario.hpp"

namespace tailrace::sim {
namespace {

TEST(sim_scale, many_ranks_on_many_nodes_write_one_right_file) {
  const int nodes = std::getenv("TEST_ALL") != nullptr ? 32 : 16;
  const int ranks = nodes * 64;
  Scenario scenario;
  scenario.steps = 2;
  scenario.variables = {{"t", *layout::Layout::block({128, 128}, ranks), "levels=hybrid:1-2"},
                        {"ps", *layout::Layout::block({128, 128}, ranks), "levels=surface"}};
  scenario.prepare();
  Job job;
  job.nodes.assign(static_cast<std::size_t>(nodes), NodeShape{ranks / nodes, 1});
  job.seed = 11;
  job.staging = Bytes{4} << 20;
  SessionWorld world(job);
  std::vector<Arrays> arrays(static_cast<std::size_t>(ranks));
  std::vector<Told> told(static_cast<std::size_t>(ranks));
  const Texts stuck = world.run([&](SessionRank& rank) {
    const auto me = static_cast<std::size_t>(rank.rank());
    forecast(rank, scenario, arrays[me], told[me]);
  });
  ASSERT_TRUE(stuck.empty()) << text_of(stuck).substr(0, 2000);
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

/// Two ranks without servers write many small records: what they send grows with the bytes, not with the
/// records.
TEST(sim_scale, pieces_of_small_records_share_messages) {
  constexpr int records = 600;
  Scenario scenario;
  scenario.steps = 1;
  scenario.variables = {{"t", *layout::Layout::block({8, 8}, 2), cat("levels=hybrid:1-", records)}};
  scenario.prepare();
  Job job;
  job.nodes = {NodeShape{2, 0}};
  job.seed = 3;
  job.staging = Bytes{4} << 20;
  SessionWorld world(job);
  std::vector<Arrays> arrays(2);
  std::vector<Told> told(2);
  std::int64_t messages = 0;
  const Texts stuck = world.run([&](SessionRank& rank) {
    const auto me = static_cast<std::size_t>(rank.rank());
    forecast(rank, scenario, arrays[me], told[me]);
    messages += rank.fibre().port().messages();
  });
  ASSERT_TRUE(stuck.empty()) << text_of(stuck);
  EXPECT_TRUE(told[0].closed.is_ok()) << told[0].closed.text();
  EXPECT_TRUE(read_file(world.storage(), scenario.pattern) == bytes_of_step(*scenario.plan, 0));
  EXPECT_LT(messages, records / 4) << "each rank owns half of the records, and needs a piece of each";
}

/// One of hundreds of ranks makes a mistake: every rank hears of it, and the step after it is written.
TEST(sim_scale, an_error_of_one_of_many_ranks_reaches_all) {
  constexpr int ranks = 512;
  constexpr int bad = 377;
  Scenario scenario;
  scenario.variables = {{"t", *layout::Layout::block({64, 64}, ranks), "levels=hybrid:1-2"}};
  scenario.prepare();
  Job job;
  job.nodes.assign(16, NodeShape{ranks / 16, 1});
  job.seed = 5;
  job.staging = Bytes{4} << 20;
  SessionWorld world(job);
  std::vector<Arrays> arrays(ranks);
  std::vector<Status> verdicts(ranks);
  const Texts stuck = world.run([&](SessionRank& rank) {
    const auto me = static_cast<std::size_t>(rank.rank());
    PlannedStream stream(rank, scenario.plan);
    const Status created = stream.create();
    EXPECT_TRUE(created.is_ok());
    for (std::int64_t step = 0; step < 2; ++step) {
      stream.begin(step);
      arrays[me][{step, 0}] = array_of(*scenario.plan, rank.rank(), 0, step);
      if (step == 0 && rank.rank() == bad) stream.latch(Status(Code::data, "rank 377 has met a NaN"));
      stream.put(0, reinterpret_cast<const std::byte*>(arrays[me][{step, 0}].data()));
      const Status ended = stream.end();
      verdicts[me] = first_cause(verdicts[me], ended);
    }
    const Status closed = stream.close();
    EXPECT_TRUE(closed.is_ok()) << closed.text();
  });
  ASSERT_TRUE(stuck.empty()) << text_of(stuck).substr(0, 2000);
  EXPECT_NE(verdicts[0].text().find("rank 377 has met a NaN"), std::string::npos) << verdicts[0].text();
  EXPECT_EQ(verdicts[0].rank(), bad);
  for (int rank = 0; rank < ranks; ++rank)
    expect_same(verdicts[static_cast<std::size_t>(rank)], verdicts[0], cat("rank ", rank));
  EXPECT_TRUE(read_file(world.storage(), scenario.pattern) == bytes_of_step(*scenario.plan, 1));
}

}  // namespace
}  // namespace tailrace::sim
