// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>

#include <numeric>

#include "fibre_world.hpp"
#include "ground/comm/line.hpp"

namespace tailrace::sim {
namespace {

using comm::Broadcasts;

/// Ranks that hear what rank 0 says, again and again.
class Audience {
 public:
  Audience(int size, std::uint64_t seed) : world_(size, seed), heard_(static_cast<std::size_t>(size)) {
    std::vector<int> ranks(static_cast<std::size_t>(size));
    std::iota(ranks.begin(), ranks.end(), 0);
    const auto members = std::make_shared<const comm::Members>(ranks);
    for (const int rank : ranks)
      lines_.push_back(std::make_unique<comm::Line>(world_.board(rank), comm::line_number::session, members));
  }

  void run(int rounds) {
    const auto program = [&](FibreRank& rank) { member(rank, rounds); };
    EXPECT_EQ(world_.run(program), std::vector<std::string>());
  }
  [[nodiscard]] const std::vector<ByteVector>& heard(int rank) const {
    return heard_[static_cast<std::size_t>(rank)];
  }
  [[nodiscard]] std::int64_t messages() { return world_.messages(); }
  static ByteVector words(int round) {
    return ByteVector(static_cast<std::size_t>(round * 37), std::byte(round));
  }

 private:
  void member(FibreRank& self, int rounds) {
    const auto place = static_cast<std::size_t>(self.rank());
    Broadcasts& mine = lines_[place]->broadcasts();
    for (int round = 0; round < rounds; ++round) {
      self.stall(world_.scheduler().random(0, 100'000));
      const std::uint64_t number = mine.post(place == 0 ? words(round) : ByteVector());
      std::optional<ByteVector> said;
      self.board().wait([&] { return (said = mine.take(number)).has_value(); }, "a broadcast");
      heard_[place].push_back(std::move(*said));
    }
  }

  FibreWorld world_;
  std::vector<std::unique_ptr<comm::Line>> lines_;
  std::vector<std::vector<ByteVector>> heard_;
};

TEST(sim_broadcast, every_rank_hears_everything_in_order) {
  constexpr int rounds = 6;
  for (int size = 1; size <= 17; ++size) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      Audience audience(size, seed);
      audience.run(rounds);
      for (int rank = 0; rank < size; ++rank) {
        ASSERT_EQ(audience.heard(rank).size(), std::size_t{rounds}) << size << " ranks, seed " << seed;
        for (int round = 0; round < rounds; ++round)
          EXPECT_EQ(audience.heard(rank)[static_cast<std::size_t>(round)], Audience::words(round));
      }
      EXPECT_EQ(audience.messages(), std::int64_t{rounds} * (size - 1));
    }
  }
}

}  // namespace
}  // namespace tailrace::sim
