// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Ranks whose steps differ as a whole: nobody hangs, all hear the same, and later calls are right.
#include <gtest/gtest.h>

#include <set>

#include "ground/base/text.hpp"
#include "scenario.hpp"

namespace tailrace::sim {
namespace fence_test {

enum class Difference {
  skips_one_step,
  stops_early,       // skips all steps from one on, of all streams
  agrees_in_a_step,  // creates a stream inside of its last step, the others after theirs
};

struct Case {
  Difference difference = Difference::skips_one_step;
  std::set<int> odd;  // the ranks with this behaviour
  std::int64_t at = 0;
  bool creates = false;  // another stream, before all are closed
  bool waits = false;
  std::vector<Scenario> streams;
  Scenario another;
  Scenario after;
};

struct Heard {
  std::vector<Status> ends;
  std::vector<Status> calls;                                  // every vote of all ranks, in order
  std::vector<std::map<std::int64_t, std::string>> failures;  // of each stream
};

void begin(SessionRank& rank, PlannedStream& stream, std::int64_t step) {
  rank.compute(100'000);
  stream.begin(step * 3600);
}

void put_all(SessionRank& rank, PlannedStream& stream, const Scenario& scenario, std::int64_t step,
             Arrays& arrays) {
  for (std::size_t i = 0; i < scenario.plan->fields.size(); ++i) {
    const int field = static_cast<int>(i);
    std::vector<float>& array = arrays[{step, field}];
    array = array_of(*scenario.plan, rank.rank(), field, step);
    stream.put(field, reinterpret_cast<const std::byte*>(array.data()));
  }
}

bool takes_part(const Case& test, bool odd, std::int64_t step) {
  if (!odd || test.difference == Difference::agrees_in_a_step) return true;
  return test.difference == Difference::skips_one_step ? step != test.at : step < test.at;
}

/// The further stream, in which everything is right.
void go_on(SessionRank& rank, const Scenario& scenario, Arrays& arrays) {
  PlannedStream stream(rank, scenario.plan);
  Status status = stream.create();
  EXPECT_TRUE(status.is_ok()) << status.text();
  for (std::int64_t step = 0; step < scenario.steps; ++step) {
    begin(rank, stream, step);
    put_all(rank, stream, scenario, step, arrays);
    status = stream.end();
    EXPECT_TRUE(status.is_ok()) << status.text();
  }
  status = stream.close();
  EXPECT_TRUE(status.is_ok()) << status.text();
}

void differ(SessionRank& rank, const Case& test, std::vector<Arrays>& arrays, Heard& heard) {
  const bool odd = test.odd.count(rank.rank()) != 0;
  std::vector<std::unique_ptr<PlannedStream>> streams;
  for (const Scenario& scenario : test.streams) {
    streams.push_back(std::make_unique<PlannedStream>(rank, scenario.plan));
    heard.calls.push_back(streams.back()->create());
  }
  PlannedStream another(rank, test.another.plan);
  bool created = !test.creates;
  const std::int64_t steps = test.streams.front().steps;
  for (std::int64_t step = 0; step < steps; ++step) {
    if (!takes_part(test, odd, step)) continue;
    for (std::size_t i = 0; i < streams.size(); ++i) {
      begin(rank, *streams[i], step);
      const bool puts_first = test.waits;
      if (puts_first) put_all(rank, *streams[i], test.streams[i], step, arrays[i]);
      if (odd && test.difference == Difference::agrees_in_a_step && step == steps - 1 && !created) {
        created = true;
        heard.calls.push_back(another.create());
      }
      if (!puts_first) put_all(rank, *streams[i], test.streams[i], step, arrays[i]);
      heard.ends.push_back(streams[i]->end());
    }
  }
  if (!created) heard.calls.push_back(another.create());
  for (auto& stream : streams) {
    if (test.waits) heard.ends.push_back(stream->wait(true));
    heard.calls.push_back(stream->close());
    heard.failures.push_back(stream->failures());
  }
  if (test.creates && heard.calls[streams.size()].is_ok()) heard.calls.push_back(another.close());
  go_on(rank, test.after, arrays.back());
}

void expect_same(const std::vector<Status>& a, const std::vector<Status>& b, const std::string& where) {
  ASSERT_EQ(a.size(), b.size()) << where;
  for (std::size_t i = 0; i < a.size(); ++i) sim::expect_same(a[i], b[i], where);
}

/// All ranks hear the same of every vote. Those that took the same steps also hear the same of every step.
void expect_agreed(const Case& test, const std::vector<Heard>& heard, const std::string& where) {
  for (std::size_t rank = 1; rank < heard.size(); ++rank) {
    expect_same(heard[rank].calls, heard[0].calls, where);
    for (std::size_t other = 0; other < rank; ++other) {
      if (test.odd.count(static_cast<int>(other)) == test.odd.count(static_cast<int>(rank))) {
        expect_same(heard[rank].ends, heard[other].ends, where);
      }
    }
  }
  if (test.difference == Difference::agrees_in_a_step) return;
  const Status& first = heard[0].calls[test.streams.size()];
  EXPECT_EQ(first.code(), Code::order) << where << first.text();
  EXPECT_NE(first.text().find(cat("steps of ", test.streams.front().pattern)), std::string::npos)
      << where << first.text();
}

/// Returns how many servers were replaced meanwhile.
int expect_no_hang(const Job& job, const Case& test, const std::string& where) {
  SessionWorld world(job);
  const auto ranks = static_cast<std::size_t>(world.ranks());
  std::vector<std::vector<Arrays>> arrays(ranks, std::vector<Arrays>(test.streams.size() + 1));
  std::vector<Heard> heard(ranks);
  Scheduler dice(job.seed * 31);
  const Texts stuck = world.run([&](SessionRank& rank) {
    if (job.keeps_steps && rank.rank() == 0) world.replace_at_random(dice, 6);
    const auto me = static_cast<std::size_t>(rank.rank());
    differ(rank, test, arrays[me], heard[me]);
  });
  EXPECT_TRUE(stuck.empty()) << where << text_of(stuck);
  if (!stuck.empty()) return 0;
  expect_agreed(test, heard, where);
  // Every step from the difference on has failed, and none before it.
  std::map<std::int64_t, std::string> failures;
  for (std::int64_t step = test.at; step < test.streams.front().steps; ++step) failures[step] = {};
  for (const Scenario& scenario : test.streams) {
    expect_committed(world.storage(), scenario, failures, where + scenario.pattern + ": ");
  }
  expect_committed(world.storage(), test.after, {}, where + "after: ");
  return world.replaced();
}

Scenario random_scenario(Scheduler& dice, const std::string& pattern, int ranks) {
  Scenario scenario;
  scenario.pattern = pattern;
  scenario.steps = 4;
  scenario.variables = random_variables(dice, ranks);
  scenario.in_parts = dice.once_in(2);
  scenario.format = any_format(static_cast<std::uint64_t>(ranks));
  scenario.prepare();
  return scenario;
}

Case random_case(Scheduler& dice, Difference difference, int ranks) {
  Case test;
  test.difference = difference;
  while (test.odd.empty() || static_cast<int>(test.odd.size()) == ranks) {
    test.odd.clear();
    if (dice.once_in(2)) {
      test.odd.insert(static_cast<int>(dice.random(0, ranks - 1)));
    } else {
      for (int rank = 0; rank < ranks; ++rank) {
        if (dice.once_in(2)) test.odd.insert(rank);
      }
    }
  }
  test.at = dice.random(0, 3);
  test.creates = dice.once_in(2);
  test.waits = dice.once_in(2);
  std::int64_t streams = difference == Difference::stops_early ? dice.random(1, 3) : 1;
  if (difference == Difference::agrees_in_a_step) {
    test.at = 3;
    test.creates = true;
  }
  for (; streams > 0; --streams) {
    test.streams.push_back(random_scenario(dice, cat("fc", streams, ".raw"), ranks));
  }
  test.another = random_scenario(dice, "another.raw", ranks);
  test.after = random_scenario(dice, "after.raw", ranks);
  return test;
}

/// Gives the least staging memory for the largest of the streams.
void squeeze_all(Job& job, const Case& test) {
  squeeze(job, *test.after.plan);
  Bytes most = job.staging;
  for (const Scenario& scenario : test.streams) {
    squeeze(job, *scenario.plan);
    most = std::max(most, job.staging);
  }
  job.staging = most;
}

int try_seeds(Difference difference, std::uint64_t count, bool replaces = false) {
  int replaced = 0;
  for (std::uint64_t seed = 1; seed <= seeds(count); ++seed) {
    Scheduler dice(seed * 6007 + static_cast<std::uint64_t>(difference));
    const int ranks = static_cast<int>(dice.random(2, 6));
    const int servers = static_cast<int>(dice.random(0, 4));
    const Case test = random_case(dice, difference, ranks);
    Job job;
    job.seed = seed;
    job.nodes = random_nodes(dice, ranks, servers);
    job.threads = static_cast<int>(dice.random(1, 3));
    if (replaces) {
      job.nodes = {{ranks, 1}};
      job.keeps_steps = true;
    } else if (dice.once_in(3)) {
      squeeze_all(job, test);
    }
    std::string odd;
    for (const int rank : test.odd) odd += cat(" ", rank);
    replaced +=
        expect_no_hang(job, test,
                       cat("seed ", seed, ", ", ranks, " ranks, ", servers, " servers, odd", odd, " at step ",
                           test.at, test.creates ? ", creates" : "", test.waits ? ", waits" : "", ": "));
    if (testing::Test::HasFailure()) break;
  }
  return replaced;
}

TEST(sim_fence, ranks_that_skip_one_step_hang_nobody) { try_seeds(Difference::skips_one_step, 200); }

TEST(sim_fence, ranks_that_stop_early_in_all_streams_hang_nobody) { try_seeds(Difference::stops_early, 200); }

TEST(sim_fence, ranks_that_agree_inside_of_a_step_hang_nobody) {
  try_seeds(Difference::agrees_in_a_step, 150);
}

TEST(sim_fence, ranks_that_differ_hang_nobody_where_their_server_is_replaced) {
  for (const Difference difference :
       {Difference::skips_one_step, Difference::stops_early, Difference::agrees_in_a_step})
    EXPECT_GT(try_seeds(difference, 48, true), of_seeds(100));
}

}  // namespace fence_test
}  // namespace tailrace::sim
