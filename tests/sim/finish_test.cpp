// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Files that cannot be finished when their last step is durable: they are tried again, and no step of a later
// file counts as durable before they are whole.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "faces/streams/files/manifest.hpp"
#include "ground/base/text.hpp"
#include "scenario.hpp"

namespace tailrace::sim {
namespace finish_test {

constexpr std::int64_t half_day = 43200;
constexpr std::int64_t all_steps = 6;  // in three files
const std::string first_file = "fc_20260301.raw";

std::shared_ptr<const StreamPlan> make_plan(int ranks) {
  const Result<std::shared_ptr<const StreamPlan>> plan =
      StreamPlan::make("fc_{valid:%Y%m%d}.raw", "format=raw base=2026-03-01 ready=.ready manifest=off",
                       {{"t", *layout::Layout::block({5, 7}, ranks), "levels=hybrid:1-2"}});
  EXPECT_TRUE(plan.is_ok()) << plan.status().text();
  return *plan;
}

std::string path_of(std::int64_t step) { return cat("fc_2026030", 1 + step / 2, ".raw"); }

/// The answers of rank 0.
struct Heard {
  Told told;
  streams::Position position;
  bool fired = false;  // the fault
};

/// Runs a stream. Rank 0 calls `between` before each step, when all steps before are durable or have failed.
Heard run(const Job& job, const std::shared_ptr<const StreamPlan>& plan, std::int64_t end,
          const std::function<void(std::int64_t)>& between, const storage::FaultPlan& fault = {},
          std::int64_t first = 0) {
  SessionWorld world(job);
  if (fault.nth > 0) world.storage_of(0).restart(fault);
  std::vector<Arrays> arrays(static_cast<std::size_t>(world.ranks()));
  Heard heard;
  const Texts stuck = world.run([&](SessionRank& rank) {
    PlannedStream stream(rank, plan);
    const Status created = stream.create();
    EXPECT_TRUE(created.is_ok()) << created.text();
    if (!created.is_ok()) return;
    for (std::int64_t step = plan->resume ? plan->resume->steps : first; step < end; ++step) {
      if (rank.rank() == 0) between(step);
      stream.begin(step * half_day);
      std::vector<float>& array = arrays[static_cast<std::size_t>(rank.rank())][{step, 0}];
      array = array_of(*plan, rank.rank(), 0, step);
      stream.put(0, reinterpret_cast<const std::byte*>(array.data()));
      (void)stream.end();
      (void)stream.wait(true);
    }
    const Status closed = stream.close();
    if (rank.rank() != 0) return;
    heard.told.closed = closed;
    heard.told.failures = stream.failures();
    heard.position = stream.position();
  });
  EXPECT_TRUE(stuck.empty()) << text_of(stuck);
  heard.fired = fault.nth > 0 && world.storage_of(0).fired();
  return heard;
}

/// Expects that files hold the steps that did not fail, say that they are whole, and were announced.
void expect_finished(storage::Target& target, const StreamPlan& plan,
                     const std::map<std::int64_t, std::string>& failures, const std::string& where) {
  std::map<std::string, ByteVector> expected;
  for (std::int64_t step = 0; step < all_steps; ++step) {
    if (failures.count(step) != 0) continue;
    const ByteVector bytes = bytes_of_step(plan, step);
    expected[path_of(step)].insert(expected[path_of(step)].end(), bytes.begin(), bytes.end());
  }
  for (const auto& [path, bytes] : expected) {
    const Result<streams::IndexContents> index = streams::load_index(target, streams::index_path(path));
    ASSERT_TRUE(index.is_ok()) << where << ": " << index.status().text();
    EXPECT_TRUE(index->closed) << where << ": " << path;
    EXPECT_TRUE(read_file(target, path) == bytes) << where << ": " << path;
    EXPECT_TRUE(*target.exists(path + ".ready")) << where << ": " << path;
    EXPECT_FALSE(*target.exists(path + ".again")) << where << ": " << path;
  }
}

Job job_of(std::uint64_t seed, int ranks) {
  Scheduler dice(seed * 6151);
  Job job;
  job.nodes = random_nodes(dice, ranks, 1);
  job.seed = seed;
  job.storage = storage::memory_target();
  return job;
}

TEST(sim_finish, one_call_that_fails_leaves_no_file_unfinished) {
  const auto plan = make_plan(2);
  int healed = 0;
  bool fired = true;
  for (std::int64_t nth = 1; fired && !testing::Test::HasFailure(); ++nth) {
    const Job job = job_of(static_cast<std::uint64_t>(nth), 2);
    // The run stops within a file. The second run puts another file in its place.
    const Heard first = run(job, plan, 3, [](std::int64_t) {});
    auto resumed = std::make_shared<StreamPlan>(*plan);
    resumed->resume = first.position;
    const storage::FaultPlan fault{nth, storage::Fault::io_error, storage::all_calls, false};
    const Heard second = run(
        job, resumed, all_steps, [](std::int64_t) {}, fault);
    expect_finished(*job.storage, *plan, second.told.failures, cat("call ", nth));
    fired = second.fired;
    healed += fired && second.told.failures.empty() && second.told.closed.is_ok();
  }
  EXPECT_GT(healed, 40);
}

/// Cuts a file, and puts it back.
class Damage {
 public:
  Damage(storage::Target& target, std::string path) : target_(target), path_(std::move(path)) {}
  void cut() {
    whole_ = read_file(target_, path_);
    write(ByteVector(whole_.begin(), whole_.begin() + 10));
  }
  void mend() { write(whole_); }

