// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// One session with two kinds of storage, which names choose: files on disk, and files in memory.
#include <gtest/gtest.h>

#include "faces/checkpoint/checkpoint.hpp"
#include "faces/files/file.hpp"
#include "ground/base/text.hpp"
#include "ground/storage/routing/routing.hpp"
#include "ground/storage/scratch.hpp"
#include "no_outputs.hpp"
#include "scenario.hpp"

namespace tailrace::sim {
namespace targets_test {

using storage::Target;

const std::string prefix = "memory://";

void expect_ok(const Status& status) { EXPECT_TRUE(status.is_ok()) << status.text(); }

/// A job whose storage is a directory on disk, and `memory` for names that begin with memory://.
struct Storage {
  storage::ScratchDirectory scratch;
  std::shared_ptr<Target> disk = storage::posix_target();
  std::shared_ptr<Target> memory = storage::memory_target();
  std::shared_ptr<Target> both =
      storage::routing_target(disk, {{prefix, [this] { return Result<std::shared_ptr<Target>>(memory); }}});

  /// Returns the same directory on disk and in memory: "" or one with a slash behind it.
  [[nodiscard]] std::vector<std::string> places(std::string_view directory = "run/out/") const {
    return {scratch / directory, cat(prefix, directory)};
  }
};

Scenario scenario_of(const std::string& place, const std::string& format, int ranks) {
  Scheduler dice(1);
  Scenario scenario;
  scenario.pattern = place + "fc";
  scenario.variables = random_variables(dice, ranks);
  scenario.format = format;
  scenario.prepare();
  return scenario;
}

/// Puts the same step of all streams.
void put_step(SessionRank& rank, std::vector<PlannedStream>& streams, const std::vector<Scenario>& scenarios,
              std::int64_t step) {
  std::vector<std::vector<float>> arrays;  // the streams take them before end() returns
  for (std::size_t i = 0; i < streams.size(); ++i) {
    const StreamPlan& plan = *scenarios[i].plan;
    streams[i].begin(step * 3600);
    for (int field = 0; field < static_cast<int>(plan.fields.size()); ++field) {
      arrays.push_back(array_of(plan, rank.rank(), field, step));
      streams[i].put(field, reinterpret_cast<const std::byte*>(arrays.back().data()));
    }
  }
  for (PlannedStream& stream : streams) expect_ok(stream.end());
}

void expect_no_failures(const SessionWorld& world, const Texts& stuck) {
  EXPECT_EQ(stuck, Texts());
  for (const Status& each : world.failures()) expect_ok(each);
}

/// Runs a stream into each place, step by step side by side.
void expect_streams_in_both(const std::string& format, const std::vector<NodeShape>& nodes,
                            std::string_view directory) {
  SCOPED_TRACE(cat(format, " in ", directory));
  const Storage storage;
  Job job;
  job.nodes = nodes;
  job.storage = storage.both;
  SessionWorld world(job);
  std::vector<Scenario> scenarios;
  const std::vector<std::string> places = storage.places(directory);
  for (const std::string& place : places) scenarios.push_back(scenario_of(place, format, world.ranks()));
  const Texts stuck = world.run([&](SessionRank& rank) {
    std::vector<PlannedStream> streams;
    for (const Scenario& each : scenarios) streams.emplace_back(rank, each.plan);
    for (PlannedStream& stream : streams) expect_ok(stream.create());
    for (std::int64_t step = 0; step < scenarios.front().steps; ++step)
      put_step(rank, streams, scenarios, step);
    for (PlannedStream& stream : streams) expect_ok(stream.close());
  });
  expect_no_failures(world, stuck);
  for (const Scenario& each : scenarios) expect_committed(*storage.both, each, {}, each.pattern);
  // Each place has the files of its own stream, and the same as the other.
  EXPECT_EQ(*storage.disk->list(places[0]), *storage.memory->list(places[1]));
  EXPECT_EQ(*storage.disk->list(storage.scratch.path()), *storage.memory->list(prefix));
  EXPECT_EQ(*storage.memory->list("."), Texts());
  EXPECT_EQ(*storage.memory->list("/"), Texts());
  EXPECT_FALSE(*storage.disk->exists("memory:"));
}

TEST(sim_targets, streams_of_one_session_write_to_the_storage_that_their_names_choose) {
  int written = 0;
  for (const formats::Format& format : formats::all()) {
    // GRIB2 needs a grid, which the layouts of scenarios have not.
    if (format.make == nullptr || format.check_keys != nullptr) continue;
    const std::string name(format.name);
    expect_streams_in_both(name, nodes_of(3, 2), "run/out/");
    expect_streams_in_both(name, {{2, 1}, {1, 1}}, "");
    ++written;
  }
  EXPECT_GE(written, 2);
}

/// Saves one number at `path`, or loads it and expects it.
void save_or_load(SessionRank& rank, const std::string& path, std::int64_t number, bool saves) {
  using checkpoint::Checkpoint;
  NoOutputs outputs;
  const auto one = std::make_shared<const layout::Layout>(*layout::Layout::replicated({1}, rank.ranks()));
  Result<std::unique_ptr<Checkpoint>> made =
      Checkpoint::create(rank.session(), outputs, path, "", checkpoint::parse_options(""));
  expect_ok(made.status());
  if (!made.is_ok()) return;
  std::int64_t value = saves ? number : 0;
  bool found = false;
  expect_ok((*made)->begin(saves ? Checkpoint::Direction::save : Checkpoint::Direction::load, &found));
  checkpoint::NamedItem item;
  item.name = "number";
  item.array.data = reinterpret_cast<std::byte*>(&value);
  item.array.type = ElementType::i64;
  item.scalar = one;
  if (saves || found) (*made)->item(item);
  expect_ok((*made)->end());
  expect_ok((*made)->close());
  EXPECT_EQ(value, number) << path;
}

TEST(sim_targets, checkpoints_and_files_of_one_session_are_where_their_names_say) {
  const Storage storage;
  for (const bool saves : {true, false}) {
    SessionWorld world({nodes_of(3, 2), {}, {}, storage.both, 1});
    const Texts stuck = world.run([&](SessionRank& rank) {
      std::int64_t number = 7;
      for (const std::string& place : storage.places()) save_or_load(rank, place + "cp", number++, saves);
      const auto group = rank.group({0, 1, 2});
      for (const std::string& place : storage.places()) {
        const auto file = files::File::open({&rank.files(), *group, (*group)->rank()}, place + "file",
                                            *files::parse_mode(saves ? "w" : "r"));
        expect_ok(file.status());
        if (file.is_ok()) expect_ok((*file)->close());
      }
    });
    expect_no_failures(world, stuck);
    EXPECT_EQ(*storage.disk->list(storage.places()[0]), *storage.memory->list(storage.places()[1]));
  }
  EXPECT_TRUE(*storage.memory->exists("memory://run/out/file"));
  EXPECT_TRUE(*storage.disk->exists(storage.scratch / "run/out/file"));
  EXPECT_EQ(*storage.memory->list("."), Texts());
}

}  // namespace targets_test
}  // namespace tailrace::sim
