// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/comm/account.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace tailrace::comm {
namespace {

/// A clock that a test sets.
class Clock final : public Transport {
 public:
  std::int64_t time = 1000;
  mutable int reads = 0;

  [[nodiscard]] std::int64_t now() const override {
    ++reads;
    return time;
  }
  [[nodiscard]] int rank() const override { return 0; }
  void send(int, LineNumber, Traffic, ByteVector) override {}
  bool progress() override { return false; }
  std::optional<Envelope> receive() override { return {}; }
  std::optional<Envelope> receive_request() override { return {}; }
  std::optional<ByteVector> receive_from(int, LineNumber, Traffic) override { return {}; }
  [[nodiscard]] Bytes unsent(LineNumber, Traffic) const override { return 0; }
  [[nodiscard]] bool all_sent() const override { return true; }
};

std::int64_t sum_of(const Spent& spent) {
  return std::accumulate(spent.nanoseconds.begin(), spent.nanoseconds.end(), std::int64_t{0});
}

TEST(account, counts_each_moment_once_however_routines_are_nested) {
  Clock clock;
  Account account(clock);
  account.begin(Routine::model);
  clock.time += 5;
  {
    const Account::Turn call(account, Routine::message);
    clock.time += 20;
    {
      Account::Turn full(account, Routine::staging_full);
      clock.time += 300;
      EXPECT_EQ(full.end() - full.begin(), 300);
      clock.time += 1;
      EXPECT_EQ(full.end() - full.begin(), 300) << "it ends once";
    }
    clock.time += 4000;
  }
  clock.time += 50000;
  const Spent spent = account.spent();
  EXPECT_EQ(spent[Routine::model], 50005);
  EXPECT_EQ(spent[Routine::message], 4021);
  EXPECT_EQ(spent[Routine::staging_full], 300);
  EXPECT_EQ(sum_of(spent), account.elapsed());
  EXPECT_EQ(account.elapsed(), clock.time - 1000);
}

TEST(account, begins_anew) {
  Clock clock;
  Account account(clock);
  account.begin(Routine::model);
  clock.time += 5;
  account.turn_to(Routine::idle);
  clock.time += 5;
  account.begin(Routine::message);
  clock.time += 7;
  EXPECT_EQ(account.spent()[Routine::message], 7);
  EXPECT_EQ(sum_of(account.spent()), 7);
}

TEST(account, reads_the_clock_once_where_a_routine_begins_and_once_where_it_ends) {
  Clock clock;
  Account account(clock);
  account.begin(Routine::model);
  const int before = clock.reads;
  { const Account::Turn wait(account, Routine::barrier); }
  EXPECT_EQ(clock.reads, before + 2);
}

}  // namespace
}  // namespace tailrace::comm
