// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Correct parallel programs, with ranks that compute for seconds and a network that delays: every collective
// call returns the right result on every rank, and the program ends.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "collective_program.hpp"
#include "ground/base/text.hpp"

namespace tailrace::sim {
namespace program_test {

/// A rank's session: the line on which the order of calls is checked, and the end of the program.
class Session {
 public:
  explicit Session(FibreRank& rank, int ranks) : board_(rank.board()) {
    std::vector<int> all(static_cast<std::size_t>(ranks));
    std::iota(all.begin(), all.end(), 0);
    members_ = std::make_shared<const comm::Members>(all);
    computes_ = std::make_unique<comm::Line>(board_, comm::line_number::computes, members_);
    board_.order().connect(*computes_);
  }
  /// Does as tr_finalize: waits until all ranks have come here, whatever calls they were in.
  void finalize() {
    for (;;) {
      const comm::Verdict verdict = computes_->agree({{}, "finalize", {}});
      if (verdict.status.is_ok()) return;
      if (!verdict.ended) continue;
      comm::Line settlement(board_, comm::line_number::settlement, members_);
      EXPECT_TRUE(settlement.agree({{}, "finalize", {}}).status.is_ok());
      return;
    }
  }
  comm::Line& computes() { return *computes_; }

 private:
  comm::Switchboard& board_;
  std::shared_ptr<const comm::Members> members_;
  std::unique_ptr<comm::Line> computes_;
};

/// Runs a random program to its end.
void run_random_program(const CollectiveProgram::Size& size, std::uint64_t seed) {
  Scheduler dice(seed * 6151);
  const CollectiveProgram program(dice, size);
  FibreWorld world(size.ranks, seed);
  std::vector<std::string> wrong;
  std::size_t made = 0;
  const std::vector<std::string> unfinished = world.run([&](FibreRank& rank) {
    Session session(rank, size.ranks);
    CollectiveProgram::Lines lines;
    const std::vector<CollectiveCall> calls = program.calls_of(rank.rank());
    program.run(rank, calls, dice, lines, wrong);
    made += calls.size();
    session.finalize();
    CollectiveProgram::leave(rank, lines);
    EXPECT_FALSE(rank.board().order().broken())
        << "seed " << seed << " " << rank.board().order().broken()->text();
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

/// One rank makes a call of its own on the line of all ranks in the middle of its program, or goes to its end
/// from there. No rank waits for ever, and if the order is broken all ranks are told the same.
TEST(sim_program, ranks_in_different_calls_all_come_to_the_end) {
  int broken = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Scheduler dice(seed * 9973);
    const int ranks = static_cast<int>(dice.random(2, 12));
    const CollectiveProgram program(dice, {ranks, static_cast<int>(dice.random(1, 5)), 20});
    const int odd = static_cast<int>(dice.random(0, ranks - 1));
    const bool goes_on = dice.once_in(2);
    FibreWorld world(ranks, seed);
    std::vector<std::string> wrong;
    std::set<std::string> told;
    int tellers = 0;
    const std::vector<std::string> unfinished = world.run([&](FibreRank& rank) {
      Session session(rank, ranks);
      CollectiveProgram::Lines lines;
      std::vector<CollectiveCall> calls = program.calls_of(rank.rank());
      if (rank.rank() == odd) {
        const auto middle = calls.begin() + dice.random(0, static_cast<std::int64_t>(calls.size()));
        std::vector<CollectiveCall> rest(middle, calls.end());
        calls.erase(middle, calls.end());
        program.run(rank, calls, dice, lines, wrong);
        (void)session.computes().agree({{}, "a call of its own", {}});
        calls = goes_on ? std::move(rest) : std::vector<CollectiveCall>();
      }
      program.run(rank, calls, dice, lines, wrong);
      session.finalize();
      CollectiveProgram::leave(rank, lines);
      if (!rank.board().order().broken()) return;
      ++tellers;
      told.insert(rank.board().order().broken()->text());
    });
    EXPECT_EQ(unfinished, std::vector<std::string>()) << "seed " << seed;
    EXPECT_LE(told.size(), 1U) << "seed " << seed;
    EXPECT_TRUE(tellers == 0 || tellers == ranks) << "seed " << seed << ": " << tellers << " of " << ranks;
    for (const std::string& text : told) EXPECT_NE(text.find("a call of its own"), std::string::npos) << text;
    broken += tellers > 0 ? 1 : 0;
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(broken, 20);
}

/// Checks the program's checks: ranks get an error if two agreements differ, and others wait for a vote that
/// never comes.
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
      CollectiveProgram::Lines lines;
      program.run(rank, calls, dice, lines, wrong);
      CollectiveProgram::leave(rank, lines);
    });
    EXPECT_FALSE(unfinished.empty()) << "seed " << seed;
    for (const std::string& text : wrong)
      disagreements += text.find("ranks disagree") == std::string::npos ? 0 : 1;
  }
  EXPECT_GT(disagreements, 0);
}

}  // namespace program_test
}  // namespace tailrace::sim
