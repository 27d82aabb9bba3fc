// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Memory that compute ranks hand to a server of their node: it is the same memory there, until they take it
// back, and a server that cannot take it says why.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "ground/base/text.hpp"
#include "scenario.hpp"
#include "session_world.hpp"

namespace tailrace::sim {
namespace {

using node::Handed;
using node::MemoryTaker;
using node::NodeMemory;

constexpr Bytes handed_bytes = 100'000;

/// Adds the number of the description to each byte, and once more at the end, which it puts off for a while.
class Adding final : public MemoryTaker::Work {
 public:
  Adding(std::unique_ptr<NodeMemory> memory, Unpacker description)
      : memory_(std::move(memory)), number_(description.get<std::uint8_t>()) {
    add();
  }
  std::optional<ByteVector> end(bool /*does_hear*/) override {
    if (++asked_ < 4) return std::nullopt;
    add();
    return Packer().put_text("done").take();
  }

 private:
  void add() {
    for (Bytes i = 0; i < handed_bytes; ++i)
      memory_->part(0)[i] = static_cast<std::byte>(static_cast<int>(memory_->part(0)[i]) + number_);
  }
  std::unique_ptr<NodeMemory> memory_;
  const std::uint8_t number_;
  int asked_ = 0;
};

Job job_with_servers(std::uint64_t seed) {
  Job job;
  job.nodes = {{2, 1}, {3, 2}};
  job.seed = seed;
  job.limits_parks = true;
  job.mixed = seed % 2 == 0;
  job.on_server = [](session::Session& session) {
    session.serving().taker().on(Handed::elements,
                                 [](int, std::unique_ptr<NodeMemory> memory, Unpacker description) {
                                   return Result<std::unique_ptr<MemoryTaker::Work>>(
                                       std::make_unique<Adding>(std::move(memory), description));
                                 });
    return std::shared_ptr<void>();
  };
  return job;
}

struct Place {
  std::shared_ptr<files::Group> group;
  std::unique_ptr<NodeMemory> memory;
  int server = -1;
  [[nodiscard]] bool gives() const { return group->node().rank() == 0; }
};

/// Memory of the compute ranks of this node; each byte is 1.
Place place_of(SessionRank& rank) {
  Place place;
  place.group = *rank.group(rank.session().topology().roster().compute_transport);
  const std::vector<Bytes> parts(static_cast<std::size_t>(place.group->node().size()), handed_bytes);
  place.memory = *NodeMemory::create(place.group->node(), parts, false, 0, {}, NodeMemory::Growth::by_any);
  if (place.gives()) {
    EXPECT_TRUE(place.memory->add(place.memory->part(0), 131'072).is_ok());
    std::memset(place.memory->part(0), 1, handed_bytes);
  }
  const session::Topology& topology = rank.session().topology();
  place.server = topology.first_server_on(topology.node()).value_or(-1);
  return place;
}

bool all_are(const NodeMemory& memory, int value) {
  return std::all_of(memory.part(0), memory.part(0) + handed_bytes,
                     [value](std::byte each) { return static_cast<int>(each) == value; });
}

ByteVector numbered(std::uint8_t number) { return Packer().put(number).take(); }

void run_with_servers(Job job, const std::function<void(SessionRank&)>& program) {
  SessionWorld world(std::move(job));
  EXPECT_EQ(world.run(program), std::vector<std::string>());
  EXPECT_TRUE(world.failures().empty());
}

TEST(sim_handed_memory, a_server_has_the_memory_of_its_node_until_it_is_taken_back) {
  for (std::uint64_t seed = 1; seed <= seeds(10); ++seed) {
    run_with_servers(job_with_servers(seed), [&](SessionRank& rank) {
      const Place place = place_of(rank);
      if (!place.gives()) return;
      node::MemoryGiver& giver = rank.session().giver();
      const Result<std::uint64_t> first =
          giver.hand(place.server, Handed::elements, *place.memory, numbered(3));
      ASSERT_TRUE(first.is_ok()) << first.status().text();
      EXPECT_TRUE(all_are(*place.memory, 4));
      const Result<std::uint64_t> second =
          giver.hand(place.server, Handed::elements, *place.memory, numbered(10));
      ASSERT_TRUE(second.is_ok()) << second.status().text();
      EXPECT_TRUE(all_are(*place.memory, 14));
      const ByteVector told = giver.take_back(*first);
      EXPECT_EQ(Unpacker(told).get_text(), "done");
      EXPECT_TRUE(all_are(*place.memory, 17));
      giver.abandon(*second);
    });
  }
}

TEST(sim_handed_memory, a_server_that_cannot_take_the_memory_says_why_and_serves_on) {
  Job job = job_with_servers(1);
  job.on_server = [](session::Session& session) {
    session.serving().taker().on(
        Handed::pages,
        [](int, std::unique_ptr<NodeMemory>, Unpacker) -> Result<std::unique_ptr<MemoryTaker::Work>> {
          return Status(Code::timeout, "storage did not answer");
        });
    return std::shared_ptr<void>();
  };
  run_with_servers(job, [](SessionRank& rank) {
    const Place place = place_of(rank);
    if (!place.gives()) return;
    node::MemoryGiver& giver = rank.session().giver();
    for (int round = 0; round < 2; ++round) {
      EXPECT_EQ(giver.hand(place.server, Handed::pages, *place.memory, {}).status().text(),
                "storage did not answer");
      EXPECT_EQ(giver.hand(place.server, Handed::elements, *place.memory, {}).status().code(),
                Code::unsupported);
    }
    EXPECT_TRUE(all_are(*place.memory, 1));
  });
}

/// An access behind the end of the memory would be a SIGBUS.
TEST(sim_handed_memory, a_description_of_other_memory_is_refused) {
  run_with_servers(job_with_servers(1), [](SessionRank& rank) {
    const Place place = place_of(rank);
    const auto attached = [&](Bytes more) {
      const std::array<Bytes, 2> offsets{0, place.memory->size() + more};
      const ByteVector told = Packer().put(false).put_list(std::span<const Bytes>(offsets)).take();
      Unpacker in(told);
      return NodeMemory::attach(::dup(place.memory->descriptor()), in).status().code();
    };
    EXPECT_EQ(attached(0), Code::ok);
    EXPECT_EQ(attached(65'536), Code::argument);
    EXPECT_EQ(attached(-65'536), Code::argument);
  });
}

}  // namespace
}  // namespace tailrace::sim
