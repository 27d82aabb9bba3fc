// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "checkpoint/memory_need.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace tailrace::checkpoint {
namespace {

TEST(MemoryNeedTest, WhatFits) {
  EXPECT_TRUE(check_nodes({}).is_ok());
  EXPECT_TRUE(check_nodes(std::vector<MemoryNeed>{{0, 60, 100}, {1, 60, 100}, {1, 40, 100}}).is_ok());
}

TEST(MemoryNeedTest, TheRanksOfANodeAreTakenTogether) {
  const Status status =
      check_nodes(std::vector<MemoryNeed>{{0, 60, 100}, {4, 60, 100}, {4, 41, 100}, {0, 40, 100}});
  EXPECT_EQ(status.code(), Code::memory);
  EXPECT_NE(status.text().find("101 bytes on the node of rank 4 (2 ranks)"), std::string::npos)
      << status.text();
}

/// Each rank has looked at another moment, or is in another cgroup.
TEST(MemoryNeedTest, TheLeastThatARankHasSeenCounts) {
  EXPECT_EQ(check_nodes(std::vector<MemoryNeed>{{0, 50, 200}, {0, 50, 99}}).code(), Code::memory);
}

/// Who has its memory already did not look.
TEST(MemoryNeedTest, RanksThatNeedNothingAreLeftOut) {
  EXPECT_TRUE(check_nodes(std::vector<MemoryNeed>{{0, 0, 0}, {0, 50, 60}, {0, 0, 5}}).is_ok());
}

}  // namespace
}  // namespace tailrace::checkpoint
