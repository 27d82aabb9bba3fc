// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// A server is replaced in the middle of its work by another that sees the lanes and the files alone. The
// files get the bytes that they would have got, and no rank hears of it.
#include <gtest/gtest.h>

#include "ground/base/text.hpp"
#include "scenario.hpp"

namespace tailrace::sim {
namespace replace_test {

constexpr std::int64_t steps = 5;
constexpr std::int64_t hour_of_steps = 3600;

/// Three streams of one program: one file, a file for every two steps, and one that begins late. A fourth is
/// never begun. The second one gets fields behind its step `added_at`: they begin with its next file.
struct Program {
  Scenario whole, rolling, late, unused;
  std::shared_ptr<const StreamPlan> rolling_at_first;
  std::int64_t added_at = 0;

  Program(Scheduler& dice, int ranks) {
    int number = 0;
    for (Scenario* const each : {&whole, &rolling, &late, &unused}) {
      each->variables = random_variables(dice, ranks);
      each->in_parts = dice.once_in(2);
      each->pattern = cat("stream", ++number, ".raw");
    }
    rolling.pattern = "rolling_{valid:%Y%m%d}.raw";
    for (Scenario* const each : {&whole, &late, &unused}) each->prepare();
    rolling.plan = plan_of(rolling.variables);
    std::vector<Variable> first = rolling.variables;
    first.resize(static_cast<std::size_t>(dice.random(1, std::ssize(first))), first.front());
    rolling_at_first = plan_of(first);
    added_at = dice.random(0, steps);
  }

