// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// The simulated network, and a shared transport around it. transport_mpi_test.cpp has MPI.
#include "ground/comm/transport.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <thread>

#include "sim/fibre_world.hpp"
#include "transport_cases.hpp"

namespace tailrace::comm {
namespace {

/// Where the ranks of a simulated world meet.
struct Meeting {
  int size = 0;
  int arrived = 0;  // over all meetings
};

class SimulatedEnd final : public End {
 public:
  SimulatedEnd(sim::FibreRank& rank, Meeting& meeting, bool shared) : rank_(rank), meeting_(meeting) {
    if (shared) shared_.connect(rank.port());
  }
  Transport& transport() override {
    return shared_.is_connected() ? static_cast<Transport&>(shared_) : rank_.port();
  }
  [[nodiscard]] int size() const override { return meeting_.size; }
  void meet() override {
    const int wanted = (meeting_.arrived++ / meeting_.size + 1) * meeting_.size;
    for (sim::Nanoseconds nap = 10'000; meeting_.arrived < wanted; nap *= 2) rank_.stall(nap);
  }
  void check(bool holds, const std::string& what) override {
    EXPECT_TRUE(holds) << "rank " << rank_.rank() << " of " << size() << ": " << what;
  }

 private:
  sim::FibreRank& rank_;
  Meeting& meeting_;
  SharedTransport shared_;
};

class TransportConformance : public testing::TestWithParam<TransportCase> {};

TEST_P(TransportConformance, holds_in_the_simulated_world) {
  std::uint64_t seed = 0;
  for (const int size : {1, 2, 3}) {
    for (const bool shared : {false, true}) {
      sim::FibreWorld world(size, ++seed);
      Meeting meeting{size};
      const auto hanging = world.run([&](sim::FibreRank& rank) {
        SimulatedEnd end(rank, meeting, shared);
        GetParam().run(end);
      });
      EXPECT_EQ(hanging, std::vector<std::string>()) << size << " ranks, shared: " << shared;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(each, TransportConformance, testing::ValuesIn(transport_cases()),
                         [](const auto& instance) { return instance.param.name; });

/// Notices threads that use it at the same time.
class Alone final : public Transport {
 public:
  [[nodiscard]] int rank() const override { return 0; }
  void send(int, LineNumber, Traffic, ByteVector) override { use(); }
  bool progress() override { return use(); }
  std::optional<Envelope> receive() override {
    use();
    return std::nullopt;
  }
  std::optional<Envelope> receive_request() override {
    use();
    return std::nullopt;
  }
  std::optional<ByteVector> receive_from(int, LineNumber, Traffic) override {
    use();
    return std::nullopt;
  }
  [[nodiscard]] Bytes unsent(LineNumber, Traffic) const override { return use() ? 1 : 0; }
  [[nodiscard]] bool all_sent() const override { return use(); }
  [[nodiscard]] bool was_shared() const { return was_shared_; }

 private:
  bool use() const {
    if (users_.fetch_add(1) > 0) was_shared_ = true;
    for (int i = 0; i < 300; ++i) static_cast<void>(users_.load());  // a yield would cost a time slice
    users_.fetch_sub(1);
    return false;
  }
  mutable std::atomic<int> users_ = 0;
  mutable std::atomic<bool> was_shared_ = false;
};

TEST(SharedTransport, is_used_by_one_thread_at_a_time) {
  const std::function<void(SharedTransport&)> uses[] = {
      [](SharedTransport& shared) { shared.send(0, 0, Traffic::data, {}); },
      [](SharedTransport& shared) { shared.progress(); },
      [](SharedTransport& shared) { EXPECT_FALSE(shared.receive().has_value()); },
      [](SharedTransport& shared) { EXPECT_FALSE(shared.receive_request().has_value()); },
      [](SharedTransport& shared) { EXPECT_FALSE(shared.receive_from(0, 0, Traffic::data).has_value()); },
      [](SharedTransport& shared) { EXPECT_EQ(shared.unsent(0, Traffic::data), 0); },
      [](SharedTransport& shared) { EXPECT_FALSE(shared.all_sent()); },
  };
  for (std::size_t use = 0; use < std::size(uses); ++use) {
    Alone alone;
    SharedTransport shared;
    shared.connect(alone);
    std::latch both(2);
    const auto repeat = [&] {
      both.arrive_and_wait();
      for (int i = 0; i < 500; ++i) uses[use](shared);
    };
    std::thread other(repeat);
    repeat();
    other.join();
    EXPECT_FALSE(alone.was_shared()) << "use " << use;
  }
}

}  // namespace
}  // namespace tailrace::comm
