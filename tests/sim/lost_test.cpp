// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>

#include "base/text.hpp"
#include "scenario.hpp"

namespace tailrace::sim {
namespace {

enum class When { before_begin, before_put, between_puts, before_end };

/// Runs a forecast in which rank `lost` dies in its second step; what the watchdogs say then.
std::string lose_a_rank(std::vector<NodeShape> nodes, int ranks, int lost, When when, std::uint64_t seed) {
  Scenario scenario;
  scenario.variables = {{"t", *layout::Layout::block({6, 6}, ranks), "levels=hybrid:1-2"},
                        {"u", *layout::Layout::block({6, 6}, ranks), "levels=surface"}};
  scenario.prepare();
  Shape shape;
  shape.nodes = std::move(nodes);
  shape.seed = seed;
  World world(shape);
  std::vector<Arrays> arrays(static_cast<std::size_t>(ranks));
  const auto dies = [&](const Rank& rank, std::int64_t step, When now) {
    if (rank.me() == lost && step == 1 && when == now) world.lose(lost);
  };
  const Outcome outcome = world.run([&](Rank& rank) -> Task<> {
    Arrays& mine = arrays[static_cast<std::size_t>(rank.me())];
    Stream stream(rank, scenario.plan);
    Status status = co_await stream.create();
    for (std::int64_t step = 0; step < 3; ++step) {
      dies(rank, step, When::before_begin);
      co_await rank.compute(1000);
      co_await stream.begin(step);
      for (int field = 0; field < 2; ++field) {
        dies(rank, step, field == 0 ? When::before_put : When::between_puts);
        co_await rank.compute(1000);
        mine[{step, field}] = array_of(*scenario.plan, rank.me(), field, step);
        co_await stream.put(field, reinterpret_cast<const std::byte*>(mine[{step, field}].data()));
      }
      dies(rank, step, When::before_end);
      co_await rank.compute(1000);
      status = co_await stream.end();
      EXPECT_TRUE(status.is_ok()) << status.text();
    }
    status = co_await stream.close();
    co_await rank.leave();
  });
  EXPECT_FALSE(outcome.finished);
  EXPECT_NE(outcome.stuck.find(cat("compute rank ", lost, " is lost;")), std::string::npos) << outcome.stuck;
  // What was committed before stays readable, and nothing else is in the index.
  const Result<streams::IndexContents> index =
      streams::load_index(world.storage(), streams::index_path("fc.raw"));
  // A rank without a server on its node takes with it what it has not sent yet.
  EXPECT_TRUE(index.is_ok() || world.roster().shares_node[static_cast<std::size_t>(lost)] == 0);
  if (index.is_ok()) {
    EXPECT_LE(index->steps.size(), 1U);
    const ByteVector file = read_file(world.storage(), "fc.raw");
    const ByteVector first = bytes_of_step(*scenario.plan, 0);
    EXPECT_TRUE(index->steps.empty() || std::equal(first.begin(), first.end(), file.begin()));
  }
  return world.waiting_for();
}

TEST(sim_lost, a_lost_rank_crashes_nobody_and_is_named_by_the_servers) {
  for (const When when : {When::before_begin, When::before_put, When::between_puts, When::before_end}) {
    for (const int lost : {0, 1, 3}) {
      for (std::uint64_t seed = 1; seed <= 8; ++seed) {
        const std::string text = lose_a_rank({{2, 1}, {2, 1}}, 4, lost, when, seed);
        const std::string where =
            cat("lost ", lost, ", moment ", static_cast<int>(when), ", seed ", seed, ":", text);
        EXPECT_NE(text.find(cat("compute rank ", lost)), std::string::npos) << where;
        for (int other = 0; other < 4; ++other) {
          if (other == lost) continue;
          EXPECT_EQ(text.find(cat("compute rank ", other)), std::string::npos) << where;
        }
      }
    }
  }
}

TEST(sim_lost, so_is_one_that_is_alone_with_its_server_or_has_none_on_its_node) {
  for (const When when : {When::before_begin, When::before_put, When::between_puts, When::before_end}) {
    for (const int lost : {0, 1, 2}) {
      const std::string text = lose_a_rank({{1, 1}, {1, 1}, {1, 0}}, 3, lost, when, 5);
      EXPECT_NE(text.find(cat("compute rank ", lost)), std::string::npos)
          << "lost " << lost << ", moment " << static_cast<int>(when) << ":" << text;
    }
  }
}

TEST(sim_lost, one_that_is_lost_before_an_agreement_is_missing_in_it) {
  Scenario scenario;
  scenario.variables = {{"t", *layout::Layout::block({6, 6}, 5), "levels=surface"}};
  scenario.prepare();
  for (const int lost : {1, 2, 3, 4}) {
    Shape shape;
    shape.nodes = {{5, 1}};
    World world(shape);
    const Outcome outcome = world.run([&](Rank& rank) -> Task<> {
      if (rank.me() == lost) world.lose(lost);
      co_await rank.compute(1000);
      Stream stream(rank, scenario.plan);
      const Status status = co_await stream.create();
      ADD_FAILURE() << "rank " << rank.me() << " came through";
    });
    EXPECT_FALSE(outcome.finished);
    int where = 0;
    while (where != lost) {
      ASSERT_TRUE(world.rank(where).open_agreement().has_value());
      const std::vector<int> missing =
          world.rank(where).agreements().missing(*world.rank(where).open_agreement());
      ASSERT_EQ(missing.size(), 1U);
      where = missing.front();
    }
  }
}

/// Sends the opening of a stream to the first server, without its last `cut` bytes; why that would end the
/// job.
std::string open_a_stream(const pipeline::Opening& opening, std::size_t cut) {
  Shape shape;
  shape.nodes = {{2, 1}};
  World world(shape);
  world.run([&](Rank& rank) -> Task<> {
    if (rank.me() != 0) co_return;
    Packer out;
    out.put(pipeline::Message::open);
    opening.pack(out);
    ByteVector bytes = out.take();
    bytes.resize(bytes.size() - cut);
    rank.line().send(rank.roster().server_transport[0], std::move(bytes));
    co_await rank.compute(1000);
  });
  return world.given_up();
}

TEST(sim_lost, a_server_that_cannot_open_a_stream_says_why_and_keeps_nobody_waiting) {
  pipeline::Opening opening;
  opening.stream = 1;
  const std::string begin = "server 0 cannot open a stream that the compute ranks have begun: ";
  EXPECT_EQ(open_a_stream(opening, 1), begin + "a stream's definition arrived incomplete");
  opening.reference = 2;
  EXPECT_EQ(open_a_stream(opening, 0), begin + "a stream's definition arrived with a rank that is none");
  opening.reference = 0;
  opening.layouts.emplace_back(3, std::byte{1});
  opening.in_parts.push_back(0);
  EXPECT_TRUE(open_a_stream(opening, 0).starts_with(begin));
  opening.in_parts.back() = 1;
  EXPECT_EQ(open_a_stream(opening, 0), "") << "its parts are still to come";
}

}  // namespace
}  // namespace tailrace::sim