  [[nodiscard]] std::shared_ptr<const StreamPlan> plan_of(const std::vector<Variable>& variables) const {
    Result<std::shared_ptr<const StreamPlan>> plan = StreamPlan::make(
        rolling.pattern, "format=raw base=2026-03-01 ready=.ready", variables, rolling.in_parts);
    EXPECT_TRUE(plan.is_ok()) << plan.status().text();
    return *std::move(plan);
  }
  /// Returns the fields of the second stream's file that has the step.
  [[nodiscard]] const StreamPlan& rolling_with(std::int64_t step) const {
    return step / 2 > added_at / 2 ? *rolling.plan : *rolling_at_first;
  }
};

std::int64_t rolling_lead(std::int64_t step) { return step * 12 * hour_of_steps; }
std::string rolling_path(std::int64_t step) { return cat("rolling_2026030", 1 + step / 2, ".raw"); }

void put_step(SessionRank& rank, PlannedStream& stream, const StreamPlan& plan, std::int64_t lead,
              std::int64_t step) {
  stream.begin(lead);
  for (std::size_t i = 0; i < plan.fields.size(); ++i) {
    if (!stream.stream().wants(plan.fields[i].definition.name)) continue;
    const int field = static_cast<int>(i);
    const std::vector<float> array = array_of(plan, rank.rank(), field, step);
    stream.put(field, reinterpret_cast<const std::byte*>(array.data()));
    if (i % 2 == 1) rank.compute(20'000);
  }
  const Status ended = stream.end();
  EXPECT_TRUE(ended.is_ok()) << ended.text();
}

void expect_ok(const Status& status) { EXPECT_TRUE(status.is_ok()) << status.text(); }

void put_rolling_step(SessionRank& rank, PlannedStream& stream, const Program& program, std::int64_t step) {
  const StreamPlan& plan = *program.rolling.plan;
  put_step(rank, stream, plan, rolling_lead(step), step);
  if (step != program.added_at) return;
  for (std::size_t i = program.rolling_at_first->fields.size(); i < plan.fields.size(); ++i)
    expect_ok(stream.define(static_cast<int>(i)));
}

void run_program(SessionRank& rank, const Program& program) {
  PlannedStream whole(rank, program.whole.plan), rolling(rank, program.rolling.plan);
  PlannedStream late(rank, program.late.plan);
  expect_ok(whole.create());
  {
    PlannedStream unused(rank, program.unused.plan);
    expect_ok(unused.create());
    expect_ok(unused.close());
  }
  expect_ok(rolling.create(program.rolling_at_first->fields.size()));
  for (std::int64_t step = 0; step < steps; ++step) {
    rank.compute(100'000);
    put_step(rank, whole, *program.whole.plan, step * hour_of_steps, step);
    if (step == 2) expect_ok(late.create());
    put_rolling_step(rank, rolling, program, step);
    if (step >= 2) put_step(rank, late, *program.late.plan, step * hour_of_steps, step);
  }
  put_step(rank, late, *program.late.plan, steps * hour_of_steps, steps);
  for (const std::int64_t step : {steps, steps + 1}) put_rolling_step(rank, rolling, program, step);
  expect_ok(whole.close());
  expect_ok(late.close());
  expect_ok(rolling.close());
}

void append_step(ByteVector& to, const StreamPlan& plan, std::int64_t step) {
  const ByteVector bytes = bytes_of_step(plan, step);
  to.insert(to.end(), bytes.begin(), bytes.end());
}

void expect_files(storage::Target& target, const Program& program, const std::string& where) {
  ByteVector whole, late;
  for (std::int64_t step = 0; step < steps; ++step) append_step(whole, *program.whole.plan, step);
  for (std::int64_t step = 2; step <= steps; ++step) append_step(late, *program.late.plan, step);
  EXPECT_TRUE(read_file(target, program.whole.pattern) == whole) << where;
  EXPECT_TRUE(read_file(target, program.late.pattern) == late) << where;
  EXPECT_FALSE(*target.exists(program.unused.pattern)) << where;
  std::map<std::string, ByteVector> rolling;
  for (std::int64_t step = 0; step <= steps + 1; ++step)
    append_step(rolling[rolling_path(step)], program.rolling_with(step), step);
  rolling[program.whole.pattern] = whole;
  rolling[program.late.pattern] = late;
  for (const auto& [path, bytes] : rolling) {
    EXPECT_TRUE(read_file(target, path) == bytes) << where << path;
    const Result<streams::IndexContents> index = streams::load_index(target, streams::index_path(path));
    ASSERT_TRUE(index.is_ok()) << where << index.status().text();
    EXPECT_TRUE(index->closed) << where << path;
    EXPECT_EQ(index->data_end(), static_cast<Bytes>(bytes.size())) << where << path;
  }
}

Job job_of(Scheduler& dice, int ranks, std::uint64_t seed) {
  Job job;
  job.nodes = {{ranks, 1}};
  job.seed = seed;
  job.keeps_steps = true;
  job.crowded = dice.once_in(3);
  job.threads = static_cast<int>(dice.random(1, 2));
  job.disk_bytes_per_second = dice.once_in(2) ? 1e6 : 1e9;
  return job;
}

void expect_no_failures(const SessionWorld& world, const Texts& stuck, const std::string& where) {
  ASSERT_TRUE(stuck.empty()) << where << text_of(stuck);
  for (const Status& each : world.failures()) ADD_FAILURE() << where << each.text();
}

TEST(sim_replace, a_server_that_sees_lanes_and_files_alone_writes_the_same_bytes) {
  int replaced = 0;
  for (std::uint64_t seed = 1; seed <= seeds(100); ++seed) {
    Scheduler dice(seed * 7919);
    const int ranks = static_cast<int>(dice.random(1, 5));
    const Program program(dice, ranks);
    SessionWorld world(job_of(dice, ranks, seed));
    const std::int64_t deaths = dice.random(1, 20);
    const Texts stuck = world.run([&](SessionRank& rank) {
      if (rank.rank() == 0) world.replace_at_random(dice, deaths);
      run_program(rank, program);
    });
    replaced += world.replaced();
    const std::string where = cat("seed ", seed, ", ", ranks, " ranks: ");
    expect_no_failures(world, stuck, where);
    expect_files(world.storage(), program, where);
    if (HasFailure()) return;
  }
  EXPECT_GT(replaced, of_seeds(500));
}

struct Outcome {
  std::vector<Told> told;
  Texts stuck;
};

Outcome run_forecast(SessionWorld& world, Scheduler& dice, const Scenario& scenario) {
  Outcome outcome;
  outcome.told.resize(static_cast<std::size_t>(world.ranks()));
  std::vector<Arrays> arrays(outcome.told.size());
  const std::int64_t deaths = dice.random(1, 6);
  outcome.stuck = world.run([&](SessionRank& rank) {
    if (rank.rank() == 0) world.replace_at_random(dice, deaths);
    const auto me = static_cast<std::size_t>(rank.rank());
    forecast(rank, scenario, arrays[me], outcome.told[me]);
  });
  return outcome;
}

TEST(sim_replace, all_ranks_hear_the_same_of_storage_that_fails_and_files_hold_the_other_steps) {
  int replaced = 0, failed = 0;
  for (std::uint64_t seed = 1; seed <= seeds(100); ++seed) {
    Scheduler dice(seed * 6089);
    const int ranks = static_cast<int>(dice.random(1, 4));
    Scenario scenario;
    scenario.variables = random_variables(dice, ranks);
    scenario.steps = static_cast<int>(dice.random(2, 6));
    scenario.format = any_format(seed);
    scenario.method = any_method(seed / 7);
    scenario.prepare();
    SessionWorld world(job_of(dice, ranks, seed));
    const bool stays = dice.once_in(4);
    world.storage_of(0).restart({dice.random(1, 60), storage::Fault::io_error, storage::all_calls, stays});
    const Outcome outcome = run_forecast(world, dice, scenario);
    replaced += world.replaced();
    const std::string where = cat("seed ", seed, ", ", ranks, " ranks: ");
    expect_no_failures(world, outcome.stuck, where);
    for (const Told& told : outcome.told) expect_same(told, outcome.told[0], where);
    failed += outcome.told[0].failures.empty() ? 0 : 1;
    if (!stays) expect_committed(world.storage(), scenario, outcome.told[0].failures, where);
    if (HasFailure()) return;
  }
  EXPECT_GT(replaced, of_seeds(200));
  EXPECT_GT(failed, of_seeds(20));
}

/// A lane that is smaller than a step cannot keep it. The ranks go on all the same.
TEST(sim_replace, steps_that_do_not_fit_into_the_lanes_are_written_too) {
  for (std::uint64_t seed = 1; seed <= seeds(30); ++seed) {
    Scheduler dice(seed * 104729);
    const int ranks = static_cast<int>(dice.random(1, 5));
    Scenario scenario;
    scenario.variables = random_variables(dice, ranks, 60);
    scenario.format = any_format(seed);
    scenario.method = any_method(seed / 7);
    scenario.prepare();
    Job job = job_of(dice, ranks, seed);
    squeeze(job, *scenario.plan);
    job.staging = job.staging * 3 / 2;
    expect_right_bytes(job, scenario, cat("seed ", seed, ", ", ranks, " ranks: "));
    if (HasFailure()) return;
  }
}

}  // namespace replace_test
}  // namespace tailrace::sim
