// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "fibre_world.hpp"
#include "ground/base/text.hpp"
#include "ground/comm/line.hpp"

namespace tailrace::sim {
namespace {

using comm::Agreements;
using comm::Verdict;
using comm::Vote;

/// Ranks that do nothing but agree.
class Assembly {
 public:
  Assembly(int size, std::uint64_t seed) : world_(size, seed), verdicts_(static_cast<std::size_t>(size)) {
    std::vector<int> ranks(static_cast<std::size_t>(size));
    std::iota(ranks.begin(), ranks.end(), 0);
    const auto members = std::make_shared<const comm::Members>(ranks);
    for (const int rank : ranks)
      lines_.push_back(std::make_unique<comm::Line>(world_.board(rank), comm::line_number::session, members));
  }

  /// Each rank posts what `votes` gives for (rank, round), round after round, and waits for each verdict.
  void run(int rounds, const std::function<Vote(int, int)>& votes) {
    const auto program = [&](FibreRank& rank) { member(rank, rounds, votes); };
    (void)world_.run(program, 10 * FibreWorld::second);
  }
  FibreRank& rank(int number) { return world_.rank(number); }
  Agreements& agreements(int rank) { return lines_[static_cast<std::size_t>(rank)]->agreements(); }
  const std::vector<Verdict>& verdicts(int rank) { return verdicts_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] std::int64_t messages() { return world_.messages(); }

