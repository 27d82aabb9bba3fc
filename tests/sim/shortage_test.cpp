// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Memory that one rank alone lacks, in calls in which all ranks have to do the same.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "ground/base/text.hpp"
#include "ground/node/remote_lane.hpp"
#include "scenario.hpp"

namespace {

/// An allocation that fails: that with the number `step` behind the header of a rank's lane with the number
/// `lane`, both from 1 on. A lane is made without a break, so nobody else allocates in between.
struct Failing {
  int lane = 0, step = 0;
  bool is_exposed = false;  // then headers before memory of the process's own are those of servers
  bool has_failed = false;
};
Failing failing;
int lanes = 0, steps = -1;  // so far

constexpr std::size_t header_bytes = sizeof(tailrace::node::LaneHeader);
static_assert(alignof(tailrace::node::LaneHeader) > __STDCPP_DEFAULT_NEW_ALIGNMENT__);

void note_header() {
  if (failing.lane == 0) return;
  ++lanes;
  steps = 0;
}

bool fails(std::size_t size) {
  if (steps < 0 || failing.lane == 0) return false;
  ++steps;
  if (failing.is_exposed && steps == 1 && size >= std::size_t{tailrace::node::least_lane}) {
    --lanes;
    steps = -1;
    return false;
  }
  if (lanes != failing.lane || steps != failing.step) return false;
  failing.lane = 0;
  return failing.has_failed = true;
}

}  // namespace

// Inlined, they would be told to be mismatched: gcc then sees malloc() on one side alone.
[[gnu::noinline]] void* operator new(std::size_t size) {
  if (fails(size)) throw std::bad_alloc();
  if (void* const memory = std::malloc(size > 0 ? size : 1)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return std::malloc(size > 0 ? size : 1);
}
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t alignment) {
  if (size == header_bytes) note_header();
  const auto multiple = static_cast<std::size_t>(alignment);
  if (void* const memory = std::aligned_alloc(multiple, (size + multiple - 1) / multiple * multiple))
    return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
// The address sanitizer has its own for arrays.
[[gnu::noinline]] void* operator new[](std::size_t size) { return operator new(size); }
[[gnu::noinline]] void operator delete[](void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace tailrace::sim {
namespace shortage_test {

constexpr int ranks = 3;

Scenario one_step(const std::string& pattern, const std::string& handoff) {
  Scenario scenario;
  scenario.pattern = pattern;
  scenario.handoff = handoff;
  scenario.variables = {{"t", *layout::Layout::block({40, 50}, ranks), "levels=hybrid:1-2"}};
  scenario.steps = 1;
  scenario.prepare();
  return scenario;
}

/// Creates a stream while an allocation fails, and then another one, which is written.
void lack_memory(const std::string& handoff, int lane, int step) {
  const std::string where = cat(handoff, ", allocation ", step, " of lane ", lane, ": ");
  const Scenario first = one_step("first.data", handoff), second = one_step("second.data", handoff);
  Job job;
  job.nodes = {{2, 1}, {1, 1}};
  job.seed = static_cast<std::uint64_t>(10 * lane + step);
  SessionWorld world(job);
  std::vector<Status> created(ranks);
  std::vector<Arrays> arrays(ranks);
  std::vector<Told> told(ranks);
  bool is_armed = false;
  const Texts stuck = world.run([&](SessionRank& rank) {
    const auto me = static_cast<std::size_t>(rank.rank());
    // All ranks have their usual lanes now.
    EXPECT_TRUE(rank.session().agree({{}, "the beginning", {}}).status.is_ok());
    if (!std::exchange(is_armed, true)) {
      lanes = 0;
      failing = {lane, step, handoff == "onesided"};
    }
    {
      PlannedStream stream(rank, first.plan);
      created[me] = stream.create();
    }
    EXPECT_TRUE(rank.session().agree({{}, "the end", {}}).status.is_ok());
    forecast(rank, second, arrays[me], told[me]);
  });
  EXPECT_EQ(stuck, Texts()) << where;
  EXPECT_TRUE(failing.has_failed) << where;
  failing = {};
  for (const Status& each : created) {
    expect_same(each, created[0], where);
    EXPECT_EQ(each.code(), Code::memory) << where << each.text();
  }
  for (const Told& each : told) {
    EXPECT_TRUE(each.created.is_ok()) << where << each.created.text();
    EXPECT_TRUE(each.closed.is_ok()) << where << each.closed.text();
  }
  expect_committed(world.storage(), second, {}, where);
}

/// Memory of a node is asked for together, but a rank's own few bytes are not.
TEST(sim_shortage, of_memory_for_one_rank_s_end_of_a_lane_is_told_on_every_rank) {
  for (const std::string handoff : {"messages", "onesided"}) {
    for (int lane = 1; lane <= ranks; ++lane) {
      for (const int step : {1, 2}) lack_memory(handoff, lane, step);
    }
  }
}

}  // namespace shortage_test
}  // namespace tailrace::sim
