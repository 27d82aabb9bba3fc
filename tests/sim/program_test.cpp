// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Correct parallel programs, with ranks that compute for seconds and a network that delays: every collective
// call returns what it has to, on every rank, and the program ends.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/text.hpp"
#include "collective_program.hpp"

namespace tailrace::sim {
namespace {

/// Runs a random program to its end.
void run_random_program(const CollectiveProgram::Size& size, std::uint64_t seed) {
  Scheduler dice(seed * 6151);
  const CollectiveProgram program(dice, size);
  FibreWorld world(size.ranks, seed);
  std::vector<std::string> wrong;
  std::size_t made = 0;
  const std::vector<std::string> unfinished = world.run([&](FibreRank& rank) {
    const std::vector<CollectiveCall> calls = program.calls_of(rank.rank());
    program.run(rank, calls, dice, wrong);
    made += calls.size();
  });
  std::size_t to_make = 0;
  for (int rank = 0; rank < size.ranks; ++rank) to_make += program.calls_of(rank).size();
  EXPECT_EQ(made, to_make) << "seed " << seed;
  EXPECT_EQ(wrong, std::vector<std::string>()) << "seed " << seed;
  EXPECT_EQ(unfinished, std::vector<std::string>()) << "seed " << seed;
  for (int rank = 0; rank < size.ranks; ++rank) EXPECT_EQ(world.board(rank).strays(), 0);
}

TEST(sim_program, every_call_of_a_correct_program_returns_the_same_on_all_its_ranks) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Scheduler dice(seed * 3571);
    const int ranks = static_cast<int>(dice.random(2, 16));
    run_random_program({ranks, static_cast<int>(dice.random(1, 6)), 30}, seed);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(sim_program, so_it_is_with_64_ranks) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) run_random_program({64, 8, 40}, seed);
}

/// The program's checks themselves: ranks get an error where two agreements differ, and others wait for a
/// vote that never comes.
TEST(sim_program, a_rank_that_leaves_out_an_agreement_is_noticed) {
  constexpr int ranks = 5;
  int disagreements = 0;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    Scheduler dice(seed * 7);
    const CollectiveProgram program(dice, {ranks, 1, 12});
    std::vector<int> members;
    for (int rank = 0; rank < ranks; ++rank) {
      if (!program.calls_of(rank).empty()) members.push_back(rank);
    }
    if (members.size() < 2) continue;
    FibreWorld world(ranks, seed);
    std::vector<std::string> wrong;
    const std::vector<std::string> unfinished = world.run([&](FibreRank& rank) {
      std::vector<CollectiveCall> calls = program.calls_of(rank.rank());
      if (rank.rank() == members.back()) {
        calls.erase(std::find_if(calls.begin(), calls.end(),
                                 [](const CollectiveCall& call) { return !call.is_broadcast; }));
      }
      program.run(rank, calls, dice, wrong);
    });
    EXPECT_FALSE(unfinished.empty()) << "seed " << seed;
    for (const std::string& text : wrong)
      disagreements += text.find("ranks disagree") == std::string::npos ? 0 : 1;
  }
  EXPECT_GT(disagreements, 0);
}

}  // namespace
}  // namespace tailrace::sim