 private:
  void member(FibreRank& self, int rounds, const std::function<Vote(int, int)>& votes) {
    for (int round = 0; round < rounds; ++round) {
      self.stall(world_.scheduler().random(0, 100'000));
      const std::uint64_t number = agreements(self.rank()).post(votes(self.rank(), round));
      std::optional<Verdict> verdict;
      self.board().wait([&] { return (verdict = agreements(self.rank()).take(number)).has_value(); },
                        "a verdict");
      // Thousands of ranks need not keep thousands of empty contributions each.
      const auto is_empty = [](const ByteVector& bytes) { return bytes.empty(); };
      if (std::all_of(verdict->contributions.begin(), verdict->contributions.end(), is_empty))
        verdict->contributions = {};
      verdicts_[static_cast<std::size_t>(self.rank())].push_back(std::move(*verdict));
    }
  }

  FibreWorld world_;
  std::vector<std::unique_ptr<comm::Line>> lines_;
  std::vector<std::vector<Verdict>> verdicts_;
};

void expect_same(const Status& a, const Status& b) {
  EXPECT_EQ(a.code(), b.code());
  EXPECT_EQ(a.text(), b.text());
  EXPECT_EQ(a.cause(), b.cause());
  EXPECT_EQ(a.error_number(), b.error_number());
}

TEST(sim_agreement, all_ranks_take_away_the_error_with_the_lowest_cause) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Scheduler dice(seed * 7919);
    const int size = seed <= 20 ? static_cast<int>(seed) : static_cast<int>(dice.random(1, 200));
    constexpr int rounds = 3;
    std::vector<std::vector<Vote>> votes(static_cast<std::size_t>(size));
    std::vector<Status> lowest(rounds);
    for (int rank = 0; rank < size; ++rank) {
      for (int round = 0; round < rounds; ++round) {
        Vote vote;
        vote.call = cat("call ", round);
        if (dice.once_in(3)) {
          vote.status = Status(Code::io, cat("rank ", rank, " failed in round ", round), 5)
                            .at({dice.random(0, 3), dice.random(0, 3), rank});
        }
        if (dice.once_in(4))
          vote.contribution.resize(static_cast<std::size_t>(rank % 50 + 1), std::byte(rank));
        lowest[static_cast<std::size_t>(round)] =
            first_cause(lowest[static_cast<std::size_t>(round)], vote.status);
        votes[static_cast<std::size_t>(rank)].push_back(std::move(vote));
      }
    }
    Assembly assembly(size, seed);
    assembly.run(rounds, [&](int rank, int round) {
      return votes[static_cast<std::size_t>(rank)][static_cast<std::size_t>(round)];
    });
    for (int rank = 0; rank < size; ++rank) {
      ASSERT_EQ(assembly.verdicts(rank).size(), std::size_t{rounds}) << "seed " << seed << " rank " << rank;
      for (std::size_t round = 0; round < rounds; ++round) {
        const Verdict& verdict = assembly.verdicts(rank)[round];
        expect_same(verdict.status, lowest[round]);
        for (std::size_t other = 0; other < static_cast<std::size_t>(size); ++other) {
          const ByteVector brought =
              verdict.contributions.empty() ? ByteVector() : verdict.contributions[other];
          EXPECT_EQ(brought, votes[other][round].contribution);
        }
      }
    }
    EXPECT_EQ(assembly.messages(), std::int64_t{2} * rounds * (size - 1));
  }
}

TEST(sim_agreement, the_first_rank_checks_what_all_have_brought_before_any_rank_hears) {
  for (const int size : {1, 2, 7, 64}) {
    int checks = 0;
    Assembly assembly(size, 3);
    // In round 0 nothing is wrong, in round 1 the check finds the sum too large, in round 2 a rank has
    // failed.
    assembly.run(3, [&](int rank, int round) {
      Vote vote{{}, cat("call ", round), {}};
      vote.for_first = Packer().put(std::int64_t{round == 1 ? 10 : 1}).take();
      if (round == 2 && rank == size - 1) vote.status = Status(Code::io, "failed by itself");
      if (rank != 0) return vote;
      vote.check = [&checks](const Verdict& verdict) {
        ++checks;
        std::int64_t sum = 0;
        for (const ByteVector& each : verdict.for_first) sum += Unpacker(each).get<std::int64_t>();
        return sum < 10 * static_cast<std::int64_t>(verdict.for_first.size())
                   ? Status()
                   : Status(Code::memory, cat("the sum is ", sum));
      };
      return vote;
    });
    EXPECT_EQ(checks, 2) << "a check is for votes that pass";
    for (int rank = 0; rank < size; ++rank) {
      const std::vector<Verdict>& heard = assembly.verdicts(rank);
      EXPECT_TRUE(heard[0].status.is_ok()) << heard[0].status.text();
      expect_same(heard[1].status, Status(Code::memory, cat("the sum is ", 10 * size)).at({-1, -1, 0}));
      EXPECT_EQ(heard[2].status.text(), "failed by itself");
    }
    EXPECT_EQ(assembly.messages(), std::int64_t{2} * 3 * (size - 1));
  }
}

TEST(sim_agreement, four_thousand_ranks_agree) {
  constexpr int size = 4096;
  Assembly assembly(size, 3);
  assembly.run(2, [](int rank, int round) {
    Vote vote;
    vote.call = "tr_stream_create";
    if (round == 1 && rank >= 1777)
      vote.status = Status(Code::data, cat("rank ", rank, " has no data")).at({4, 1, -1});
    return vote;
  });
  for (int rank = 0; rank < size; ++rank) {
    ASSERT_EQ(assembly.verdicts(rank).size(), 2U);
    EXPECT_TRUE(assembly.verdicts(rank)[0].status.is_ok());
    EXPECT_EQ(assembly.verdicts(rank)[1].status.text(), "rank 1777 has no data");
    EXPECT_EQ(assembly.verdicts(rank)[1].status.rank(), 1777);
  }
}

/// Ranks other than the first do not get the contributions that are for the first rank alone.
TEST(sim_agreement, each_rank_hears_the_sum_of_the_lower_ranks_the_largest_bid_and_the_first_what_is_for_it) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const int size = static_cast<int>(Scheduler(seed * 7919).random(1, 150));
    Assembly assembly(size, seed);
    assembly.run(2, [](int rank, int round) {
      Vote vote{{}, "call", {}};
      vote.addend = 1000 * round + rank;
      if (rank % 5 == round) vote.bid = -1000 - rank;
      if (rank % 3 != 0) vote.for_first.resize(static_cast<std::size_t>(rank), std::byte(round));
      return vote;
    });
    for (int rank = 0; rank < size; ++rank) {
      for (int round = 0; round < 2; ++round) {
        const Verdict& verdict = assembly.verdicts(rank)[static_cast<std::size_t>(round)];
        EXPECT_EQ(verdict.before, 1000 * round * rank + rank * (rank - 1) / 2) << "seed " << seed;
        EXPECT_EQ(verdict.largest_bid, round < size ? -1000 - round : Vote::least_bid) << "seed " << seed;
        ASSERT_EQ(verdict.for_first.size(), rank == 0 ? static_cast<std::size_t>(size) : 0);
      }
    }
    for (int other = 0; other < size; ++other) {
      const auto length = static_cast<std::size_t>(other % 3 != 0 ? other : 0);
      EXPECT_EQ(assembly.verdicts(0)[1].for_first[static_cast<std::size_t>(other)],
                ByteVector(length, std::byte{1}));
    }
  }
}

