// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/comm/sparse_exchange.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "fibre_world.hpp"
#include "ground/base/text.hpp"
#include "ground/comm/line.hpp"

namespace tailrace::sim {
namespace {

using Messages = std::map<int, ByteVector>;

/// The messages of each rank, by source.
using Sent = std::vector<Messages>;

Sent random_messages(Scheduler& dice, int ranks) {
  Sent sent(static_cast<std::size_t>(ranks));
  for (Messages& each : sent) {
    for (std::int64_t more = dice.random(0, 4); more > 0; --more) {
      const auto length =
          static_cast<std::size_t>(dice.once_in(5) ? dice.random(0, 50'000) : dice.random(0, 9));
      each[static_cast<int>(dice.random(0, ranks - 1))] =
          ByteVector(length, static_cast<std::byte>(dice.random(0, 255)));
    }
  }
  return sent;
}

Messages expected_at(int rank, const Sent& sent) {
  Messages expected;
  for (std::size_t source = 0; source < sent.size(); ++source) {
    const auto found = sent[source].find(rank);
    if (found != sent[source].end()) expected[static_cast<int>(source)] = found->second;
  }
  return expected;
}

std::shared_ptr<const comm::Members> all_of(int ranks) {
  std::vector<int> list;
  for (int rank = 0; rank < ranks; ++rank) list.push_back(rank);
  return std::make_shared<const comm::Members>(std::move(list));
}

/// Exchanges follow one another without anything between them, so that fast ranks send messages of the next
/// exchange while slow ranks are still in this one. In one of three exchanges a rank brings an error, and all
/// ranks hear of it.
TEST(sim_sparse_exchange, every_rank_gets_what_was_sent_to_it_and_all_hear_of_an_error) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Scheduler dice(seed * 7919);
    const int ranks = static_cast<int>(dice.random(1, 40));
    constexpr int rounds = 4;
    std::vector<Sent> sent;
    std::vector<int> bad;
    for (int round = 0; round < rounds; ++round) {
      sent.push_back(random_messages(dice, ranks));
      bad.push_back(dice.once_in(3) ? static_cast<int>(dice.random(0, ranks - 1)) : -1);
    }
    FibreWorld world(ranks, seed);
    const auto members = all_of(ranks);
    const std::vector<std::string> unfinished = world.run([&](FibreRank& rank) {
      comm::Line line(rank.board(), comm::line_number::session, members);
      for (std::size_t round = 0; round < rounds; ++round) {
        rank.stall(dice.random(1, 100'000));
        comm::Vote vote{{}, cat("exchange ", round), {}};
        if (rank.rank() == bad[round]) vote.status = Status(Code::data, "bad");
        const auto got = line.exchange(sent[round][static_cast<std::size_t>(rank.rank())], std::move(vote));
        EXPECT_EQ(got.is_ok(), bad[round] < 0);
        if (!got.is_ok()) {
          EXPECT_EQ(got.status().rank(), bad[round]);
          continue;
        }
        EXPECT_TRUE(*got == expected_at(rank.rank(), sent[round])) << "seed " << seed;
      }
      // This rank stays to pass on late messages for other ranks.
      (void)line.agree({{}, "the end", {}});
    });
    EXPECT_EQ(unfinished, std::vector<std::string>()) << "seed " << seed;
    if (testing::Test::HasFailure()) return;
  }
}

/// Each rank sends to two others. So, but for the agreement, it sends as many messages among 1,000 ranks as
/// among 10.
TEST(sim_sparse_exchange, a_rank_sends_only_to_those_it_has_something_for) {
  constexpr int ranks = 1000;
  FibreWorld world(ranks, 3);
  const auto members = all_of(ranks);
  std::int64_t most = 0;
  const std::vector<std::string> unfinished = world.run([&](FibreRank& rank) {
    comm::Line line(rank.board(), comm::line_number::session, members);
    Messages messages;
    for (const int distance : {1, 500}) messages[(rank.rank() + distance) % ranks] = ByteVector(8);
    EXPECT_EQ(line.exchange(std::move(messages), {{}, "exchange", {}})->size(), 2U);
    most = std::max(most, rank.port().messages());
  });
  EXPECT_EQ(unfinished, std::vector<std::string>());
  EXPECT_LE(most, 2 * 2 + 10);  // 2 messages, 2 arrivals, and at most 10 children in the tree
}

}  // namespace
}  // namespace tailrace::sim
