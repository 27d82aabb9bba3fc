// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "ground/base/text.hpp"
#include "scenario.hpp"

// Runs whose storage fails from some call on, each continued by another world.
namespace tailrace::sim {
namespace resume_test {

constexpr std::int64_t kHalfDay = 43200;

struct Heard {
  Told told;
  Uuid run;
};

void half_days(SessionRank& rank, std::shared_ptr<const StreamPlan> plan, std::int64_t first,
               std::int64_t end, Arrays& arrays, Heard& heard) {
  Told& told = heard.told;
  PlannedStream stream(rank, plan);
  told.created = stream.create();
  if (!told.created.is_ok()) return;
  heard.run = stream.position().run;
  for (std::int64_t step = first; step < end; ++step) {
    rank.compute(100'000);
    stream.begin(step * kHalfDay);
    for (std::size_t i = 0; i < plan->fields.size(); ++i) {
      std::vector<float>& array = arrays[{step, static_cast<int>(i)}];
      array = array_of(*plan, rank.rank(), static_cast<int>(i), step);
      stream.put(static_cast<int>(i), reinterpret_cast<const std::byte*>(array.data()));
    }
    told.ends.push_back(stream.end());
  }
  told.waited = stream.wait(true);
  told.closed = stream.close();
  told.failures = stream.failures();
}

/// Returns the answers of rank 0. `nth` > 0: storage fails for good from that call of each server on.
Heard run(const Job& job, const std::shared_ptr<const StreamPlan>& plan, std::int64_t first, std::int64_t end,
          std::int64_t nth) {
  SessionWorld world(job);
  std::vector<Arrays> arrays(static_cast<std::size_t>(world.ranks()));
  std::vector<Heard> heard(arrays.size());
  for (int s = 0; nth > 0 && s < world.servers(); ++s) {
    world.storage_of(s).restart({nth, storage::Fault::io_error, storage::changing_calls, true});
  }
  const Texts stuck = world.run([&](SessionRank& rank) {
    const auto me = static_cast<std::size_t>(rank.rank());
    half_days(rank, plan, first, end, arrays[me], heard[me]);
  });
  EXPECT_TRUE(stuck.empty()) << text_of(stuck);
  return heard[0];
}

/// An index without the identity of its run.
struct Index {
  streams::IndexHeader header;
  std::vector<streams::IndexStep> steps;
  bool closed = false;
  friend bool operator==(const Index&, const Index&) = default;
};

struct Files {
  std::map<std::string, ByteVector> data;
  std::map<std::string, Index> indexes;
  friend bool operator==(const Files&, const Files&) = default;
};

Files files_of(storage::Target& target) {
  Files files;
  const auto names = target.list(".");
  EXPECT_TRUE(names.is_ok()) << names.status().text();
  for (const std::string& name : *names) {
    if (name == "manifest.jsonl") continue;
    if (!name.ends_with(".trx")) {
      files.data[name] = read_file(target, name);
      continue;
    }
    Result<streams::IndexContents> index = streams::load_index(target, name);
    EXPECT_TRUE(index.is_ok()) << index.status().text();
    if (!index.is_ok()) continue;
    index->header.run = {};
    files.indexes[name] = {std::move(index->header), std::move(index->steps), index->closed};
  }
  return files;
}

streams::Position position_behind(const StreamPlan& plan, const Uuid& run, std::int64_t steps) {
  streams::Position position;
  position.pattern = plan.pattern;
  position.run = run;
  position.steps = steps;
  if (steps > 0) position.lead = position.put_lead = (steps - 1) * kHalfDay;
  return position;
}

TEST(sim_resume, what_a_run_without_storage_has_left_is_continued_to_the_bytes_of_an_undisturbed_one) {
  std::uint64_t continued = 0;
  for (std::uint64_t seed = 1; seed <= seeds(150); ++seed) {
    Scheduler dice(seed * 7919);
    const int ranks = static_cast<int>(dice.random(1, 4));
    Job job;
    job.nodes = random_nodes(dice, ranks, static_cast<int>(dice.random(0, 3)));
    job.seed = seed;
    Scenario scenario;
    scenario.pattern = "fc_{valid:%Y%m%d}.data";
    scenario.format = any_format(seed);
    scenario.variables = random_variables(dice, ranks);
    scenario.prepare();
    const std::int64_t end = dice.random(2, 7);

    job.storage = storage::memory_target();
    run(job, scenario.plan, 0, end, 0);
    const Files truth = files_of(*job.storage);

    job.storage = storage::memory_target();
    const Heard first = run(job, scenario.plan, 0, end, dice.random(1, 90));
    if (!first.told.created.is_ok()) continue;  // there is nothing to continue
    std::int64_t durable = 0;
    while (durable < end && first.told.failures.count(durable) == 0) ++durable;
    auto plan = std::make_shared<StreamPlan>(*scenario.plan);
    plan->resume = position_behind(*plan, first.run, dice.random(0, durable));
    const Told second = run(job, plan, plan->resume->steps, end, 0).told;
    const std::string where = cat("seed ", seed, ", behind ", plan->resume->steps, " of ", end, " steps");
    EXPECT_TRUE(second.failures.empty()) << where << ": " << second.failures.begin()->second;
    EXPECT_TRUE(second.closed.is_ok()) << where << ": " << second.closed.text();
    ASSERT_TRUE(files_of(*job.storage) == truth) << where;
    ++continued;
  }
  EXPECT_GT(continued, seeds(100));
}

/// Returns how many steps, one after the other from the first on, the indexes tell of.
std::int64_t steps_told(storage::Target& target) {
  std::set<std::int64_t> leads;
  for (const auto& [name, index] : files_of(target).indexes) {
    for (const streams::IndexStep& step : index.steps) leads.insert(step.lead);
  }
  std::int64_t steps = 0;
  while (leads.contains(steps * kHalfDay)) ++steps;
  EXPECT_EQ(std::ssize(leads), steps);
  return steps;
}

TEST(sim_resume, what_a_run_without_storage_has_left_is_continued_without_a_checkpoint_too) {
  for (std::uint64_t seed = 1; seed <= seeds(120); ++seed) {
    Scheduler dice(seed * 4391);
    const int ranks = static_cast<int>(dice.random(1, 3));
    Job job;
    job.nodes = random_nodes(dice, ranks, static_cast<int>(dice.random(0, 2)));
    job.seed = seed;
    const std::string format = any_format(seed);
    const std::string pattern = name_for("fc_{valid:%Y%m%d}.data", format);
    const auto plan = StreamPlan::make(pattern, cat("base=2026-03-01 existing=continue format=", format),
                                       random_variables(dice, ranks));
    ASSERT_TRUE(plan.is_ok()) << plan.status().text();
    const std::int64_t end = dice.random(2, 5);

    job.storage = storage::memory_target();
    run(job, *plan, 0, end, 0);
    const Files truth = files_of(*job.storage);

    job.storage = storage::memory_target();
    if (!run(job, *plan, 0, end, dice.random(1, 60)).told.created.is_ok()) continue;
    const std::int64_t first = steps_told(*job.storage);
    const Told second = run(job, *plan, first, end, 0).told;
    const std::string where = cat("seed ", seed, ", ", format, ", behind ", first, " of ", end, " steps");
    EXPECT_TRUE(second.failures.empty()) << where << ": " << second.failures.begin()->second;
    EXPECT_TRUE(second.closed.is_ok()) << where << ": " << second.closed.text();
    ASSERT_TRUE(files_of(*job.storage) == truth) << where;
  }
}

/// The index of the new file has its name before the older file is emptied.
TEST(sim_resume, what_a_run_without_storage_has_left_of_an_older_file_of_other_fields_is_continued) {
  std::uint64_t continued = 0;
  for (std::uint64_t seed = 1; seed <= seeds(160); ++seed) {
    const std::string format = any_format(seed);
    Scheduler dice(seed * 2089);
    Job job;
    job.nodes = random_nodes(dice, 1, 0);
    job.seed = seed;
    job.storage = storage::memory_target();
    const auto plan_of = [&](const char* existing, std::vector<Variable> variables) {
      const auto made = StreamPlan::make(name_for("fc.data", format),
                                         cat("base=2026-03-01 existing=", existing, " format=", format),
                                         std::move(variables));
      EXPECT_TRUE(made.is_ok()) << made.status().text();
      return *made;
    };
    const std::vector<Variable> variables = random_variables(dice, 1);
    std::vector<Variable> more = variables;
    more.push_back(variables.front());
    more.back().name = "another_one";
    const bool shrinks = seed % 4 != 0;
    run(job, plan_of("replace", shrinks ? more : variables), 0, 2, 0);
    const auto replaced = plan_of("replace", shrinks ? variables : more);
    run(job, replaced, 0, 2, dice.random(1, 30));
    const Files left = files_of(*job.storage);
    // Nobody has begun the new file yet, or it is whole.
    if (left.indexes.size() != 1) continue;
    const Index& index = left.indexes.begin()->second;
    if (index.header.fields.size() != replaced->fields.size() || index.closed) continue;
    const Told told =
        run(job, plan_of("continue", shrinks ? variables : more), std::ssize(index.steps), 3, 0).told;
    const std::string where = cat("seed ", seed, ", ", format, ", behind ", std::ssize(index.steps));
    EXPECT_TRUE(told.failures.empty()) << where << ": " << told.failures.begin()->second;
    EXPECT_TRUE(told.closed.is_ok()) << where << ": " << told.closed.text();
    Job undisturbed = job;
    undisturbed.storage = storage::memory_target();
    run(undisturbed, replaced, 0, 3, 0);
    ASSERT_TRUE(files_of(*job.storage) == files_of(*undisturbed.storage)) << where;
    ++continued;
  }
  EXPECT_GT(continued, seeds(20));
}

/// A stream that gets fields while it runs, or one that goes on and defines all at once, in another order.
struct Growth {
  std::shared_ptr<const StreamPlan> all;      // by whose numbers the fields have their values
  std::shared_ptr<const StreamPlan> plan;     // the same fields in the order of the definitions
  std::vector<int> numbers;                   // of these in `all`
  std::size_t few = 0;                        // number of fields that are defined before the first step
  std::optional<std::int64_t> adds_behind{};  // the step behind which the others are
  std::int64_t first = 0, end = 0;            // steps
};

void grow(SessionRank& rank, const Growth& growth, Arrays& arrays, Heard& heard) {
  Told& told = heard.told;
  PlannedStream stream(rank, growth.plan);
  told.created = stream.create(growth.few);
  if (!told.created.is_ok()) return;
  heard.run = stream.position().run;
  for (std::int64_t step = growth.first; step < growth.end; ++step) {
    rank.compute(100'000);
    stream.begin(step * kHalfDay);
    // Some formats have records in the order of the puts.
    for (int number = 0; number < std::ssize(growth.numbers); ++number) {
      const auto i = std::ranges::find(growth.numbers, number) - growth.numbers.begin();
      if (!stream.stream().wants(growth.plan->fields[static_cast<std::size_t>(i)].definition.name)) continue;
      std::vector<float>& array = arrays[{step, number}];
      array = array_of(*growth.all, rank.rank(), number, step);
      stream.put(static_cast<int>(i), reinterpret_cast<const std::byte*>(array.data()));
    }
    told.ends.push_back(stream.end());
    for (std::size_t i = growth.few; step == growth.adds_behind && i < growth.numbers.size(); ++i)
      EXPECT_TRUE(stream.define(static_cast<int>(i)).is_ok());
  }
  told.waited = stream.wait(true);
  told.closed = stream.close();
  told.failures = stream.failures();
}

Heard run(const Job& job, const Growth& growth, std::int64_t nth) {
  SessionWorld world(job);
  std::vector<Arrays> arrays(static_cast<std::size_t>(world.ranks()));
  std::vector<Heard> heard(arrays.size());
  for (int s = 0; nth > 0 && s < world.servers(); ++s)
    world.storage_of(s).restart({nth, storage::Fault::io_error, storage::changing_calls, true});
  const Texts stuck = world.run([&](SessionRank& rank) {
    const auto me = static_cast<std::size_t>(rank.rank());
    grow(rank, growth, arrays[me], heard[me]);
  });
  EXPECT_TRUE(stuck.empty()) << text_of(stuck);
  return heard[0];
}

TEST(sim_resume, a_run_that_defines_all_at_once_leaves_the_files_of_one_that_has_added_fields_by_itself) {
  std::uint64_t in_between = 0, reordered = 0;
  for (std::uint64_t seed = 1; seed <= seeds(180); ++seed) {
    Scheduler dice(seed * 6131);
    const int ranks = static_cast<int>(dice.random(1, 4));
    Job job;
    job.nodes = random_nodes(dice, ranks, static_cast<int>(dice.random(0, 3)));
    job.seed = seed;
    const std::string format = any_format(seed);
    const bool has_checkpoint = dice.once_in(2);
    const auto made =
        StreamPlan::make(name_for("fc_{valid:%Y%m%d}.data", format),
                         cat("base=2026-03-01 format=", format, has_checkpoint ? "" : " existing=continue"),
                         random_variables(dice, ranks), dice.once_in(2));
    ASSERT_TRUE(made.is_ok()) << made.status().text();
    const int fields = static_cast<int>((*made)->fields.size());
    if (fields < 2) continue;
    Growth growth{*made, *made, {}, static_cast<std::size_t>(dice.random(1, fields - 1)), {}, 0, 0};
    for (int i = 0; i < fields; ++i) growth.numbers.push_back(i);
    growth.end = dice.random(3, 8);
    growth.adds_behind = dice.random(0, growth.end - 2);

    job.storage = storage::memory_target();
    run(job, growth, 0);
    const Files truth = files_of(*job.storage);
    job.storage = storage::memory_target();
    const Heard first = run(job, growth, dice.random(20, 150));
    if (!first.told.created.is_ok()) continue;
    std::int64_t durable = 0;
    while (durable < growth.end && first.told.failures.count(durable) == 0) ++durable;
    const std::int64_t steps = has_checkpoint ? dice.random(0, durable) : steps_told(*job.storage);
    // Behind an earlier file what is added would begin with an earlier file.
    if (steps == 0 || (steps - 1) / 2 < *growth.adds_behind / 2) continue;

    const bool lacks = (steps - 1) / 2 == *growth.adds_behind / 2;
    std::vector<int>& numbers = growth.numbers;
    for (int i = fields - 1; i > 0; --i)
      std::swap(numbers[static_cast<std::size_t>(i)], numbers[static_cast<std::size_t>(dice.random(0, i))]);
    // What no file has yet comes in the order in which it is defined.
    const auto is_late = [&](int number) { return lacks && number >= static_cast<int>(growth.few); };
    int late = static_cast<int>(growth.few);
    for (int& number : numbers)
      if (is_late(number)) number = late++;
    auto plan = std::make_shared<StreamPlan>(**made);
    for (std::size_t i = 0; i < numbers.size(); ++i)
      plan->fields[i] = (*made)->fields[static_cast<std::size_t>(numbers[i])];
    if (has_checkpoint) plan->resume = position_behind(*plan, first.run, steps);
    in_between += lacks && steps % 2 == 1 ? 1 : 0;
    reordered += lacks || std::ranges::is_sorted(numbers) ? 0 : 1;
    growth = {*made, plan, growth.numbers, growth.numbers.size(), {}, steps, growth.end};
    const Told second = run(job, growth, 0).told;
    const std::string where =
        cat("seed ", seed, ", ", format, ", behind ", steps, " of ", growth.end, " steps");
    EXPECT_TRUE(second.failures.empty()) << where << ": " << second.failures.begin()->second;
    EXPECT_TRUE(second.closed.is_ok()) << where << ": " << second.closed.text();
    ASSERT_TRUE(files_of(*job.storage) == truth) << where;
  }
  EXPECT_GT(in_between, seeds(6));
  EXPECT_GT(reordered, seeds(2));
}

}  // namespace resume_test
}  // namespace tailrace::sim
