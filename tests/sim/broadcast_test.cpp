// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>

#include "base/text.hpp"
#include "comm/line.hpp"
#include "comm/switchboard.hpp"
#include "sim/network.hpp"

namespace tailrace::sim {
namespace {

using comm::Broadcasts;

/// Ranks that hear what rank 0 says, again and again.
class Audience {
 public:
  Audience(int size, std::uint64_t seed) : scheduler_(seed), network_(scheduler_, size) {
    std::vector<int> ranks;
    for (int rank = 0; rank < size; ++rank) ranks.push_back(rank);
    const auto members = std::make_shared<const comm::Members>(ranks);
    for (int rank = 0; rank < size; ++rank) {
      Port& port = network_.port(rank);
      boards_.push_back(std::make_unique<comm::Switchboard>());
      boards_.back()->connect(port);
      lines_.push_back(std::make_unique<comm::Line>(*boards_.back(), comm::line_number::session, members));
      actors_.push_back(std::make_unique<Actor>(scheduler_, cat("rank ", rank)));
      port.on_news([actor = actors_.back().get()] { actor->poke(); });
    }
    heard_.resize(actors_.size());
  }
  ~Audience() { actors_.clear(); }

  void run(int rounds) {
    for (std::size_t rank = 0; rank < actors_.size(); ++rank)
      actors_[rank]->start(member(static_cast<int>(rank), rounds));
    while (scheduler_.run_one()) {
    }
  }
  [[nodiscard]] const std::vector<ByteVector>& heard(int rank) const {
    return heard_[static_cast<std::size_t>(rank)];
  }
  [[nodiscard]] std::int64_t messages() const { return network_.messages(); }
  static ByteVector words(int round) {
    return ByteVector(static_cast<std::size_t>(round * 37), std::byte(round));
  }

 private:
  Task<> member(int rank, int rounds) {
    const auto place = static_cast<std::size_t>(rank);
    Actor& self = *actors_[place];
    Broadcasts& mine = lines_[place]->broadcasts();
    Port& port = network_.port(rank);
    const std::function<bool()> awake = [&port] { return port.has_news(); };
    for (int round = 0; round < rounds; ++round) {
      co_await self.step(scheduler_.random(0, 100'000));
      const std::uint64_t number = mine.post(rank == 0 ? words(round) : ByteVector());
      for (;;) {
        boards_[place]->pump();
        if (std::optional<ByteVector> said = mine.take(number)) {
          heard_[place].push_back(std::move(*said));
          break;
        }
        co_await self.sleep(awake, "a broadcast");
      }
    }
  }

  Scheduler scheduler_;
  Network network_;
  std::vector<std::unique_ptr<comm::Switchboard>> boards_;
  std::vector<std::unique_ptr<comm::Line>> lines_;
  std::vector<std::unique_ptr<Actor>> actors_;
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
