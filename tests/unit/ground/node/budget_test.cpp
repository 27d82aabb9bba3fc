// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/node/budget.hpp"

#include <gtest/gtest.h>

#include <barrier>
#include <thread>
#include <vector>

namespace tailrace::node {
namespace {

constexpr Bytes mib = Bytes{1} << 20;

/// Each rank of a node has a budget of its own over the account that they share.
struct Node {
  Budget::Account account;
  Budget first{account, 100 * mib};
  Budget second{account, 100 * mib};
};

TEST(budget, of_a_node_is_for_all_its_ranks_together) {
  Node node;
  Draw staging(node.first, Use::staging), captures(node.second, Use::captures);
  EXPECT_TRUE(staging.take(60 * mib).is_ok());
  EXPECT_TRUE(captures.take(40 * mib).is_ok());
  const Status refused = captures.take(1);
  EXPECT_EQ(refused.code(), Code::memory);
  EXPECT_EQ(
      refused.text(),
      "1 byte more would exceed the 100MiB that the library may take on a node (TAILRACE_MEMORY): 100MiB "
      "(staging 60MiB, captures 40MiB) are taken");
  EXPECT_EQ(captures.bytes(), 40 * mib) << "a refused draw takes nothing";
  staging.give_back(10 * mib);
  EXPECT_TRUE(captures.take(10 * mib).is_ok());
}

TEST(budget, gets_back_what_a_draw_holds_at_its_end) {
  Node node;
  {
    Draw stripes(node.first, Use::stripes);
    EXPECT_TRUE(stripes.take(70 * mib).is_ok());
  }
  Draw portions(node.second, Use::portions);
  EXPECT_TRUE(portions.take(100 * mib).is_ok());
  EXPECT_EQ(node.first.most(), 100 * mib);
  EXPECT_EQ(node.first.most_text(), "100MiB (stripes 70MiB, portions 100MiB)");
}

TEST(budget, is_not_passed_by_any_number_of_bytes) {
  Node node;
  Draw draw(node.first, Use::staging);
  EXPECT_TRUE(draw.take(mib).is_ok());
  EXPECT_FALSE(draw.take(std::numeric_limits<Bytes>::max()).is_ok());
  EXPECT_EQ(draw.bytes(), mib);
}

TEST(budget, without_a_limit_counts_all_the_same) {
  Budget budget;
  Draw draw(budget, Use::captures);
  EXPECT_TRUE(draw.take(Bytes{1} << 60).is_ok());
  EXPECT_EQ(budget.most(), Bytes{1} << 60);
}

/// Ranks look and take at the same time: no two of them may take the same rest.
TEST(budget, is_kept_by_ranks_that_draw_at_the_same_time) {
  Node node;
  std::barrier together(4);
  std::atomic<int> refused{0}, holding{0}, most{0};
  const auto draw_again_and_again = [&] {
    Budget mine(node.account, 100 * mib);
    together.arrive_and_wait();
    // On a busy machine the threads may run one after another for a while.
    for (int i = 0; i < 100'000 || (refused == 0 && i < 50'000'000); ++i) {
      Draw draw(mine, Use::captures);
      if (!draw.take(60 * mib).is_ok()) {
        ++refused;
        continue;
      }
      if (++holding > 1) most = 2;
      --holding;
    }
  };
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 4; ++rank) ranks.emplace_back(draw_again_and_again);
  for (std::thread& rank : ranks) rank.join();
  EXPECT_EQ(most, 0) << "two ranks have drawn more than the budget";
  EXPECT_GT(refused, 0);
  Draw all(node.first, Use::captures);
  EXPECT_TRUE(all.take(100 * mib).is_ok()) << "what was given back is not all there";
}

}  // namespace
}  // namespace tailrace::node
