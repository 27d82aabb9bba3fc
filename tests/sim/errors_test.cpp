// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <set>

#include "engine/pipeline/method.hpp"
#include "formats/registry/registry.hpp"
#include "ground/base/text.hpp"
#include "ground/executor/threads.hpp"
#include "ground/storage/memory.hpp"
#include "scenario.hpp"

namespace tailrace::sim {
namespace errors_test {

/// The mistake of one rank in one step.
enum class Mistake {
  skips_a_put,
  swaps_two_puts,
  ends_early,
  puts_too_much,
  begins_another_lead,
  has_an_error,
  puts_nothing
};
constexpr int mistakes = 7;

std::vector<int> puts_of(Mistake mistake, bool wrong) {
  if (!wrong) return {0, 1, 2};
  switch (mistake) {
    case Mistake::skips_a_put:
      return {0, 2};
    case Mistake::swaps_two_puts:
      return {1, 0, 2};
    case Mistake::ends_early:
      return {0, 1};
    case Mistake::puts_too_much:
      return {0, 1, 2, 1};
    case Mistake::puts_nothing:
      return {};
    case Mistake::begins_another_lead:
    case Mistake::has_an_error:
      return {0, 1, 2};
  }
  return {};
}

constexpr std::int64_t bad_step = 1;

/// Returns the error of the step. The culprit itself sees some of the mistakes. Rank 0, whose puts are the
/// order, sees that a step has no field.
Code code_of(Mistake mistake, int culprit) {
  if (mistake == Mistake::has_an_error) return Code::argument;
  if (mistake == Mistake::puts_too_much) return Code::state;
  return mistake == Mistake::puts_nothing && culprit == 0 ? Code::state : Code::order;
}

void err(SessionRank& rank, const Scenario& scenario, Mistake mistake, bool culprit, Arrays& arrays,
         Told& told) {
  PlannedStream stream(rank, scenario.plan);
  const Status created = stream.create();
  EXPECT_TRUE(created.is_ok()) << created.text();
  for (std::int64_t step = 0; step < scenario.steps; ++step) {
    const bool wrong = culprit && step == bad_step;
    std::int64_t lead = step * 3600;
    if (wrong && mistake == Mistake::begins_another_lead) lead += 7;
    stream.begin(lead);
    for (const int field : puts_of(mistake, wrong)) {
      std::vector<float>& array = arrays[{step, field}];
      // A field put twice is the same array: the lent one stays where it is.
      if (array.empty()) array = array_of(*scenario.plan, rank.rank(), field, step);
      if (wrong && mistake == Mistake::has_an_error && field == 1) {
        stream.latch(Status(Code::argument, "the array is a null pointer"));
        continue;
      }
      stream.put(field, reinterpret_cast<const std::byte*>(array.data()));
    }
    const Status ended = stream.end();
    told.ends.push_back(ended);
  }
  told.waited = stream.wait(true);
  told.closed = stream.close();
  told.failures = stream.failures();
}

struct Error {
  Status status;
  std::size_t others = 0;  // number of later steps that failed too, by its text
};

/// Returns every error that the ranks were told of, in order.
std::vector<Error> errors_in(const Told& told) {
  std::vector<Status> all = told.ends;
  all.push_back(told.waited);
  all.push_back(told.closed);
  std::vector<Error> errors;
  for (const Status& status : all) {
    if (status.is_ok()) continue;
    Error error{status, 0};
    const std::size_t later = status.text().rfind(" later step");
    if (later != std::string::npos)
      error.others = std::stoul(status.text().substr(status.text().rfind("; ", later) + 2));
    errors.push_back(error);
  }
  return errors;
}

Scenario erring_forecast(int ranks) {
  Scenario scenario;
  scenario.steps = 4;
  for (const char* name : {"t", "u", "v"}) {
    scenario.variables.push_back({name, *layout::Layout::block({8, 4}, ranks), "levels=hybrid:1-2"});
  }
  scenario.format = any_format(static_cast<std::uint64_t>(ranks));
  scenario.method = any_method(static_cast<std::uint64_t>(ranks));
  scenario.prepare();
  return scenario;
}

void expect_one_verdict(const Job& job, int ranks, int culprit, Mistake mistake, const std::string& where) {
  const Scenario scenario = erring_forecast(ranks);
  SessionWorld world(job);
  std::vector<Arrays> arrays(static_cast<std::size_t>(ranks));
  std::vector<Told> told(arrays.size());
  const Texts stuck = world.run([&](SessionRank& rank) {
    const auto me = static_cast<std::size_t>(rank.rank());
    err(rank, scenario, mistake, rank.rank() == culprit, arrays[me], told[me]);
  });
  ASSERT_TRUE(stuck.empty()) << where << text_of(stuck);
  for (const Told& each : told) expect_same(each, told[0], where);
  const std::vector<Error> errors = errors_in(told[0]);
  // A single rank cannot differ from itself: a put that it leaves out is not missed.
  const Code code = code_of(mistake, culprit);
  const bool is_error = ranks > 1 || code != Code::order;
  if (!is_error) return;
  ASSERT_EQ(errors.size(), 1U) << where;
  EXPECT_EQ(errors[0].status.cause().step, bad_step) << where << errors[0].status.text();
  EXPECT_EQ(errors[0].status.code(), code) << where << errors[0].status.text();
  if (culprit != 0 || code != Code::order) {
    EXPECT_EQ(errors[0].status.rank(), culprit) << where << errors[0].status.text();
  }
  ASSERT_EQ(told[0].failures.size(), 1U) << where;
  EXPECT_EQ(told[0].failures.begin()->first, bad_step) << where;
  expect_committed(world.storage(), scenario, told[0].failures, where);
}

TEST(sim_errors, a_mistake_of_any_rank_fails_its_step_alike_everywhere_and_no_other) {
  for (std::uint64_t seed = 1; seed <= seeds(210); ++seed) {
    Scheduler dice(seed * 8191);
    const int ranks = static_cast<int>(dice.random(1, 6));
    const int servers = static_cast<int>(dice.random(0, 4));
    const int culprit = static_cast<int>(dice.random(0, ranks - 1));
    const auto mistake = static_cast<Mistake>(seed % mistakes);
    Job job;
    job.seed = seed;
    job.nodes = random_nodes(dice, ranks, servers);
    job.threads = static_cast<int>(dice.random(1, 3));
    if (dice.once_in(2)) squeeze(job, *erring_forecast(ranks).plan);
    expect_one_verdict(job, ranks, culprit, mistake,
                       cat("seed ", seed, ", ", ranks, " ranks, ", servers, " servers, rank ", culprit,
                           ", mistake ", static_cast<int>(mistake), ": "));
    if (HasFatalFailure()) return;
  }
}

using Program = void (*)(SessionRank&, const Scenario&, Arrays&, Told&);

/// Fails the n-th storage call of server `victim`. Returns false once there was no such call.
bool fail_one_call(const Job& job, const Scenario& scenario, int victim, std::int64_t nth,
                   storage::Fault fault, Program program, const std::string& where) {
  SessionWorld world(job);
  storage::FaultPlan plan;
  plan.nth = nth;
  plan.fault = fault;
  world.storage_of(victim).restart(plan);
  std::vector<Arrays> arrays(static_cast<std::size_t>(world.ranks()));
  std::vector<Told> told(arrays.size());
  const Texts stuck = world.run([&](SessionRank& rank) {
    const auto me = static_cast<std::size_t>(rank.rank());
    program(rank, scenario, arrays[me], told[me]);
  });
  EXPECT_TRUE(stuck.empty()) << where << text_of(stuck);
  if (!stuck.empty()) return false;
  for (const Told& each : told) expect_same(each, told[0], where);
  const std::map<std::int64_t, std::string>& failures = told[0].failures;
  const bool fired = world.storage_of(victim).fired();
  const std::vector<Error> errors = errors_in(told[0]);
  if (fault == storage::Fault::interrupted || fault == storage::Fault::short_write || !fired) {
    EXPECT_TRUE(errors.empty()) << where << errors.front().status.text();
  }
  for (const Error& error : errors) {
    EXPECT_TRUE(error.status.code() == Code::io || error.status.code() == Code::space)
        << where << error.status.text();
  }
  if (!told[0].created.is_ok()) {
    EXPECT_TRUE(fired) << where << told[0].created.text();
    return fired;
  }
  // Every failed step was told of once: by itself, or in the number that follows an earlier one.
  std::size_t told_of = 0;
  std::set<std::int64_t> told_steps;
  for (const Error& error : errors) {
    if (failures.count(error.status.cause().step) == 0) continue;
    EXPECT_TRUE(told_steps.insert(error.status.cause().step).second) << where << error.status.text();
    told_of += 1 + error.others;
  }
  EXPECT_EQ(told_of, failures.size()) << where;
  EXPECT_TRUE(failures.empty() || told_steps.count(failures.begin()->first) == 1) << where;
  // One fault fails one step and those that were under way behind it. Later steps are written again.
  if (!failures.empty()) {
    EXPECT_EQ(failures.rbegin()->first - failures.begin()->first + 1,
              static_cast<std::int64_t>(failures.size()))
        << where;
    EXPECT_LE(failures.size(), program == patient_forecast ? 1U : 5U) << where;
  }
  expect_committed(world.storage(), scenario, failures, where);
  return fired;
}

Scenario small_forecast(int ranks, const std::string& format = "cdf5") {
  Scenario scenario;
  scenario.steps = 5;
  scenario.variables = {{"t", *layout::Layout::block({6, 6}, ranks), "levels=hybrid:1-3"},
                        {"u", *layout::Layout::block({6, 6}, ranks), "levels=surface"}};
  scenario.format = format;
  scenario.prepare();
  return scenario;
}

/// Without --all, only every `usual_stride`th call fails, in each way another one.
void fail_every_call(const std::vector<NodeShape>& nodes, Program program, std::uint64_t seed = 0,
                     double disk = 1e9, const Scenario& scenario = small_forecast(4),
                     const std::vector<storage::Fault>& faults = {storage::Fault::io_error,
                                                                  storage::Fault::no_space,
                                                                  storage::Fault::short_write},
                     std::int64_t usual_stride = 2) {
  Job job;
  job.nodes = nodes;
  job.disk_bytes_per_second = disk;
  const int servers = SessionWorld(job).servers();
  const bool is_thorough = std::getenv("TEST_ALL") != nullptr || faults.size() == 1;
  const std::int64_t stride = is_thorough ? 1 : usual_stride;
  auto way = static_cast<std::int64_t>(seed);
  for (const storage::Fault fault : faults) {
    ++way;
    for (int victim = 0; victim < servers; ++victim) {
      for (std::int64_t nth = 1 + way % stride;; nth += stride) {
        job.seed = static_cast<std::uint64_t>(nth * 100 + victim) + seed * 10'000;
        const std::string where = cat("seed ", job.seed, ", fault ", static_cast<int>(fault), ", server ",
                                      victim, ", call ", nth, ": ");
        if (!fail_one_call(job, scenario, victim, nth, fault, program, where)) break;
        ASSERT_LT(nth, 1000);
        if (testing::Test::HasFailure()) return;
      }
    }
  }
}

TEST(sim_errors, every_storage_call_that_fails_fails_one_step_alike_everywhere) {
  fail_every_call({{2, 1}, {2, 2}}, patient_forecast);
}

TEST(sim_errors, so_it_does_while_later_steps_are_under_way) {
  for (std::uint64_t seed = 0; seed < seeds(2) && !HasFailure(); ++seed)
    fail_every_call({{2, 1}, {2, 2}}, forecast, seed);
}

TEST(sim_errors, so_it_does_while_many_later_steps_are_under_way_to_a_slow_disk) {
  for (std::uint64_t seed = 0; seed < seeds(2) && !HasFailure(); ++seed)
    fail_every_call({{2, 1}, {2, 2}}, forecast, 1'000 + seed, 1e5);
}

/// The commit of a step failed while the step behind it was still being written: bytes of that step behind
/// the end stayed in the file.
TEST(sim_errors, what_the_next_step_wrote_while_one_failed_is_cut_off) {
  Job job;
  job.nodes = {{2, 1}, {2, 2}};
  job.seed = 80902;
  fail_one_call(job, small_forecast(4), 2, 9, storage::Fault::io_error, forecast, "");
}

TEST(sim_errors, so_it_does_without_servers) {
  fail_every_call({{3, 0}}, forecast, 0, 1e9, small_forecast(3, any_format(3)));
}

class SimErrorsOf : public testing::TestWithParam<std::size_t> {};

TEST_P(SimErrorsOf, a_method_a_failed_call_fails_one_step_alike_everywhere) {
  const pipeline::Method& method = pipeline::methods()[GetParam()];
  Scenario scenario = small_forecast(4, method.appends ? "raw" : "cdf5");
  scenario.method = method.name;
  scenario.prepare();
  fail_every_call({{2, 1}, {2, 2}}, forecast, GetParam(), 1e5, scenario,
                  {storage::Fault::io_error, storage::Fault::no_space}, 6);
}

TEST_P(SimErrorsOf, a_method_without_servers_it_does_so_too) {
  const pipeline::Method& method = pipeline::methods()[GetParam()];
  Scenario served = small_forecast(3, method.appends ? "raw" : any_format(3));
  served.method = method.name;
  served.prepare();
  fail_every_call({{3, 0}}, forecast, GetParam(), 1e9, served,
                  {storage::Fault::io_error, storage::Fault::no_space, storage::Fault::short_write}, 4);
}

INSTANTIATE_TEST_SUITE_P(each, SimErrorsOf, testing::Range<std::size_t>(0, pipeline::methods().size()),
                         [](const testing::TestParamInfo<std::size_t>& info) {
                           return std::string(pipeline::methods()[info.param].name);
                         });

/// A store is many objects, and each of them takes several calls.
TEST(sim_errors, so_it_does_in_a_store_of_objects) {
  for (const formats::Format& format : formats::all()) {
    if (format.store == nullptr || format.make == nullptr) continue;
    Scenario scenario;
    scenario.steps = 3;
    scenario.format = format.name;
    scenario.variables = {{"u", *layout::Layout::block({6, 6}, 2), "levels=height:2,10"}};
    scenario.prepare();
    fail_every_call({{1, 1}, {1, 1}}, forecast, 0, 1e5, scenario, {storage::Fault::no_space});
  }
}

/// Behaves like a file of NFS whose server is out of space: bytes that no sync() covered are lost when it is
/// closed, and only close() tells.
class LosingFile final : public storage::File {
 public:
  explicit LosingFile(std::unique_ptr<File> below) : below_(std::move(below)) {}
  Status write_gathered(storage::Parts parts, Bytes offset) override {
    for (const auto& part : parts) {
      unsynced_.emplace_back(offset, ByteVector(part.begin(), part.end()));
      offset += static_cast<Bytes>(part.size());
    }
    return {};
  }
  Result<Bytes> read(std::span<std::byte> data, Bytes offset) override { return below_->read(data, offset); }
  Status sync() override {
    for (const auto& [offset, bytes] : unsynced_) TR_TRY(below_->write(bytes, offset));
    unsynced_.clear();
    return below_->sync();
  }
  Status truncate(Bytes size) override { return below_->truncate(size); }
  Result<Bytes> size() override { return below_->size(); }
  Status close() override {
    TR_TRY(below_->close());
    return unsynced_.empty() ? Status() : Status(Code::space, "close: no space left on device");
  }

 private:
  const std::unique_ptr<File> below_;
  std::vector<std::pair<Bytes, ByteVector>> unsynced_;
};

/// Loses bytes written to data files.
class LosingTarget final : public storage::MemoryTarget {
 public:
  LosingTarget() : MemoryTarget(false) {}
  Result<std::unique_ptr<storage::File>> open(const std::string& path, storage::OpenMode mode,
                                              unsigned permissions) override {
    Result<std::unique_ptr<storage::File>> file = MemoryTarget::open(path, mode, permissions);
    if (!file.is_ok() || mode != storage::OpenMode::existing || !path.ends_with(".raw")) return file;
    return std::unique_ptr<storage::File>(std::make_unique<LosingFile>(std::move(*file)));
  }
};

/// Two steps of many streams, each with a file of its own.
void forecast_in_streams(SessionRank& rank, const std::vector<Scenario>& scenarios, Arrays& arrays,
                         Status& status) {
  std::vector<std::unique_ptr<PlannedStream>> streams;
  for (const Scenario& scenario : scenarios) {
    streams.push_back(std::make_unique<PlannedStream>(rank, scenario.plan));
    status = first_cause(status, streams.back()->create());
  }
  for (std::int64_t step = 0; step < 2; ++step) {
    std::vector<float>& array = arrays[{step, 0}];
    array = array_of(*scenarios[0].plan, rank.rank(), 0, step);
    for (const auto& stream : streams) {
      stream->begin(step * 3600);
      stream->put(0, reinterpret_cast<const std::byte*>(array.data()));
      status = first_cause(status, stream->end());
    }
  }
  for (const auto& stream : streams) status = first_cause(status, stream->close());
}

TEST(sim_errors, a_durable_step_is_on_storage_however_many_files_wait_for_their_sync) {
  std::vector<Scenario> scenarios(40);
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    scenarios[i].pattern = cat("fc", i, ".raw");
    scenarios[i].variables = {{"t", *layout::Layout::block({4, 4}, 2), "levels=surface"}};
    scenarios[i].prepare();
  }
  for (const int servers : {0, 1}) {
    Job job;
    job.nodes = {{2, servers}};
    job.storage = std::make_shared<LosingTarget>();
    SessionWorld world(job);
    std::vector<Arrays> arrays(2);
    std::vector<Status> told(2);
    const Texts stuck = world.run([&](SessionRank& rank) {
      const auto me = static_cast<std::size_t>(rank.rank());
      forecast_in_streams(rank, scenarios, arrays[me], told[me]);
    });
    ASSERT_TRUE(stuck.empty()) << text_of(stuck);
    EXPECT_TRUE(told[0].is_ok()) << told[0].text();
    ByteVector expected = bytes_of_step(*scenarios[0].plan, 0);
    const ByteVector second = bytes_of_step(*scenarios[0].plan, 1);
    expected.insert(expected.end(), second.begin(), second.end());
    for (const Scenario& scenario : scenarios)
      EXPECT_TRUE(read_file(world.storage(), scenario.pattern) == expected)
          << servers << " servers: " << scenario.pattern;
  }
}

/// The n-th sync fails, of more files than may be open. The sync of that file returns the error, and no
/// other.
TEST(sim_errors, a_file_that_was_closed_before_its_sync_is_not_forgotten_to_have_failed) {
  constexpr int files = 200;
  const auto memory = storage::memory_target();
  for (int i = 0; i < files; ++i) ASSERT_TRUE(memory->open(cat(i), storage::OpenMode::create).is_ok());
  for (const auto call : {storage::Call::sync, storage::Call::close}) {
    for (const int nth : {1, 40, 72}) {
      const auto faulty =
          storage::faulty_target(memory, {nth, storage::Fault::io_error, storage::set_of(call)});
      pipeline::OpenFiles open(faulty);
      const ByteVector bytes(8, std::byte{1});
      const std::array<std::span<const std::byte>, 1> parts = {bytes};
      const std::array<storage::Extent, 1> extents = {{{0, parts}}};
      constexpr storage::MakeWriter make = storage::open_file_writer;
      for (int i = 0; i < files; ++i) ASSERT_TRUE(open.write(cat(i), make, 0, extents).is_ok());
      ASSERT_TRUE(faulty->fired());
      std::vector<int> failed;
      for (int i = 0; i < files; ++i) {
        if (!open.sync(cat(i), make, &storage::Writer::sync).is_ok()) failed.push_back(i);
      }
      EXPECT_EQ(failed, std::vector<int>{nth - 1});
      EXPECT_TRUE(open.sync(cat(nth - 1), make, &storage::Writer::sync).is_ok())
          << "what is written next goes through a new descriptor";
    }
  }
}

/// Threads use many files at once, more than may be open: each finds its own file, whoever closes it
/// meanwhile.
TEST(sim_errors, files_are_used_side_by_side_while_the_oldest_are_closed) {
  constexpr int files = 150;
  constexpr int rounds = 6;
  const auto memory = storage::memory_target();
  for (int i = 0; i < files; ++i) ASSERT_TRUE(memory->open(cat(i), storage::OpenMode::create).is_ok());
  pipeline::OpenFiles open(memory);
  const auto threads = std::move(*executor::Threads::create({0, 8}));
  std::atomic<int> failed = 0;
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < files; ++i) {
      threads->submit(executor::key_of(cat(i)), [&open, &failed, round, path = cat(i)] {
        const ByteVector bytes(8, static_cast<std::byte>(round));
        const std::array<std::span<const std::byte>, 1> parts = {bytes};
        const std::array<storage::Extent, 1> extents = {{{8 * round, parts}}};
        if (!open.write(path, storage::open_file_writer, round, extents).is_ok()) ++failed;
        if (round % 2 == 1 && !open.sync(path, storage::open_file_writer, &storage::Writer::sync).is_ok())
          ++failed;
        if (round == 3) open.forget(path);
      });
    }
  }
  threads->drain();
  EXPECT_EQ(failed, 0);
  ByteVector expected;
  for (int i = 0; i < 8 * rounds; ++i) expected.push_back(static_cast<std::byte>(i / 8));
  for (int i = 0; i < files; ++i) EXPECT_TRUE(read_file(*memory, cat(i)) == expected) << i;
}