TEST(sim_agreement, ranks_that_call_different_things_are_told_so_alike) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Scheduler dice(seed * 104729);
    const int size = static_cast<int>(dice.random(2, 70));
    const int odd = static_cast<int>(dice.random(0, size - 1));
    Assembly assembly(size, seed);
    assembly.run(1, [&](int rank, int) {
      return Vote{{}, rank == odd ? "tr_stream_define(\"t\")" : "tr_stream_define(\"u\")", {}};
    });
    const Status& first = assembly.verdicts(0).at(0).status;
    EXPECT_EQ(first.code(), Code::order);
    EXPECT_NE(first.text().find(cat("rank ", odd, " calls tr_stream_define(\"t\")")), std::string::npos)
        << first.text();
    for (int rank = 0; rank < size; ++rank) expect_same(assembly.verdicts(rank).at(0).status, first);
  }
}

/// The text names ranks and calls, and must not depend on which message came first.
TEST(sim_agreement, the_text_of_a_disagreement_does_not_depend_on_timing) {
  for (const int size : {3, 9, 40}) {
    std::string text;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      Assembly assembly(size, seed);
      assembly.run(1, [](int rank, int) { return Vote{{}, cat("call ", rank % 3), {}}; });
      const std::string& told = assembly.verdicts(size - 1).at(0).status.text();
      if (seed == 1) text = told;
      EXPECT_EQ(told, text) << size << " ranks, seed " << seed;
    }
  }
}

TEST(sim_agreement, a_lost_rank_is_missing_where_its_vote_should_arrive) {
  for (const int size : {2, 5, 64, 100}) {
    for (const int lost : {1, size / 2, size - 1}) {
      if (lost == 0) continue;
      Assembly assembly(size, static_cast<std::uint64_t>(size + lost));
      assembly.rank(lost).lose();
      assembly.run(1, [](int, int) { return Vote{{}, "tr_stream_create", {}}; });
      // Each missing text leads from the root down to the lost rank.
      int where = 0;
      while (where != lost) {
        const std::vector<int> children = assembly.agreements(where).children();
        const std::string missing = assembly.agreements(where).missing_text(0);
        const auto is_missing = [&](int child) {
          return missing == cat(" nothing from rank ", child, " or those behind it;");
        };
        const auto next = std::find_if(children.begin(), children.end(), is_missing);
        ASSERT_NE(next, children.end()) << "of " << size << " ranks, at " << where << ":" << missing;
        where = *next;
      }
      for (int rank = 0; rank < size; ++rank) EXPECT_TRUE(assembly.verdicts(rank).empty());
    }
  }
}

}  // namespace
}  // namespace tailrace::sim
