// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "scenario.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "../support/own_encoder.hpp"
#include "engine/pipeline/method.hpp"
#include "formats/registry/registry.hpp"
#include "formats/stores/stores.hpp"
#include "ground/base/text.hpp"

namespace tailrace::sim {

std::string any_format(std::uint64_t number) {
  [[maybe_unused]] static const bool has_own = test::register_own();
  std::vector<std::string> all{"cdf5", "raw", "own"};
  for (const formats::Format& format : formats::all()) {
    if (format.make != nullptr && (format.finishing || format.store != nullptr))
      all.emplace_back(format.name);
  }
  return all[number % all.size()];
}

std::string any_method(std::uint64_t number) {
  const auto all = pipeline::methods();
  return std::string(all[number % all.size()].name);
}

std::string name_for(const std::string& name, const std::string& format) {
  const Result<const formats::Format*> found = formats::find(format);
  const bool writes_store = found.is_ok() && (*found)->store != nullptr;
  return writes_store && !stores::is_store(name) ? cat(name, (*found)->endings.front()) : name;
}

void Scenario::prepare() {
  // A store of objects is refused where all servers would write one file together.
  if (stores::is_store(name_for(pattern, format)) && (*pipeline::find_method(method))->is_collective)
    method = "writer";
  pattern = name_for(pattern, format);
  const auto make = [&] {
    Result<std::shared_ptr<const StreamPlan>> made = StreamPlan::make(
        pattern,
        cat("base=2026-03-01 format=", format, method.empty() ? "" : " method=", method,
            handoff.empty() ? "" : " handoff=", handoff, options.empty() ? "" : " ", options),
        variables, in_parts);
    ASSERT_TRUE(made.is_ok()) << made.status().text();
    plan = *made;
  };
  make();
  // Records with places are not appended.
  if (plan == nullptr || !(*pipeline::find_method(method))->appends || !plan->codec->fixed_places()) return;
  method = "mpiio";
  make();
}

void squeeze(Job& job, const StreamPlan& plan) {
  const SessionWorld world(job);
  const Bytes piece =
      std::max(plan.largest_piece(), Bytes{16} << 10);  // a stream needs at least this much for its messages
  const Bytes record = plan.largest_record();
  const auto suffices = [&](Bytes staging) {
    const session::Quotas quotas = session::cut_staging(world.roster(), staging);
    const auto holds_piece = [&](Bytes lane) { return node::cut_lane(lane).data >= piece; };
    const auto holds_record = [&](Bytes workspace) { return workspace >= record; };
    return std::all_of(quotas.lane.begin(), quotas.lane.end(), holds_piece) &&
           std::all_of(quotas.workspace.begin(), quotas.workspace.end(), holds_record);
  };
  Bytes least = 1;
  Bytes enough = Bytes{1} << 30;
  while (least < enough) {
    const Bytes middle = (least + enough) / 2;
    suffices(middle) ? enough = middle : least = middle + 1;
  }
  job.staging = enough;
}

std::string text_of(const Texts& stuck) {
  std::string text;
  for (const std::string& each : stuck) text += cat(text.empty() ? "" : "; ", each);
  return text;
}

std::uint64_t seeds(std::uint64_t usual) {
  const char* times = std::getenv("TAILRACE_SIM_SEEDS");
  if (times != nullptr) return usual * std::stoull(times);
  return std::getenv("TEST_ALL") != nullptr ? usual : (usual + 3) / 4;
}

int of_seeds(int usual) { return static_cast<int>(seeds(static_cast<std::uint64_t>(usual))); }

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
  // An array of no elements must have an address, too.
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

namespace {

void place(ByteVector& file, Bytes offset, const ByteVector& bytes) {
  ASSERT_LE(offset + static_cast<Bytes>(bytes.size()), static_cast<Bytes>(file.size()));
  std::ranges::copy(bytes, file.begin() + offset);
}

/// Appends one step to a file. Its records follow one another, or lie in the format's fixed places.
codec::FinishedStep add_step(const StreamPlan& plan, std::int64_t step, std::int64_t interval,
                             ByteVector& file) {
  codec::FinishedStep added{step * interval, {}};
  const std::optional<codec::FixedPlaces> places = plan.codec->fixed_places();
  const auto begin = static_cast<Bytes>(file.size());
  if (places) file.resize(file.size() + static_cast<std::size_t>(places->step));
  const auto encoder = plan.codec->encoder();
  std::vector<codec::FinishedStep::Record> put;
  for (std::size_t i = 0; i < plan.fields.size(); ++i) {
    Bytes used = 0;  // bytes of the levels before, in formats where levels follow one another
    const int field = static_cast<int>(i);
    const Index elements = plan.fields[i].layout.elements();
    for (Index level = 0; level < plan.levels(field); ++level) {
      std::vector<float> values;
      for (Index element = 0; element < elements; ++element)
        values.push_back(sim::value_of(field, level, step, element));
      const codec::RecordKey key{field, level, step * interval, 0};
      ByteVector record;
      EXPECT_TRUE(
          encoder->encode(key, reinterpret_cast<std::byte*>(values.data()), elements, record).is_ok());
      const auto length = static_cast<Bytes>(record.size());
      if (places) {
        const Bytes at = places->places[i][static_cast<std::size_t>(level)] + used;
        if (places->are_packed) used += length;
        place(file, begin + at, record);
        put.push_back({field, level, at, length});
      } else {
        file.insert(file.end(), record.begin(), record.end());
      }
      added.records.push_back({field, level, static_cast<Bytes>(file.size()) - length, length});
    }
  }
  for (const codec::Patch& each : plan.codec->rest_of_step(step * interval, 0, put)) {
    for (std::int64_t i = 0; i < each.times; ++i)
      place(file, begin + each.offset + i * static_cast<Bytes>(each.bytes.size()), each.bytes);
  }
  return added;
}

/// Writes a file's ending, if the format has one.
void end_file(const StreamPlan& plan, const std::vector<codec::FinishedStep>& steps, ByteVector& file) {
  const codec::ReadBytes read = [&](std::span<std::byte> to, Bytes offset) -> Result<Bytes> {
    std::copy_n(file.begin() + offset, to.size(), to.begin());
    return static_cast<Bytes>(to.size());
  };
  const auto ending = plan.codec->ending(read, steps, std::ssize(plan.codec->head()), std::ssize(file));
  ASSERT_TRUE(ending.is_ok()) << ending.status().text();
  if (!*ending) return;
  place(file, (*ending)->head.offset, (*ending)->head.bytes);
  file.insert(file.end(), (*ending)->tail.begin(), (*ending)->tail.end());
}

}  // namespace

ByteVector bytes_of_file(const StreamPlan& plan, const std::vector<std::int64_t>& steps,
                         std::int64_t interval, bool finished) {
  ByteVector file = plan.codec->head();
  std::vector<codec::FinishedStep> added;
  for (const std::int64_t step : steps) added.push_back(add_step(plan, step, interval, file));
  if (finished && !steps.empty()) end_file(plan, added, file);
  if (const auto count = formats::step_count(plan.format, static_cast<std::int64_t>(steps.size())))
    place(file, count->offset, count->bytes);
  return file;
}

ByteVector read_file(storage::Target& target, const std::string& path) {
  const auto whole = stores::with_stores(std::shared_ptr<storage::Target>(std::shared_ptr<void>(), &target));
  Result<std::unique_ptr<storage::File>> file = whole->open(path, storage::OpenMode::read);
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

layout::Layout random_layout(Scheduler& dice, int ranks, Index longest) {
  const std::vector<Index> shape{dice.random(1, longest), dice.random(1, longest)};
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

std::vector<Variable> random_variables(Scheduler& dice, int ranks, Index longest) {
  std::vector<Variable> variables;
  const std::int64_t count = dice.random(1, 4);
  for (std::int64_t i = 0; i < count; ++i) {
    variables.push_back(
        {cat("field", i), random_layout(dice, ranks, longest), cat("levels=hybrid:1-", dice.random(1, 5))});
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

std::vector<NodeShape> nodes_with_servers(Scheduler& dice, int ranks, int servers) {
  std::vector<NodeShape> nodes(static_cast<std::size_t>(dice.random(1, servers)), NodeShape{0, 1});
  const auto any = [&]() -> NodeShape& {
    return nodes[static_cast<std::size_t>(dice.random(0, std::ssize(nodes) - 1))];
  };
  for (int i = 0; i < ranks; ++i) ++any().ranks;
  for (auto i = std::ssize(nodes); i < servers; ++i) ++any().servers;
  return nodes;
}

void expect_same(const Status& a, const Status& b, const std::string& where) {
  EXPECT_EQ(a.code(), b.code()) << where;
  EXPECT_EQ(a.text(), b.text()) << where;
  EXPECT_EQ(a.cause(), b.cause()) << where;
}

void expect_same(const Told& a, const Told& b, const std::string& where) {
  expect_same(a.created, b.created, where);
  ASSERT_EQ(a.ends.size(), b.ends.size()) << where;
  for (std::size_t step = 0; step < a.ends.size(); ++step) expect_same(a.ends[step], b.ends[step], where);
  EXPECT_EQ(a.failures, b.failures) << where;
  expect_same(a.waited, b.waited, where);
  expect_same(a.closed, b.closed, where);
}

void forecast_steps(SessionRank& rank, PlannedStream& stream, const Scenario& scenario, Arrays& arrays,
                    Told& told, bool patient) {
  for (std::int64_t step = 0; step < scenario.steps; ++step) {
    rank.compute(100'000);
    stream.begin(step * 3600);
    for (std::size_t i = 0; i < scenario.plan->fields.size(); ++i) {
      const int field = static_cast<int>(i);
      std::vector<float>& array = arrays[{step, field}];
      array = array_of(*scenario.plan, rank.rank(), field, step);
      stream.put(field, reinterpret_cast<const std::byte*>(array.data()));
      // The data is captured: the program may overwrite it.
      if (!rank.session().topology().roster().self_served) std::fill(array.begin(), array.end(), -1.0F);
    }
    Status ended = stream.end();
    if (patient && ended.is_ok()) ended = stream.wait(true);
    told.ends.push_back(ended);
  }
  told.waited = stream.wait(true);
  told.closed = stream.close();
  told.failures = stream.failures();
}

namespace {

void run_forecast(SessionRank& rank, const Scenario& scenario, Arrays& arrays, Told& told, bool patient) {
  PlannedStream stream(rank, scenario.plan);
  told.created = stream.create();
  if (told.created.is_ok()) forecast_steps(rank, stream, scenario, arrays, told, patient);
}

}  // namespace

void forecast(SessionRank& rank, const Scenario& scenario, Arrays& arrays, Told& told) {
  run_forecast(rank, scenario, arrays, told, false);
}

void patient_forecast(SessionRank& rank, const Scenario& scenario, Arrays& arrays, Told& told) {
  run_forecast(rank, scenario, arrays, told, true);
}

/// Brings the records of each step into put order, which is that of fields and levels here.
void sort_records(ByteVector& file, const streams::IndexContents& index) {
  const ByteVector found = file;
  for (const streams::IndexStep& step : index.steps) {
    std::vector<streams::IndexRecord> records = step.records;
    std::ranges::sort(records, {}, [](const auto& each) { return std::pair(each.field, each.level); });
    auto to = file.begin() + step.begin;
    for (const streams::IndexRecord& each : records) {
      ASSERT_LE(each.offset + each.length, std::ssize(found));
      to = std::copy_n(found.begin() + each.offset, each.length, to);
    }
  }
}

bool has_any_order(const Scenario& scenario) {
  return (*pipeline::find_method(scenario.method))->has_any_order && !scenario.plan->codec->fixed_places();
}

void expect_steps(storage::Target& target, const std::string& name, const StreamPlan& plan,
                  const streams::IndexContents& index, const std::vector<std::int64_t>& steps,
                  std::int64_t interval, bool has_any_order, const std::string& where) {
  ByteVector expected = bytes_of_file(plan, steps, interval, false);
  EXPECT_EQ(index.data_end(), static_cast<Bytes>(expected.size())) << where;
  // The ending of a file tells where its records are.
  const bool has_ending = index.closed && !has_any_order;
  if (has_ending) expected = bytes_of_file(plan, steps, interval);
  ByteVector file = read_file(target, name);
  if (const formats::Finishing* const format = formats::finishing(plan.format);
      format != nullptr && !has_ending && file.size() >= expected.size()) {
    // The ending may have been written before the fault. The next stream that opens the file removes it.
    file.resize(expected.size());
    place(file, 0, format->unfinished().bytes);
  }
  EXPECT_EQ(file.size(), expected.size()) << where;
  if (has_any_order) sort_records(file, index);
  EXPECT_TRUE(file == expected) << where << name;
}

void expect_committed(storage::Target& target, const Scenario& scenario,
                      const std::map<std::int64_t, std::string>& failures, const std::string& where) {
  std::vector<std::int64_t> steps, leads;
  for (std::int64_t step = 0; step < scenario.steps; ++step) {
    if (failures.count(step) != 0) continue;
    steps.push_back(step);
    leads.push_back(step * 3600);
  }
  const Result<streams::IndexContents> index =
      streams::load_index(target, streams::index_path(scenario.pattern));
  if (leads.empty() && !index.is_ok()) return;
  ASSERT_TRUE(index.is_ok()) << where << index.status().text();
  std::vector<std::int64_t> indexed;
  for (const streams::IndexStep& step : index->steps) indexed.push_back(step.lead);
  EXPECT_EQ(indexed, leads) << where;
  expect_steps(target, scenario.pattern, *scenario.plan, *index, steps, 3600, has_any_order(scenario),
               cat(where, scenario.format, " ", scenario.method, " "));
}

void expect_right_bytes(const Job& job, const Scenario& scenario, const std::string& where) {
  SessionWorld world(job);
  std::vector<Arrays> arrays(static_cast<std::size_t>(world.ranks()));
  std::vector<Told> told(arrays.size());
  const Texts stuck = world.run([&](SessionRank& rank) {
    const auto me = static_cast<std::size_t>(rank.rank());
    forecast(rank, scenario, arrays[me], told[me]);
  });
  ASSERT_TRUE(stuck.empty()) << where << text_of(stuck);
  for (const Status& each : world.failures()) ADD_FAILURE() << where << each.text();
  for (const Told& each : told) {
    EXPECT_TRUE(each.created.is_ok()) << where << each.created.text();
    for (const Status& status : each.ends) EXPECT_TRUE(status.is_ok()) << where << status.text();
    EXPECT_TRUE(each.waited.is_ok()) << where << each.waited.text();
    EXPECT_TRUE(each.closed.is_ok()) << where << each.closed.text();
  }
  expect_committed(world.storage(), scenario, {}, where);
}

}  // namespace tailrace::sim
