// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Counters of the simulated world, and those by messages. counters_mpi_test.cpp has MPI.
#include <gtest/gtest.h>

#include <numeric>

#include "counters_cases.hpp"
#include "ground/comm/counters/message_counters.hpp"
#include "ground/sim/counters.hpp"
#include "sim/fibre_world.hpp"

namespace tailrace::comm {
namespace {

constexpr MessageCounters::Kinds kinds{100, 101};

struct Place {
  explicit Place(sim::FibreWorld& world)
      : size(world.size()), shared(world.scheduler(), static_cast<std::size_t>(world.size())) {}
  int size;
  int arrived = 0;  // over all meetings
  std::vector<std::int64_t> gathered;
  sim::SharedCounters shared;
};

class SimulatedEnd final : public CountersEnd {
 public:
  SimulatedEnd(sim::FibreRank& rank, Place& place, bool by_messages) : rank_(rank), place_(place) {
    std::vector<int> ranks(static_cast<std::size_t>(place.size));
    std::iota(ranks.begin(), ranks.end(), 0);
    line_ = std::make_unique<Line>(rank.board(), line_number::session, std::make_shared<Members>(ranks));
    if (by_messages)
      counters_ = std::make_unique<MessageCounters>(*line_, ranks, kinds);
    else
      counters_ = place.shared.join(static_cast<std::size_t>(rank.rank()), [&rank] { rank.poke(); });
  }
  Counters& counters() override { return *counters_; }
  [[nodiscard]] int rank() const override { return rank_.rank(); }
  [[nodiscard]] int size() const override { return place_.size; }
  void meet() override {
    const int wanted = (place_.arrived++ / place_.size + 1) * place_.size;
    while (place_.arrived < wanted) {
      rank_.stall(10'000);
      idle();
    }
  }
  std::vector<std::int64_t> gather(const std::vector<std::int64_t>& mine) override {
    meet();
    place_.gathered.resize(mine.size() * static_cast<std::size_t>(size()));
    std::ranges::copy(mine, place_.gathered.begin() + static_cast<std::ptrdiff_t>(mine.size()) * rank());
    meet();
    return place_.gathered;
  }
  void idle() override {
    const bool moved = rank_.board().pump();
    if (!counters_->poll() && !moved) rank_.stall(1'000);
  }
  void check(bool holds, const std::string& what) override {
    EXPECT_TRUE(holds) << "process " << rank() << " of " << size() << ": " << what;
  }

 private:
  sim::FibreRank& rank_;
  Place& place_;
  std::unique_ptr<Line> line_;
  std::unique_ptr<Counters> counters_;
};

class CountersConformance : public testing::TestWithParam<CountersCase> {
 protected:
  static void run(bool by_messages) {
    std::uint64_t seed = 0;
    for (const int size : {1, 2, 3, 5}) {
      for (int i = 0; i < 4; ++i) {
        sim::FibreWorld world(size, ++seed);
        Place place(world);
        const auto hanging = world.run([&](sim::FibreRank& rank) {
          SimulatedEnd end(rank, place, by_messages);
          GetParam().run(end);
          end.meet();
        });
        EXPECT_EQ(hanging, std::vector<std::string>()) << size << " processes";
      }
    }
  }
};

TEST_P(CountersConformance, holds_in_the_simulated_world) { run(false); }
TEST_P(CountersConformance, holds_by_messages) { run(true); }

INSTANTIATE_TEST_SUITE_P(each, CountersConformance, testing::ValuesIn(counters_cases()),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace tailrace::comm
