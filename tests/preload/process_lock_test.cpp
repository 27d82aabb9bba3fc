// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>

#include "../../tools/run/holding.hpp"

namespace tailrace::run {
namespace {

constexpr Holder first = holder_of(1, 7, 100);
constexpr Holder second = holder_of(2, 0, 101);
constexpr auto never = [](Holder, int) { return false; };
constexpr auto at_once = [](Holder, int) { return true; };

TEST(ProcessLock, NamesItsHolder) {
  ProcessLock lock;
  EXPECT_TRUE(lock.try_lock(first));
  EXPECT_EQ(lock.holder(), first);
  EXPECT_EQ(process_of(lock.holder()), 1U);
  EXPECT_EQ(epoch_of(lock.holder()), 7U);
  EXPECT_EQ(thread_of(lock.holder()), 100U);
  EXPECT_FALSE(lock.try_lock(second));
  EXPECT_TRUE(lock.unlock(first));
  EXPECT_EQ(lock.holder(), 0U);
}

TEST(ProcessLock, TellsASignalHandlerThatItsOwnThreadHasIt) {
  ProcessLock lock;
  Holder holder = 0;
  ASSERT_TRUE(lock.try_lock(first));
  EXPECT_EQ(lock.lock(first, never, holder), EDEADLK);
}

TEST(ProcessLock, IsTakenFromAStuckHolderWhichFindsOut) {
  ProcessLock lock;
  Holder holder = 0;
  ASSERT_TRUE(lock.try_lock(first));
  EXPECT_EQ(lock.lock(second, at_once, holder), ESTALE);
  EXPECT_EQ(holder, first);
  EXPECT_TRUE(lock.take_from(first, second));
  EXPECT_FALSE(lock.take_from(first, second));
  EXPECT_FALSE(lock.unlock(first));
  EXPECT_EQ(lock.holder(), second);
  EXPECT_TRUE(lock.unlock(second));
}

TEST(ProcessLock, IsFreeWhenAHolderThatWasLeftBehindUnlocksIt) {
  ProcessLock lock;
  Holder holder = 0;
  ASSERT_TRUE(lock.try_lock(first));
  EXPECT_TRUE(lock.leave_to(first));
  EXPECT_EQ(lock.lock(second, never, holder), ESTALE);
  EXPECT_EQ(lock.lock(first, never, holder), ESTALE);
  EXPECT_FALSE(lock.unlock(first));
  EXPECT_TRUE(lock.try_lock(second));
}

TEST(ProcessLock, StaysWithAHolderThatWasTakenBack) {
  ProcessLock lock;
  ASSERT_TRUE(lock.try_lock(first));
  EXPECT_TRUE(lock.leave_to(first));
  lock.take_back(first);
  EXPECT_TRUE(lock.unlock(first));
  EXPECT_FALSE(lock.leave_to(first));
}

TEST(FencedValue, CannotBeSetByWhoWasFenced) {
  FencedValue value;
  value.set(100);
  const std::uint32_t before = value.generation();
  EXPECT_TRUE(value.raise_in(before, 110));
  value.fence();
  EXPECT_EQ(value.load(), 110);
  EXPECT_FALSE(value.raise_in(before, 120));
  EXPECT_FALSE(value.set_in(before, 5));
  EXPECT_EQ(value.load(), 110);
  EXPECT_TRUE(value.set_in(value.generation(), 5));
  value.raise(most_bytes);
  EXPECT_EQ(value.load(), most_bytes);
}

TEST(Holding, TellsStoppedAndEndedProcesses) {
  const auto arena = std::make_unique<Arena>();
  const pid_t child = fork();
  while (child == 0) pause();
  const Holder holder = holder_of(3, 0, static_cast<std::uint32_t>(child));
  EXPECT_EQ(holding_of(*arena, holder), Holding::goes_on);
  kill(child, SIGSTOP);
  waitpid(child, nullptr, WUNTRACED);
  EXPECT_EQ(holding_of(*arena, holder), Holding::is_stopped);
  kill(child, SIGCONT);
  waitpid(child, nullptr, WCONTINUED);
  EXPECT_EQ(holding_of(*arena, holder), Holding::goes_on);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(holding_of(*arena, holder), Holding::has_ended);
  // The number of a thread may be another one's by now. The keeper says that the process has ended.
  const Holder self = holder_of(4, 0, static_cast<std::uint32_t>(getpid()));
  EXPECT_EQ(holding_of(*arena, self), Holding::goes_on);
  ++arena->processes[4].epoch;
  EXPECT_EQ(holding_of(*arena, self), Holding::has_ended);
}

}  // namespace
}  // namespace tailrace::run