 private:
  void write(const ByteVector& bytes) {
    auto file = target_.open(path_, storage::OpenMode::create);
    ASSERT_TRUE(file.is_ok()) << file.status().text();
    EXPECT_TRUE((*file)->write(bytes, 0).is_ok());
    EXPECT_TRUE((*file)->close().is_ok());
  }

  storage::Target& target_;
  const std::string path_;
  ByteVector whole_;
};

TEST(sim_finish, steps_fail_as_long_as_the_file_before_theirs_is_not_whole) {
  const Job job = job_of(1, 3);
  const auto plan = make_plan(3);
  Damage damage(*job.storage, first_file);
  const Heard heard = run(job, plan, all_steps, [&](std::int64_t step) {
    if (step == 2) damage.cut();
    if (step == 4) damage.mend();
  });
  ASSERT_EQ(heard.told.failures.size(), 2U);
  EXPECT_NE(heard.told.failures.at(2).find(first_file), std::string::npos) << heard.told.failures.at(2);
  EXPECT_EQ(heard.told.failures.count(3), 1U);
  expect_finished(*job.storage, *plan, heard.told.failures, "mended");
}

TEST(sim_finish, a_file_that_never_was_finished_is_by_the_run_that_goes_on) {
  const Job job = job_of(2, 3);
  const auto plan = make_plan(3);
  Damage damage(*job.storage, first_file);
  const Heard first = run(job, plan, 4, [&](std::int64_t step) {
    if (step == 2) damage.cut();
  });
  EXPECT_EQ(first.told.failures.size(), 2U);
  EXPECT_FALSE(first.told.closed.is_ok());
  EXPECT_EQ(first.position.put_lead, half_day);
  damage.mend();
  auto resumed = std::make_shared<StreamPlan>(*plan);
  resumed->resume = first.position;
  const Heard second = run(job, resumed, all_steps, [](std::int64_t) {});
  EXPECT_TRUE(second.told.closed.is_ok()) << second.told.closed.text();
  expect_finished(*job.storage, *plan, first.told.failures, "gone on");
}

/// Copies what lies in a directory: what a kill leaves of a run.
void copy_tree(storage::Target& from, const std::string& directory, storage::Target& to) {
  const auto names = from.list(directory);
  ASSERT_TRUE(names.is_ok()) << names.status().text();
  for (const std::string& name : *names) {
    const std::string path = directory + "/" + name;
    const auto file = from.open(path, storage::OpenMode::read);
    if (!file.is_ok()) {
      EXPECT_TRUE(to.make_directories(path).is_ok());
      copy_tree(from, path, to);
      continue;
    }
    ByteVector bytes(static_cast<std::size_t>(*(*file)->size()));
    EXPECT_TRUE((*file)->read(bytes, 0).is_ok());
    const auto made = to.open(path, storage::OpenMode::create);
    ASSERT_TRUE(made.is_ok()) << made.status().text();
    EXPECT_TRUE((*made)->write(bytes, 0).is_ok());
  }
}

/// Kills a run before step `killed`, goes on from there with existing=continue, and expects all files whole.
void expect_finished_by_the_next_run(const std::string& format, std::int64_t killed, std::int64_t end,
                                     const std::string& time = "%Y%m%d") {
  const std::string where = cat(format, ", ", time, ", killed before step ", killed, ", up to ", end);
  const std::string ending = name_for("." + format, format);
  const std::string begin = time == "%Y%m%d" ? "fc_2026030" : "fc_0";
  const auto path = [&](std::int64_t step) { return cat(begin, 1 + step / 2, ending); };
  const auto plan =
      StreamPlan::make(cat("fc_{valid:", time, "}", ending),
                       cat("format=", format, " base=2026-03-01 ready=.ready existing=continue"),
                       {{"t", *layout::Layout::block({5, 7}, 2), "levels=hybrid:1-2"}});
  ASSERT_TRUE(plan.is_ok()) << plan.status().text();
  Job job = job_of(1, 2);
  const std::shared_ptr<storage::Target> left = storage::memory_target();
  const Heard first = run(job, *plan, killed + 1, [&](std::int64_t step) {
    if (step == killed) copy_tree(*job.storage, ".", *left);
  });
  EXPECT_TRUE(first.told.failures.empty()) << where;
  job.storage = left;
  const Heard second = run(
      job, *plan, end, [](std::int64_t) {}, {}, killed);
  EXPECT_TRUE(second.told.failures.empty()) << where << ": " << second.told.failures.begin()->second;
  EXPECT_TRUE(second.told.closed.is_ok()) << where << ": " << second.told.closed.text();
  for (std::int64_t step = 0; step < end; step += 2) {
    const Result<streams::IndexContents> index = streams::load_index(*left, streams::index_path(path(step)));
    ASSERT_TRUE(index.is_ok()) << where << ": " << index.status().text();
    EXPECT_TRUE(index->closed) << where << ": " << path(step);
    std::vector<std::int64_t> steps{step};
    if (step + 1 < end) steps.push_back(step + 1);
    EXPECT_TRUE(read_file(*left, path(step)) == bytes_of_file(**plan, steps, half_day))
        << where << ": " << path(step);
    EXPECT_TRUE(*left->exists(path(step) + ".ready")) << where << ": " << path(step);
    if (!streams::manifest_available().is_ok()) continue;
    const auto told = streams::read_manifest(*left, "manifest.jsonl");
    ASSERT_TRUE(told.is_ok()) << where << ": " << told.status().text();
    EXPECT_EQ(std::ranges::count(*told, path(step), &streams::ManifestEntry::path), 1) << where;
  }
}

TEST(sim_finish, a_run_that_continues_without_a_checkpoint_finishes_the_file_that_a_killed_one_has_left) {
  std::set<std::string> formats;
  for (std::uint64_t number = 0; number < 8; ++number) formats.insert(any_format(number));
  for (const std::string& format : formats) {
    for (const std::int64_t killed : {1, 2, 4}) {
      expect_finished_by_the_next_run(format, killed, all_steps);
      // The program finds that it has nothing to do any more.
      expect_finished_by_the_next_run(format, killed, killed);
      // No lead follows from these names.
      expect_finished_by_the_next_run(format, killed, all_steps, "%d");
    }
  }
}

TEST(sim_finish, what_cannot_be_announced_fails_no_step_and_is_told_when_the_stream_is_closed) {
  const Job job = job_of(3, 2);
  const auto plan = make_plan(2);
  const Heard heard = run(job, plan, all_steps, [&](std::int64_t step) {
    if (step != 1) return;
    EXPECT_TRUE(job.storage->make_directories(first_file + ".ready").is_ok());
  });
  EXPECT_TRUE(heard.told.failures.empty());
  EXPECT_NE(heard.told.closed.text().find(first_file + ".ready"), std::string::npos)
      << heard.told.closed.text();
  expect_finished(*job.storage, *plan, {}, "announced by hand");
}

/// Expects that the files which are announced have all of their steps.
void expect_announced_whole(storage::Target& target, const std::string& where) {
  for (std::int64_t step = 0; step < all_steps; step += 2) {
    const Result<bool> announced = target.exists(path_of(step) + ".ready");
    ASSERT_TRUE(announced.is_ok());
    if (!*announced) continue;
    const Result<streams::IndexContents> index =
        streams::load_index(target, streams::index_path(path_of(step)));
    ASSERT_TRUE(index.is_ok()) << where << ": " << index.status().text();
    EXPECT_EQ(index->steps.size(), 2U) << where << ": " << path_of(step) << " lacks a step";
  }
}

/// The steps of a stream that never waits are under way to a slow disk when a call of storage fails. Whether
/// it goes on or ends, up to its next end() it does not know.
TEST(sim_finish, a_file_that_lacks_a_step_is_announced_once_the_program_has_gone_on_knowing_it) {
  const auto plan = make_plan(2);
  int failed = 0;
  bool fired = true;
  for (std::int64_t nth = 1; fired && !testing::Test::HasFailure(); ++nth) {
    Job job = job_of(static_cast<std::uint64_t>(nth) + 500, 2);
    job.disk_bytes_per_second = 1e5;
    SessionWorld world(job);
    world.storage_of(0).restart({nth, storage::Fault::no_space, storage::all_calls, false});
    std::vector<Arrays> arrays(static_cast<std::size_t>(world.ranks()));
    std::map<std::int64_t, std::string> failures;
    const std::string where = cat("call ", nth);
    const Texts stuck = world.run([&](SessionRank& rank) {
      PlannedStream stream(rank, plan);
      if (!stream.create().is_ok()) return;
      bool knows = false;
      for (std::int64_t step = 0; step < all_steps; ++step) {
        stream.begin(step * half_day);
        std::vector<float>& array = arrays[static_cast<std::size_t>(rank.rank())][{step, 0}];
        array = array_of(*plan, rank.rank(), 0, step);
        stream.put(0, reinterpret_cast<const std::byte*>(array.data()));
        const bool knew = std::exchange(knows, !stream.end().is_ok() || knows);
        if (rank.rank() == 0 && !knew) expect_announced_whole(*job.storage, where);
      }
      (void)stream.close();
      if (rank.rank() == 0) failures = stream.failures();
    });
    EXPECT_TRUE(stuck.empty()) << text_of(stuck);
    fired = world.storage_of(0).fired();
    if (fired && failures.empty()) continue;  // it failed what no step needs
    expect_finished(*job.storage, *plan, failures, where);
    failed += failures.empty() ? 0 : 1;
  }
  EXPECT_GT(failed, 5);
}

}  // namespace finish_test
}  // namespace tailrace::sim
