// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/node/available_memory.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace tailrace::node {
namespace {

Status check(const std::vector<MemoryNeed>& needs) { return check_nodes(needs, "a test takes", "take less"); }

TEST(MemoryNeedTest, WhatFits) {
  EXPECT_TRUE(check({}).is_ok());
  EXPECT_TRUE(check({{0, 60, 100}, {1, 60, 100}, {1, 40, 100}}).is_ok());
}

TEST(MemoryNeedTest, TheRanksOfANodeAreTakenTogether) {
  const Status status = check({{0, 60, 100}, {4, 60, 100}, {4, 41, 100}, {0, 40, 100}});
  EXPECT_EQ(status.code(), Code::memory);
  EXPECT_EQ(status.text(),
            "a test takes 101 bytes on the node of rank 4 (2 ranks), of which 100 are to be had: take less");
}

/// Each rank has looked at another moment, or is in another cgroup.
TEST(MemoryNeedTest, TheLeastThatARankHasSeenCounts) {
  EXPECT_EQ(check({{0, 50, 200}, {0, 50, 99}}).code(), Code::memory);
}

/// A rank that has its memory already did not look.
TEST(MemoryNeedTest, RanksThatNeedNothingAreLeftOut) {
  EXPECT_TRUE(check({{0, 0, 0}, {0, 50, 60}, {0, 0, 5}}).is_ok());
}

}  // namespace
}  // namespace tailrace::node
