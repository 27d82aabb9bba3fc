// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "scenario.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "base/text.hpp"

namespace tailrace::sim {

void Scenario::prepare() {
  Result<std::shared_ptr<const StreamPlan>> made =
      StreamPlan::make(pattern, "base=2026-03-01 format=raw", variables, in_parts);
  ASSERT_TRUE(made.is_ok()) << made.status().text();
  plan = *made;
}

void Scenario::squeeze(Shape& shape) const {
  // The end of a step carries a status without a text and the rank's counters.
  const Bytes end_of_step = static_cast<Bytes>(sizeof(pipeline::Counters)) + 64;
  shape.lane = (std::max(plan->largest_piece(), end_of_step) + 63) / 64 * 64;
  shape.workspace = plan->largest_record();
}

std::uint64_t seeds(std::uint64_t usual) {
  const char* times = std::getenv("TAILRACE_SIM_SEEDS");
  return times == nullptr ? usual : usual * std::stoull(times);
}

float value_of(int field, Index level, std::int64_t step, Index element) {
  return static_cast<float>(element) + 0.125F * static_cast<float>(level) +
         1000.0F * static_cast<float>(field) + 20000.0F * static_cast<float>(step);
}

std::vector<float> array_of(const StreamPlan& plan, int c, int field, std::int64_t step) {
  const layout::Layout& layout = plan.fields[static_cast<std::size_t>(field)].layout;
  std::vector<float> array;
  for (Index level = 0; level < plan.levels(field); ++level) {
    for (const layout::Rows& rows : layout.rows(c)) {
      for (Index row = 0; row < rows.rows; ++row) {
        for (Index k = 0; k < rows.count; ++k) {
          array.push_back(value_of(field, level, step, rows.global + row * rows.stride + k));
        }
      }
    }
  }
  // An array of no elements has an address too.
  if (array.empty()) array.reserve(1);
  return array;
}

ByteVector bytes_of_step(const StreamPlan& plan, std::int64_t step) {
  std::vector<float> values;
  for (std::size_t i = 0; i < plan.fields.size(); ++i) {
    const int field = static_cast<int>(i);
    for (Index level = 0; level < plan.levels(field); ++level) {
      for (Index element = 0; element < plan.fields[i].layout.elements(); ++element) {
        values.push_back(value_of(field, level, step, element));
      }
    }
  }
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

ByteVector read_file(storage::Target& target, const std::string& path) {
  Result<std::unique_ptr<storage::File>> file = target.open(path, storage::OpenMode::read);
  if (!file.is_ok()) return {};
  ByteVector bytes(static_cast<std::size_t>(*(*file)->size()));
  EXPECT_TRUE((*file)->read(bytes, 0).is_ok());
  return bytes;
}

namespace {

std::vector<std::vector<Index>> random_indices(Scheduler& dice, int ranks, Index elements) {
  std::vector<std::vector<Index>> lists(static_cast<std::size_t>(ranks));
  for (Index element = 0; element < elements; ++element) {
    lists[static_cast<std::size_t>(dice.random(0, ranks - 1))].push_back(element);
  }
  for (auto& list : lists) {
    for (std::size_t i = list.size(); i > 1; --i) {
      std::swap(list[i - 1],
                list[static_cast<std::size_t>(dice.random(0, static_cast<std::int64_t>(i) - 1))]);
    }
  }
  return lists;
}

layout::Layout random_layout(Scheduler& dice, int ranks) {
  const std::vector<Index> shape{dice.random(1, 12), dice.random(1, 12)};
  switch (dice.random(0, 3)) {
    case 0:
      return *layout::Layout::block(shape, ranks);
    case 1:
      return *layout::Layout::block_cyclic(shape, ranks, {dice.random(1, 3), dice.random(1, 3)});
    case 2:
      return *layout::Layout::replicated(shape, ranks);
    default:
      return *layout::Layout::indexed(shape, random_indices(dice, ranks, shape[0] * shape[1]));
  }
}

}  // namespace

std::vector<Variable> random_variables(Scheduler& dice, int ranks) {
  std::vector<Variable> variables;
  const std::int64_t count = dice.random(1, 4);
  for (std::int64_t i = 0; i < count; ++i) {
    variables.push_back(
        {cat("field", i), random_layout(dice, ranks), cat("levels=hybrid:1-", dice.random(1, 5))});
  }
  return variables;
}

std::vector<NodeShape> random_nodes(Scheduler& dice, int ranks, int servers) {
  const std::int64_t nodes = dice.random(1, 4);
  std::vector<NodeShape> shapes(static_cast<std::size_t>(nodes), NodeShape{0, 0});
  for (int i = 0; i < ranks; ++i) ++shapes[static_cast<std::size_t>(dice.random(0, nodes - 1))].ranks;
  for (int i = 0; i < servers; ++i) ++shapes[static_cast<std::size_t>(dice.random(0, nodes - 1))].servers;
  return shapes;
}

void expect_same(const Status& a, const Status& b, const std::string& where) {
  EXPECT_EQ(a.code(), b.code()) << where;
  EXPECT_EQ(a.text(), b.text()) << where;
  EXPECT_EQ(a.cause(), b.cause()) << where;
}

void expect_same(const Told& a, const Told& b, const std::string& where) {
  ASSERT_EQ(a.ends.size(), b.ends.size()) << where;
  for (std::size_t step = 0; step < a.ends.size(); ++step) expect_same(a.ends[step], b.ends[step], where);
  ASSERT_EQ(a.failures.size(), b.failures.size()) << where;
  for (const auto& [step, status] : a.failures) {
    ASSERT_EQ(b.failures.count(step), 1U) << where;
    expect_same(status, b.failures.at(step), where);
  }
  expect_same(a.waited, b.waited, where);
  expect_same(a.closed, b.closed, where);
}

namespace {

Task<> run_forecast(Rank& rank, const Scenario& scenario, Arrays& arrays, Told& told, bool patient) {
  Stream stream(rank, scenario.plan);
  const Status created = co_await stream.create();
  EXPECT_TRUE(created.is_ok()) << created.text();
  for (std::int64_t step = 0; step < scenario.steps; ++step) {
    co_await rank.compute(100'000);
    co_await stream.begin(step * 3600);
    for (std::size_t i = 0; i < scenario.plan->fields.size(); ++i) {
      const int field = static_cast<int>(i);
      std::vector<float>& array = arrays[{step, field}];
      array = array_of(*scenario.plan, rank.me(), field, step);
      co_await stream.put(field, reinterpret_cast<const std::byte*>(array.data()));
      // What was captured may be overwritten.
      if (!rank.roster().self_served) std::fill(array.begin(), array.end(), -1.0F);
    }
    Status ended = co_await stream.end();
    if (patient && ended.is_ok()) ended = co_await stream.wait(true);
    told.ends.push_back(ended);
  }
  told.waited = co_await stream.wait(true);
  told.closed = co_await stream.close();
  told.failures = stream.failures();
  co_await rank.leave();
}

}  // namespace

Task<> forecast(Rank& rank, const Scenario& scenario, Arrays& arrays, Told& told) {
  return run_forecast(rank, scenario, arrays, told, false);
}

Task<> patient_forecast(Rank& rank, const Scenario& scenario, Arrays& arrays, Told& told) {
  return run_forecast(rank, scenario, arrays, told, true);
}

void expect_committed(storage::Target& target, const Scenario& scenario,
                      const std::map<std::int64_t, Status>& failures, const std::string& where) {
  ByteVector expected;
  std::vector<std::int64_t> leads;
  for (std::int64_t step = 0; step < scenario.steps; ++step) {
    if (failures.count(step) != 0) continue;
    const ByteVector bytes = bytes_of_step(*scenario.plan, step);
    expected.insert(expected.end(), bytes.begin(), bytes.end());
    leads.push_back(step * 3600);
  }
  const Result<streams::IndexContents> index =
      streams::load_index(target, streams::index_path(scenario.pattern));
  if (leads.empty() && !index.is_ok()) return;
  ASSERT_TRUE(index.is_ok()) << where << index.status().text();
  std::vector<std::int64_t> indexed;
  for (const streams::IndexStep& step : index->steps) indexed.push_back(step.lead);
  EXPECT_EQ(indexed, leads) << where;
  EXPECT_EQ(index->data_end(), static_cast<Bytes>(expected.size())) << where;
  const ByteVector file = read_file(target, scenario.pattern);
  EXPECT_EQ(file.size(), expected.size()) << where;
  EXPECT_TRUE(file == expected) << where;
}

void expect_right_bytes(const Shape& shape, const Scenario& scenario, const std::string& where) {
  World world(shape);
  std::vector<Arrays> arrays(static_cast<std::size_t>(world.ranks()));
  std::vector<Told> told(arrays.size());
  const Outcome outcome = world.run([&](Rank& rank) {
    const auto me = static_cast<std::size_t>(rank.me());
    return forecast(rank, scenario, arrays[me], told[me]);
  });
  ASSERT_TRUE(outcome.finished) << where << outcome.stuck << " servers wait:" << world.waiting_for();
  for (const Told& each : told) {
    for (const Status& status : each.ends) EXPECT_TRUE(status.is_ok()) << where << status.text();
    EXPECT_TRUE(each.waited.is_ok()) << where << each.waited.text();
    EXPECT_TRUE(each.closed.is_ok()) << where << each.closed.text();
  }
  expect_committed(world.storage(), scenario, {}, where);
  EXPECT_EQ(
      world.statistics().size(),
      static_cast<std::size_t>(world.roster().self_served ? world.ranks() : world.ranks() + world.servers()))
      << where;
}

}  // namespace tailrace::sim
