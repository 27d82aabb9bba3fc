// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "engine/session/affinity.hpp"

#include <gtest/gtest.h>

namespace tailrace::session {
namespace {

RankCpus on(int rank, bool serves, int threads, const std::vector<int>& cpus) {
  RankCpus place{rank, serves, threads, {}};
  CPU_ZERO(&place.cpus);
  for (const int cpu : cpus) CPU_SET(cpu, &place.cpus);
  return place;
}

TEST(affinity, a_server_bound_to_one_cpu_is_named_with_what_to_do) {
  const std::string text = affinity_text("n1", {on(4, false, 1, {0}), on(5, true, 3, {1})});
  EXPECT_EQ(
      text,
      "plan: host n1: ranks=2 cpus=2; server rank 5 has 3 threads on CPU 1, where they take turns. Give it "
      "more: mpirun --bind-to none, or srun --cpus-per-task=N --cpu-bind=cores with a CPU for each thread");
}

TEST(affinity, a_server_with_a_cpu_for_each_thread_is_left_to_the_kernel) {
  EXPECT_EQ(affinity_text("n1", {on(0, false, 1, {0}), on(1, true, 3, {1, 2, 3})}),
            "plan: host n1: ranks=2 cpus=4");
}

TEST(affinity, the_threads_that_encode_are_counted_over_the_node) {
  RankCpus first = on(1, true, 4, {1, 2, 3, 4});
  RankCpus second = on(2, true, 3, {1, 2, 3, 4});
  first.encoding = 2;
  second.encoding = 1;
  EXPECT_EQ(affinity_text("n1", {on(0, false, 1, {0}), first, second}),
            "plan: host n1: ranks=3 cpus=5 encoding=3");
}

TEST(affinity, cpus_are_counted_once_and_listed_in_ranges) {
  const std::string text = affinity_text("n1", {on(0, true, 9, {0, 1, 2, 3, 8}), on(1, true, 2, {3})});
  EXPECT_NE(text.find("ranks=2 cpus=5;"), std::string::npos) << text;
  EXPECT_NE(text.find("server rank 0 has 9 threads on CPU 0-3,8,"), std::string::npos) << text;
  EXPECT_NE(text.find("server rank 1 has 2 threads on CPU 3,"), std::string::npos) << text;
}

TEST(affinity, of_a_rank_that_cannot_tell_its_cpus_nothing_is_said) {
  EXPECT_EQ(affinity_text("n1", {on(0, true, 3, {})}), "plan: host n1: ranks=1 cpus=0");
}

TEST(affinity, own_cpus_are_those_that_the_kernel_lets_this_thread_use) {
  const cpu_set_t before = own_cpus();
  ASSERT_GT(CPU_COUNT(&before), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  CPU_SET(first, &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  const cpu_set_t now = own_cpus();
  EXPECT_TRUE(CPU_EQUAL(&now, &one));
  ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
}

TEST(affinity, a_server_has_as_many_threads_as_the_job_has_spare_cpus) {
  EXPECT_EQ(spare_threads(8, 5, 1, 8), 3);
  EXPECT_EQ(spare_threads(64, 9, 1, 64), 4) << "more than 4 are a setting's choice";
  EXPECT_EQ(spare_threads(16, 8, 4, 16), 2) << "they are shared";
  EXPECT_EQ(spare_threads(2, 5, 1, 2), 1);
}

TEST(affinity, a_server_that_is_bound_has_no_more_threads_than_its_cpus_take) {
  EXPECT_EQ(spare_threads(64, 9, 1, 1), 1);
  EXPECT_EQ(spare_threads(64, 9, 1, 3), 2);
  EXPECT_EQ(spare_threads(64, 9, 1, 0), 4) << "the system does not tell";
}

}  // namespace
}  // namespace tailrace::session
