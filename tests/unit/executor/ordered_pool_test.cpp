// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "executor/ordered_pool.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <semaphore>

namespace tailrace::executor {
namespace {

void wait_until_idle(const OrderedPool& pool) {
  while (!pool.is_idle()) std::this_thread::sleep_for(std::chrono::microseconds(50));
}

TEST(ordered_pool, tasks_of_one_key_run_one_after_another_in_order) {
  OrderedPool pool(4);
  constexpr int keys = 7;
  std::vector<std::vector<int>> seen(keys);
  std::vector<std::atomic<int>> running(keys);
  std::atomic<bool> overlapped = false;
  for (int i = 0; i < 2000; ++i) {
    const auto key = static_cast<std::size_t>(i % keys);
    pool.submit(key, [&, key, i] {
      if (++running[key] > 1) overlapped = true;
      seen[key].push_back(i);
      --running[key];
    });
  }
  wait_until_idle(pool);
  EXPECT_FALSE(overlapped);
  for (std::size_t key = 0; key < keys; ++key) {
    EXPECT_TRUE(std::is_sorted(seen[key].begin(), seen[key].end()));
    EXPECT_EQ(seen[key].size(), 2000 / keys + (key < 2000 % keys ? 1 : 0));
  }
}

TEST(ordered_pool, nothing_begins_while_it_is_held) {
  OrderedPool pool(2);
  std::atomic<int> ran = 0;
  {
    const OrderedPool::Hold outer(pool);
    {
      const OrderedPool::Hold inner(pool);
      for (OrderedPool::Key key = 0; key < 3; ++key) pool.submit(key, [&ran] { ++ran; });
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_EQ(ran, 0);
    EXPECT_FALSE(pool.is_idle());
  }
  wait_until_idle(pool);
  EXPECT_EQ(ran, 3);
}

TEST(ordered_pool, without_threads_a_hold_holds_nothing) {
  OrderedPool pool(0);
  const OrderedPool::Hold hold(pool);
  int ran = 0;
  pool.submit(1, [&ran] { ++ran; });
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(pool.threads(), 0);
}

TEST(ordered_pool, different_keys_run_side_by_side) {
  OrderedPool pool(2);
  std::binary_semaphore first(0);
  std::binary_semaphore second(0);
  std::atomic<int> met = 0;
  const auto meet = [&met](std::binary_semaphore& mine, std::binary_semaphore& other) {
    mine.release();
    met += other.try_acquire_for(std::chrono::seconds(20)) ? 1 : 0;
  };
  pool.submit(1, [&] { meet(first, second); });
  pool.submit(2, [&] { meet(second, first); });
  wait_until_idle(pool);
  EXPECT_EQ(met, 2);
}

TEST(ordered_pool, without_threads_the_caller_works) {
  OrderedPool pool(0);
  std::thread::id where;
  pool.submit(3, [&] { where = std::this_thread::get_id(); });
  EXPECT_EQ(where, std::this_thread::get_id());
  EXPECT_TRUE(pool.is_idle(3));
  EXPECT_TRUE(pool.is_idle());
}

TEST(ordered_pool, the_task_that_was_submitted_first_is_taken_first) {
  OrderedPool pool(1);
  std::binary_semaphore go(0);
  std::vector<int> order;
  pool.submit(9, [&] { go.acquire(); });
  for (const int key : {5, 3, 8, 1, 3, 5}) {
    pool.submit(static_cast<OrderedPool::Key>(key), [&order, key] { order.push_back(key); });
  }
  EXPECT_FALSE(pool.is_idle(3));
  EXPECT_TRUE(pool.is_idle(4));
  go.release();
  wait_until_idle(pool);
  EXPECT_EQ(order, (std::vector<int>{5, 3, 8, 1, 3, 5}));
}

TEST(ordered_pool, what_was_submitted_is_done_before_the_pool_ends) {
  std::atomic<int> done = 0;
  {
    OrderedPool pool(3);
    for (int i = 0; i < 500; ++i) pool.submit(static_cast<OrderedPool::Key>(i % 5), [&] { ++done; });
  }
  EXPECT_EQ(done, 500);
}

}  // namespace
}  // namespace tailrace::executor
