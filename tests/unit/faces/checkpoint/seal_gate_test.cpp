// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/checkpoint/seal_gate.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace tailrace::checkpoint {
namespace {

constexpr int unknown = 0, settled = 1, failed = 2;

/// A thread at a gate whose steps stand as `answer` says.
struct AtGate {
  std::atomic<int> answer{unknown};
  SealGate gate{[this]() -> std::optional<bool> {
    return answer == unknown ? std::nullopt : std::optional(answer == settled);
  }};
  bool seals = false;
  std::thread thread{[this] { seals = gate.pass(); }};
  bool ended() {
    thread.join();
    return seals;
  }
  void wait_until_it_waits() const {
    while (!gate.is_awaited()) std::this_thread::yield();
  }
};

TEST(seal_gate, the_thread_seals_once_steps_are_settled_and_not_if_one_has_failed) {
  for (const int answer : {settled, failed}) {
    AtGate at;
    at.wait_until_it_waits();
    at.answer = answer;
    EXPECT_EQ(at.ended(), answer == settled);
    EXPECT_EQ(at.gate.is_open(), answer == settled);
    EXPECT_GE(at.gate.waited(), 0);
    EXPECT_FALSE(at.gate.is_awaited() || at.gate.shut());
    EXPECT_FALSE(at.gate.open([] { ADD_FAILURE() << "the thread may be sealing"; }));
  }
}

TEST(seal_gate, the_rank_opens_or_shuts_it_first) {
  for (const bool opens : {true, false}) {
    AtGate at;
    at.wait_until_it_waits();
    bool is_before = false;
    EXPECT_TRUE(opens ? at.gate.open([&] { is_before = true; }) : at.gate.shut());
    EXPECT_EQ(at.ended(), opens);
    EXPECT_EQ(is_before, opens);
  }
}

TEST(seal_gate, a_gate_that_was_shut_before_the_thread_came_stays_shut) {
  SealGate gate([] { return std::optional(true); });
  EXPECT_TRUE(gate.shut());
  EXPECT_FALSE(gate.pass());
}

}  // namespace
}  // namespace tailrace::checkpoint
