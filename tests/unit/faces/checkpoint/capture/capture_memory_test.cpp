// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/checkpoint/capture/capture_memory.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

namespace tailrace::capture {
namespace {

constexpr Bytes mib = Bytes{1} << 20;
Bytes no_limit() { return std::numeric_limits<Bytes>::max(); }

/// Returns how much of [data, data + bytes) is resident (mincore(2)), in bytes.
Bytes resident(const std::byte* data, Bytes bytes) {
  std::vector<unsigned char> pages(static_cast<std::size_t>((bytes + 4095) / 4096));
  if (::mincore(const_cast<std::byte*>(data), static_cast<std::size_t>(bytes), pages.data()) != 0) return -1;
  return 4096 *
         std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return (page & 1U) != 0; });
}

TEST(CaptureMemoryTest, IsThereBeforeTheFirstSave) {
  node::Budget budget;
  CaptureMemory memory(budget);
  memory.prepare(24 * mib, no_limit);
  memory.await_prepared();
  ASSERT_NE(memory.data(), nullptr);
  EXPECT_EQ(resident(memory.data(), 24 * mib), 24 * mib);
  ASSERT_TRUE(memory.reserve(24 * mib).is_ok());
  EXPECT_EQ(memory.need(0).bytes, 0) << "what is there is asked of the node once more";
}

/// The vote on memory comes before anything that was not prepared is touched.
TEST(CaptureMemoryTest, WhatWasNotPreparedIsTouchedAfterTheVote) {
  node::Budget budget;
  CaptureMemory memory(budget);
  ASSERT_TRUE(memory.reserve(24 * mib).is_ok());
  EXPECT_EQ(memory.need(0).bytes, 24 * mib);
  EXPECT_EQ(resident(memory.data(), 24 * mib), 0);
  memory.touch();
  EXPECT_EQ(resident(memory.data(), 24 * mib), 24 * mib);
  EXPECT_EQ(memory.need(0).bytes, 0);
}

TEST(CaptureMemoryTest, ALargerSaveKeepsWhatWasPrepared) {
  node::Budget budget;
  CaptureMemory memory(budget);
  memory.prepare(24 * mib, no_limit);
  memory.await_prepared();
  std::memset(memory.data(), 7, static_cast<std::size_t>(24 * mib));
  ASSERT_TRUE(memory.reserve(40 * mib).is_ok());
  EXPECT_EQ(memory.need(0).bytes, 16 * mib);
  EXPECT_EQ(resident(memory.data(), 40 * mib), 24 * mib);
  EXPECT_EQ(memory.data()[24 * mib - 1], std::byte{7}) << "other pages than those that were made";
  memory.touch();
  EXPECT_EQ(resident(memory.data(), 40 * mib), 40 * mib);
}

TEST(CaptureMemoryTest, ASmallerSaveGivesBackWhatWasPreparedInVain) {
  node::Budget budget;
  CaptureMemory memory(budget);
  memory.prepare(40 * mib, no_limit);
  memory.await_prepared();
  ASSERT_TRUE(memory.reserve(10 * mib).is_ok());
  EXPECT_EQ(memory.size(), 10 * mib);
  EXPECT_EQ(memory.need(0).bytes, 0);
}

/// The memory of one save stays for the next large one.
TEST(CaptureMemoryTest, LaterSavesKeepTheMemory) {
  node::Budget budget;
  CaptureMemory memory(budget);
  ASSERT_TRUE(memory.reserve(24 * mib).is_ok());
  memory.touch();
  ASSERT_TRUE(memory.reserve(10 * mib).is_ok());
  EXPECT_EQ(memory.size(), 24 * mib);
  memory.prepare(64 * mib, no_limit);
  EXPECT_EQ(memory.size(), 24 * mib) << "the saves have told how much they take";
}

TEST(CaptureMemoryTest, NothingIsTakenThatWouldBeTooMuch) {
  node::Budget budget;
  CaptureMemory memory(budget);
  memory.prepare(24 * mib, [] { return 23 * mib; });
  EXPECT_EQ(memory.data(), nullptr);
  memory.prepare(std::numeric_limits<Bytes>::max() / 4, no_limit);  // there are no such addresses
  EXPECT_EQ(memory.data(), nullptr);
  EXPECT_TRUE(memory.reserve(24 * mib).is_ok());
}

/// The program takes memory while the thread makes some: the thread stops.
TEST(CaptureMemoryTest, WhatTheProgramTakesMeanwhileIsLeftToIt) {
  node::Budget budget;
  CaptureMemory memory(budget);
  int asked = 0;
  memory.prepare(256 * mib, [&] { return ++asked == 1 ? 256 * mib : 128 * mib; });
  memory.await_prepared();
  EXPECT_GT(asked, 1);
  EXPECT_LT(resident(memory.data(), 256 * mib), 100 * mib);
  ASSERT_TRUE(memory.reserve(256 * mib).is_ok());
  EXPECT_GT(memory.need(0).bytes, 150 * mib) << "the vote on memory does not hear of the rest";
}

/// More layouts come; beyond four times the first guess the addresses are new.
TEST(CaptureMemoryTest, GrowsAgainAndAgain) {
  node::Budget budget;
  CaptureMemory memory(budget);
  for (const Bytes size : {24 * mib, 40 * mib, 64 * mib, 120 * mib, 160 * mib}) {
    memory.prepare(size, no_limit);
    memory.await_prepared();
    ASSERT_EQ(resident(memory.data(), size), size);
    std::memset(memory.data(), 3, static_cast<std::size_t>(size));
  }
  ASSERT_TRUE(memory.reserve(200 * mib).is_ok());
  memory.touch();
  EXPECT_EQ(resident(memory.data(), 200 * mib), 200 * mib);
}

TEST(CaptureMemoryTest, WhatWasMadeInVainIsGivenBack) {
  node::Budget budget;
  CaptureMemory memory(budget);
  memory.prepare(24 * mib, no_limit);
  memory.give_back(false);
  EXPECT_EQ(memory.data(), nullptr);
  ASSERT_TRUE(memory.reserve(24 * mib).is_ok());
  memory.give_back(false);
  EXPECT_EQ(memory.size(), 24 * mib) << "what saves take stays";
  memory.give_back(true);
  EXPECT_EQ(memory.size(), 0);
}

/// A save may come at any moment of the thread's work.
TEST(CaptureMemoryTest, ASaveThatComesEarlyMakesTheRest) {
  for (int times = 0; times < 20; ++times) {
    node::Budget budget;
    CaptureMemory memory(budget);
    memory.prepare(24 * mib, no_limit);
    ASSERT_TRUE(memory.reserve((16 + times) * mib).is_ok());
    memory.touch();
    const Bytes size = (16 + times) * mib;
    EXPECT_EQ(resident(memory.data(), size), size);
    std::memset(memory.data(), 1, static_cast<std::size_t>(size));
  }
}

TEST(CaptureMemoryTest, MoreThanTheNodeHasIsRefused) {
  node::Budget budget;
  CaptureMemory memory(budget);
  memory.prepare(24 * mib, no_limit);
  const Status refused = memory.reserve(Bytes{1} << 45);
  EXPECT_EQ(refused.code(), Code::memory);
  EXPECT_NE(refused.text().find("async=off"), std::string::npos) << refused.text();
  EXPECT_EQ(memory.data(), nullptr);
}

}  // namespace
}  // namespace tailrace::capture