/// What an outsider does to the file.
enum class Harm { cut_to_one_byte, cut_by_one_byte, removed };

void harm(storage::Target& target, const std::string& path, Harm how) {
  if (how == Harm::removed) {
    ASSERT_TRUE(target.remove(path).is_ok());
    return;
  }
  Result<std::unique_ptr<storage::File>> file = target.open(path, storage::OpenMode::existing);
  ASSERT_TRUE(file.is_ok()) << file.status().text();
  const Bytes size = how == Harm::cut_to_one_byte ? 1 : *(*file)->size() - 1;
  ASSERT_TRUE((*file)->truncate(size).is_ok());
}

/// Harms the file behind `good` durable steps.
void go_on_with_harm(SessionRank& rank, SessionWorld& world, const Scenario& scenario, Harm how,
                     std::int64_t good, Arrays& arrays, Told& told) {
  PlannedStream stream(rank, scenario.plan);
  static_cast<void>(stream.create());
  for (std::int64_t step = 0; step < scenario.steps; ++step) {
    stream.begin(step * 3600);
    for (std::size_t i = 0; i < scenario.variables.size(); ++i) {
      const int field = static_cast<int>(i);
      std::vector<float>& array = arrays[{step, field}];
      array = array_of(*scenario.plan, rank.rank(), field, step);
      stream.put(field, reinterpret_cast<const std::byte*>(array.data()));
    }
    told.ends.push_back(stream.end());
    if (step >= good) continue;
    const Status durable = stream.wait(true);
    EXPECT_TRUE(durable.is_ok()) << durable.text();
    if (step != good - 1) continue;
    rank.compute(1'000'000'000);
    if (rank.rank() == 0) harm(world.storage(), scenario.pattern, how);
    rank.compute(1'000'000'000);
  }
  told.waited = stream.wait(true);
  told.closed = stream.close();
  told.failures = stream.failures();
  // A rank that serves itself has the times of writing, also of those that never came to it.
  EXPECT_GE(rank.session().statistics().streams[scenario.pattern].write, 0);
}

TEST(sim_errors, a_file_that_is_cut_or_removed_in_mid_run_fails_each_later_step_and_the_close) {
  for (std::uint64_t seed = 1; seed <= seeds(60); ++seed) {
    Scheduler dice(seed * 31);
    const int ranks = static_cast<int>(dice.random(1, 4));
    Job job;
    job.nodes = random_nodes(dice, ranks, static_cast<int>(dice.random(0, 3)));
    job.seed = seed;
    Scenario scenario;
    scenario.variables = random_variables(dice, ranks);
    scenario.steps = 5;
    scenario.prepare();
    if (bytes_of_step(*scenario.plan, 0).size() < 2) continue;
    const auto how = static_cast<Harm>(dice.random(0, 2));
    const std::int64_t good = dice.random(1, scenario.steps);
    SessionWorld world(job);
    std::vector<Arrays> arrays(static_cast<std::size_t>(ranks));
    std::vector<Told> told(arrays.size());
    const Texts stuck = world.run([&](SessionRank& rank) {
      const auto me = static_cast<std::size_t>(rank.rank());
      go_on_with_harm(rank, world, scenario, how, good, arrays[me], told[me]);
    });
    const std::string where = cat("seed ", seed, ", harm ", static_cast<int>(how), " behind step ", good);
    ASSERT_TRUE(stuck.empty()) << where << text_of(stuck);
    for (const Told& each : told) expect_same(each, told[0], where);
    EXPECT_EQ(told[0].closed.code(), Code::corrupt) << where << ": " << told[0].closed.text();
    EXPECT_NE(told[0].closed.text().find(scenario.pattern), std::string::npos) << told[0].closed.text();
    for (std::int64_t step = 0; step < scenario.steps; ++step) {
      EXPECT_EQ(told[0].failures.count(step) != 0, step >= good) << where << ", step " << step;
    }
    // The lost data must not seem to be there again.
    const Result<streams::IndexContents> index =
        streams::load_index(world.storage(), streams::index_path(scenario.pattern));
    ASSERT_TRUE(index.is_ok()) << where << ": " << index.status().text();
    EXPECT_FALSE(index->closed) << where;
    EXPECT_LT(static_cast<Bytes>(read_file(world.storage(), scenario.pattern).size()), index->data_end())
        << where;
  }
}

}  // namespace errors_test
}  // namespace tailrace::sim
