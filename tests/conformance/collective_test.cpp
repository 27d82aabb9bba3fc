// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Collective files of the simulated world. collective_mpi_test.cpp has MPI.
#include <gtest/gtest.h>

#include "collective_cases.hpp"
#include "ground/sim/collective.hpp"
#include "sim/fibre_world.hpp"

namespace tailrace::comm {
namespace {

struct Place {
  explicit Place(sim::FibreWorld& world)
      : size(world.size()), meetings(world.scheduler(), static_cast<std::size_t>(size), nullptr) {}
  int size;
  int arrived = 0;  // over all meetings
  std::shared_ptr<storage::Target> target = storage::memory_target();
  sim::Meetings meetings;
};

class SimulatedEnd final : public CollectiveEnd {
 public:
  SimulatedEnd(sim::FibreRank& rank, Place& place)
      : rank_(rank),
        place_(place),
        files_(place.meetings.join(static_cast<std::size_t>(rank.rank()), place.target,
                                   [&rank] { rank.poke(); })) {}
  CollectiveFiles& files() override { return *files_; }
  storage::Target& target() override { return *place_.target; }
  [[nodiscard]] int rank() const override { return rank_.rank(); }
  [[nodiscard]] int size() const override { return place_.size; }
  [[nodiscard]] std::string path(const std::string& name) const override { return name; }
  void meet() override {
    const int wanted = (place_.arrived++ / place_.size + 1) * place_.size;
    for (sim::Nanoseconds nap = 10'000; place_.arrived < wanted; nap *= 2) rank_.stall(nap);
  }
  void idle() override { rank_.port().idle(0, "a collective call"); }
  void check(bool holds, const std::string& what) override {
    EXPECT_TRUE(holds) << "process " << rank() << " of " << size() << ": " << what;
  }

 private:
  sim::FibreRank& rank_;
  Place& place_;
  std::unique_ptr<CollectiveFiles> files_;
};

class CollectiveConformance : public testing::TestWithParam<CollectiveCase> {};

TEST_P(CollectiveConformance, holds_in_the_simulated_world) {
  std::uint64_t seed = 0;
  for (const int size : {1, 2, 3, 5}) {
    for (int i = 0; i < 5; ++i) {
      sim::FibreWorld world(size, ++seed);
      Place place(world);
      const auto hanging = world.run([&](sim::FibreRank& rank) {
        SimulatedEnd end(rank, place);
        GetParam().run(end);
        end.meet();
      });
      EXPECT_EQ(hanging, std::vector<std::string>()) << size << " processes";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(each, CollectiveConformance, testing::ValuesIn(collective_cases()),
                         [](const auto& instance) { return instance.param.name; });

/// Servers that came to different calls would hang, or write anything: the simulated world stops the test.
TEST(CollectiveFiles, of_the_simulated_world_notice_different_calls) {
  sim::Scheduler scheduler(1);
  sim::Meetings meetings(scheduler, 2, nullptr);
  const auto target = storage::memory_target();
  const auto one = meetings.join(0, target, [] {});
  const auto other = meetings.join(1, target, [] {});
  const auto own = [] { return Status(); };
  one->sync("a", own, [](const Status&) {});
  EXPECT_THROW(other->sync("b", own, [](const Status&) {}), std::logic_error);
  const std::string text = "text";
  EXPECT_THROW(one->write("a", {{0, {std::as_bytes(std::span(text))}}}, 0, own, [](const Status&) {}),
               std::logic_error)
      << "more runs than calls";
}

}  // namespace
}  // namespace tailrace::comm
