// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>

#include <map>

#include "base/text.hpp"
#include "scenario.hpp"

// Runs whose storage fails from some call on, and which another world continues.
namespace tailrace::sim {
namespace {

constexpr std::int64_t kHalfDay = 43200;

Task<> half_days(Rank& rank, std::shared_ptr<const StreamPlan> plan, std::int64_t first, std::int64_t end,
                 Arrays& arrays, Told& told) {
  Stream stream(rank, plan);
  const Status created = co_await stream.create();
  EXPECT_TRUE(created.is_ok()) << created.text();
  for (std::int64_t step = first; step < end; ++step) {
    co_await rank.compute(100'000);
    co_await stream.begin(step * kHalfDay);
    for (std::size_t i = 0; i < plan->fields.size(); ++i) {
      std::vector<float>& array = arrays[{step, static_cast<int>(i)}];
      array = array_of(*plan, rank.me(), static_cast<int>(i), step);
      co_await stream.put(static_cast<int>(i), reinterpret_cast<const std::byte*>(array.data()));
    }
    told.ends.push_back(co_await stream.end());
  }
  told.waited = co_await stream.wait(true);
  told.closed = co_await stream.close();
  told.failures = stream.failures();
  co_await rank.leave();
}

/// What rank 0 was told. `nth` > 0: storage fails for good from that call of each server on.
Told run(const Shape& shape, const std::shared_ptr<const StreamPlan>& plan, std::int64_t first,
         std::int64_t end, std::int64_t nth) {
  World world(shape);
  std::vector<Arrays> arrays(static_cast<std::size_t>(world.ranks()));
  std::vector<Told> told(arrays.size());
  for (int s = 0; nth > 0 && s < world.servers(); ++s) {
    world.storage_of(s).restart({nth, storage::Fault::io_error, storage::changing_calls, true});
  }
  const Outcome outcome = world.run([&](Rank& rank) {
    const auto me = static_cast<std::size_t>(rank.me());
    return half_days(rank, plan, first, end, arrays[me], told[me]);
  });
  EXPECT_TRUE(outcome.finished) << outcome.stuck << " servers wait:" << world.waiting_for();
  return told[0];
}

std::map<std::string, ByteVector> files_of(storage::Target& target) {
  std::map<std::string, ByteVector> files;
  const auto names = target.list(".");
  EXPECT_TRUE(names.is_ok()) << names.status().text();
  for (const std::string& name : *names) {
    if (name != "manifest.jsonl") files[name] = read_file(target, name);
  }
  return files;
}

streams::Position position_behind(const StreamPlan& plan, std::int64_t steps) {
  streams::Position position;
  position.pattern = plan.pattern;
  position.run = *Uuid::parse("00000000-0000-4000-8000-000000000001");
  position.steps = steps;
  if (steps > 0) position.lead = position.put_lead = (steps - 1) * kHalfDay;
  return position;
}

TEST(sim_resume, what_a_run_without_storage_has_left_is_continued_to_the_bytes_of_an_undisturbed_one) {
  for (std::uint64_t seed = 1; seed <= seeds(150); ++seed) {
    Scheduler dice(seed * 7919);
    const int ranks = static_cast<int>(dice.random(1, 4));
    Shape shape;
    shape.nodes = random_nodes(dice, ranks, static_cast<int>(dice.random(0, 3)));
    shape.seed = seed;
    Scenario scenario;
    scenario.pattern = "fc_{valid:%Y%m%d}.raw";
    scenario.variables = random_variables(dice, ranks);
    scenario.prepare();
    const std::int64_t end = dice.random(2, 7);

    shape.storage = storage::memory_target();
    run(shape, scenario.plan, 0, end, 0);
    const auto truth = files_of(*shape.storage);

    shape.storage = storage::memory_target();
    const Told first = run(shape, scenario.plan, 0, end, dice.random(1, 90));
    std::int64_t durable = 0;
    while (durable < end && first.failures.count(durable) == 0) ++durable;
    auto plan = std::make_shared<StreamPlan>(*scenario.plan);
    plan->resume = position_behind(*plan, dice.random(0, durable));
    const Told second = run(shape, plan, plan->resume->steps, end, 0);
    const std::string where = cat("seed ", seed, ", behind ", plan->resume->steps, " of ", end, " steps");
    EXPECT_TRUE(second.failures.empty()) << where << ": " << second.failures.begin()->second.text();
    EXPECT_TRUE(second.closed.is_ok()) << where << ": " << second.closed.text();
    ASSERT_TRUE(files_of(*shape.storage) == truth) << where;
  }
}

}  // namespace
}  // namespace tailrace::sim
