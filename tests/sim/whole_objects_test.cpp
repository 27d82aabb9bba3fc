// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Streams into a place that takes each object as a whole, which no folder of the library names: the test adds
// the row. Index, lock and manifest lie there, too.
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "engine/pipeline/method.hpp"
#include "formats/stores/stores.hpp"
#include "ground/base/text.hpp"
#include "scenario.hpp"
#include "support/bucket_service.hpp"

namespace tailrace::sim {
namespace whole_objects_test {

using storage::BucketService;
using storage::keyed_places;
using storage::Target;

constexpr std::int64_t kHalfDay = 43200;
const std::string place = "keyed://run/out/";

class SimWholeObjects : public testing::Test {
 protected:
  void SetUp() override {
    keyed_places().clear();
    keyed_places().restart({});
  }
};

bool writes_zarr() {
  const Result<const formats::Format*> zarr = formats::find("zarr");
  return zarr.is_ok() && (*zarr)->make != nullptr;
}

struct Heard {
  Told told;
  Uuid run;
};

/// What happens elsewhere before a step of a run, whose steps before are durable by then.
struct Meanwhile {
  std::int64_t step = -1;
  std::function<void()> happens{};
};

Heard run(const Job& job, const std::shared_ptr<const StreamPlan>& plan, std::int64_t first, std::int64_t end,
          const Meanwhile& meanwhile = {}) {
  SessionWorld world(job);
  std::vector<Arrays> arrays(static_cast<std::size_t>(world.ranks()));
  std::vector<Heard> heard(arrays.size());
  const Texts stuck = world.run([&](SessionRank& rank) {
    const auto me = static_cast<std::size_t>(rank.rank());
    Told& told = heard[me].told;
    PlannedStream stream(rank, plan);
    told.created = stream.create();
    if (!told.created.is_ok()) return;
    heard[me].run = stream.position().run;
    for (std::int64_t step = first; step < end; ++step) {
      if (step == meanwhile.step) {
        EXPECT_TRUE(stream.wait(true).is_ok());
        if (rank.rank() == 0) meanwhile.happens();
      }
      stream.begin(step * kHalfDay);
      for (std::size_t i = 0; i < plan->fields.size(); ++i) {
        std::vector<float>& array = arrays[me][{step, static_cast<int>(i)}];
        array = array_of(*plan, rank.rank(), static_cast<int>(i), step);
        stream.put(static_cast<int>(i), reinterpret_cast<const std::byte*>(array.data()));
      }
      told.ends.push_back(stream.end());
    }
    told.waited = stream.wait(true);
    told.closed = stream.close();
    told.failures = stream.failures();
  });
  EXPECT_TRUE(stuck.empty()) << text_of(stuck);
  for (std::size_t rank = 1; rank < heard.size(); ++rank)
    expect_same(heard[0].told, heard[rank].told, cat("rank ", rank));
  return heard[0];
}

/// The data of all files of a run, and what their indexes say, without the run's identity and the manifest.
struct Left {
  struct Index {
    streams::IndexHeader header;
    std::vector<streams::IndexStep> steps;
    bool closed = false;
    friend bool operator==(const Index&, const Index&) = default;
  };
  std::map<std::string, ByteVector> data;
  std::map<std::string, Index> indexes;
  friend bool operator==(const Left&, const Left&) = default;
};

/// Looks at what is there, as a program that is started now. What an index tells of must be whole.
Left left_there() {
  const auto target = stores::with_stores(storage::memory_target());
  Left left;
  const auto names = target->list(place);
  if (!names.is_ok()) return left;
  for (const std::string& name : *names) {
    if (stores::is_store(name)) left.data[name] = read_file(*target, place + name);
    if (!name.ends_with(".trx")) continue;
    Result<streams::IndexContents> index = streams::load_index(*target, place + name);
    EXPECT_TRUE(index.is_ok()) << index.status().text();
    if (!index.is_ok()) continue;
    const std::string data = place + name.substr(0, name.size() - 4);
    if (!index->steps.empty() && *target->exists(data)) {
      const Status holds =
          storage::check_holds(*target, data, index->data_end(), streams::ranges_of(index->steps));
      EXPECT_TRUE(holds.is_ok()) << holds.text();
    }
    index->header.run = {};
    left.indexes[name] = {std::move(index->header), std::move(index->steps), index->closed};
  }
  return left;
}

/// Returns how many steps, one after the other from the first on, the indexes tell of.
std::int64_t steps_told() {
  std::set<std::int64_t> leads;
  for (const auto& [name, index] : left_there().indexes) {
    for (const streams::IndexStep& step : index.steps) leads.insert(step.lead);
  }
  std::int64_t steps = 0;
  while (leads.contains(steps * kHalfDay)) ++steps;
  return steps;
}

/// Runs the scenario, and returns what the ranks were told, which is the same.
Told told_by(const Job& job, const Scenario& scenario, bool patient = false) {
  SessionWorld world(job);
  std::vector<Arrays> arrays(static_cast<std::size_t>(world.ranks()));
  std::vector<Told> told(arrays.size());
  const Texts stuck = world.run([&](SessionRank& rank) {
    const auto me = static_cast<std::size_t>(rank.rank());
    (patient ? patient_forecast : forecast)(rank, scenario, arrays[me], told[me]);
  });
  EXPECT_EQ(stuck, Texts());
  for (std::size_t rank = 1; rank < told.size(); ++rank) expect_same(told[0], told[rank], cat("rank ", rank));
  return told[0];
}

/// Expects that the store has the same objects with the same bytes as one that the same stream has written
/// into files.
void expect_objects_of_files(const Job& job, Scenario scenario) {
  scenario.pattern = "fc.zarr";
  scenario.prepare();
  EXPECT_TRUE(told_by(job, scenario).closed.is_ok());
  int same = 0;
  for (const auto& [name, bytes] : keyed_places().all()) {
    const std::string key = name.substr(place.size());
    if (!key.starts_with("fc.zarr/") || key.ends_with("/.tailrace.made")) continue;
    const auto file = job.storage->open(key, storage::OpenMode::read);
    ASSERT_TRUE(file.is_ok()) << file.status().text();
    ByteVector found(static_cast<std::size_t>(*(*file)->size()));
    EXPECT_TRUE((*file)->read(found, 0).is_ok());
    EXPECT_TRUE(found == bytes) << key;
    ++same;
  }
  EXPECT_GT(same, 10);
}

Scenario scenario_of(std::uint64_t seed, int ranks, const std::string& method) {
  Scheduler dice(seed);
  Scenario scenario;
  scenario.format = "zarr";
  scenario.pattern = place + "fc";
  scenario.method = method;
  scenario.variables = random_variables(dice, ranks);
  scenario.prepare();
  return scenario;
}

TEST_F(SimWholeObjects, get_from_a_stream_what_files_get) {
  if (!writes_zarr()) GTEST_SKIP();
  Job job;
  for (const std::vector<NodeShape>& nodes :
       {nodes_of(3, 2), std::vector<NodeShape>{{2, 1}, {1, 2}}, std::vector<NodeShape>{{3, 3}}}) {
    job.nodes = nodes;
    for (const std::string method : {"", "serial", "writer"}) {
      SCOPED_TRACE(cat("method=", method));
      keyed_places().clear();
      const Scenario scenario = scenario_of(7, 3, method);
      const Told told = told_by(job, scenario);
      EXPECT_TRUE(told.closed.is_ok()) << told.created.text() << told.closed.text();
      const auto storage = stores::with_stores(job.storage);
      expect_committed(*storage, scenario, {}, "committed");
      // Nobody holds a lock any more, and nothing else is left beside the store.
      EXPECT_EQ(*storage->list(place), (Texts{"fc.zarr", "fc.zarr.trx", "manifest.jsonl"}));
      expect_objects_of_files(job, scenario);
    }
  }
}

TEST_F(SimWholeObjects, are_refused_to_methods_by_which_several_servers_write_one_object) {
  if (!writes_zarr()) GTEST_SKIP();
  Job job;
  job.nodes = {{2, 2}};
  int refused = 0;
  for (const pipeline::Method& method : pipeline::methods()) {
    if (method.has_one_writer()) continue;
    const Told told = told_by(job, scenario_of(7, 2, std::string(method.name)));
    // A store is refused to mpiio wherever it lies, and scenarios take another method then.
    if (method.is_collective) continue;
    EXPECT_EQ(told.created.code(), Code::unsupported) << method.name;
    EXPECT_NE(told.created.text().find("method=serial or method=writer"), std::string::npos)
        << told.created.text();
    ++refused;
  }
  EXPECT_GE(refused, 2);
}

TEST_F(SimWholeObjects, have_the_method_of_one_writer_where_none_is_chosen_and_errors_name_it) {
  if (!writes_zarr()) GTEST_SKIP();
  const auto plan = StreamPlan::make(place + "fc.zarr", "base=2026-03-01 format=zarr mpiio_hints=a=b",
                                     {{"t", *layout::Layout::replicated({2}, 1), "levels=hybrid:1-2"}});
  Job job;
  job.nodes = nodes_of(1, 1);
  const Status refused = plan.is_ok() ? run(job, *plan, 0, 1).told.created : plan.status();
  EXPECT_EQ(refused.code(), Code::settings);
  EXPECT_NE(refused.text().find("the stream has method=writer"), std::string::npos) << refused.text();
}

TEST_F(SimWholeObjects, are_no_place_for_files_that_are_written_piece_by_piece) {
  const auto raw = StreamPlan::make(place + "fc.data", "base=2026-03-01 format=raw",
                                    {{"t", *layout::Layout::replicated({2}, 1), "levels=hybrid:1-2"}});
  Job job;
  job.nodes = nodes_of(1, 1);
  const Status refused = raw.is_ok() ? run(job, *raw, 0, 1).told.created : raw.status();
  EXPECT_EQ(refused.code(), Code::settings);
  EXPECT_NE(refused.text().find("format=zarr"), std::string::npos) << refused.text();
  const auto program = *storage::make_target_of_program("posix");
  const Status checkpoint = program->open(place + "state", storage::OpenMode::keep).status();
  EXPECT_EQ(checkpoint.code(), Code::unsupported);
  EXPECT_NE(checkpoint.text().find("keyed"), std::string::npos) << checkpoint.text();
}

streams::Position position_behind(const StreamPlan& plan, const Uuid& run, std::int64_t steps) {
  streams::Position position;
  position.pattern = plan.pattern;
  position.run = run;
  position.steps = steps;
  if (steps > 0) position.lead = position.put_lead = (steps - 1) * kHalfDay;
  return position;
}

struct Forecast {
  Job job;
  std::shared_ptr<const StreamPlan> plan;
  std::int64_t end = 0;
};

Forecast random_forecast(std::uint64_t seed, const std::string& options) {
  Scheduler dice(seed * 7919);
  const int ranks = static_cast<int>(dice.random(1, 3));
  Forecast made;
  made.job.nodes = random_nodes(dice, ranks, static_cast<int>(dice.random(0, 3)));
  made.job.seed = seed;
  const auto plan =
      StreamPlan::make(place + "fc_{valid:%Y%m%d}.zarr", cat("base=2026-03-01 format=zarr ", options),
                       random_variables(dice, ranks));
  EXPECT_TRUE(plan.is_ok()) << plan.status().text();
  made.plan = *plan;
  made.end = dice.random(2, 6);
  return made;
}

/// Runs from a checkpoint write a closed file anew, in a second store that takes the place of the first: that
/// is killed, too.
TEST_F(SimWholeObjects, that_killed_runs_have_left_are_continued_to_the_bytes_of_an_undisturbed_one) {
  if (!writes_zarr()) GTEST_SKIP();
  std::uint64_t continued = 0;
  int killed_again = 0;
  for (std::uint64_t seed = 1; seed <= seeds(120); ++seed) {
    const Forecast one = random_forecast(seed, "");
    Scheduler dice(seed);
    keyed_places().clear();
    keyed_places().restart({});
    run(one.job, one.plan, 0, one.end);
    const Left truth = left_there();
    const std::int64_t changes = keyed_places().changes();

    keyed_places().clear();
    keyed_places().restart({dice.random(1, changes + 20), true, seed % 2 == 0});
    const Heard first = run(one.job, one.plan, 0, one.end);
    keyed_places().restart({});
    if (!first.told.created.is_ok()) continue;  // there is nothing to continue
    std::int64_t durable = 0;
    while (durable < one.end && first.told.failures.count(durable) == 0) ++durable;
    auto plan = std::make_shared<StreamPlan>(*one.plan);
    plan->resume = position_behind(*plan, first.run, dice.random(0, durable));
    const std::string where = cat("seed ", seed, ", behind ", plan->resume->steps, " of ", one.end);
    SCOPED_TRACE(where);
    left_there();
    keyed_places().restart({dice.random(1, changes), true, seed % 2 == 0});
    run(one.job, plan, plan->resume->steps, one.end);
    if (keyed_places().has_failed()) ++killed_again;
    keyed_places().restart({});
    left_there();
    const Told last = run(one.job, plan, plan->resume->steps, one.end).told;
    EXPECT_TRUE(last.created.is_ok()) << last.created.text();
    EXPECT_TRUE(last.failures.empty()) << last.failures.begin()->second;
    EXPECT_TRUE(last.closed.is_ok()) << last.closed.text();
    ASSERT_TRUE(left_there() == truth);
    ++continued;
  }
  EXPECT_GT(continued, seeds(80));
  EXPECT_GT(killed_again, 10);
}

TEST_F(SimWholeObjects, that_a_killed_run_has_left_are_continued_without_a_checkpoint_too) {
  if (!writes_zarr()) GTEST_SKIP();
  for (std::uint64_t seed = 1; seed <= seeds(100); ++seed) {
    const Forecast one = random_forecast(seed, "existing=continue");
    Scheduler dice(seed);
    keyed_places().clear();
    keyed_places().restart({});
    run(one.job, one.plan, 0, one.end);
    const Left truth = left_there();
    const std::int64_t changes = keyed_places().changes();

    keyed_places().clear();
    keyed_places().restart({dice.random(1, changes), true, seed % 2 == 0});
    const bool is_created = run(one.job, one.plan, 0, one.end).told.created.is_ok();
    keyed_places().restart({});
    if (!is_created) continue;
    const std::int64_t first = steps_told();
    const Told second = run(one.job, one.plan, first, one.end).told;
    SCOPED_TRACE(cat("seed ", seed, ", behind ", first, " of ", one.end));
    EXPECT_TRUE(second.failures.empty()) << second.failures.begin()->second;
    EXPECT_TRUE(second.closed.is_ok()) << second.closed.text();
    ASSERT_TRUE(left_there() == truth);
  }
}

/// A run is stopped for a time. Somebody takes it for dead and removes its locks, and another run goes on in
/// its place to the end. Then the first one wakes.
TEST_F(SimWholeObjects, of_a_run_that_has_taken_the_place_of_another_stay_as_they_are_when_that_wakes) {
  if (!writes_zarr()) GTEST_SKIP();
  constexpr std::int64_t stopped = 3, end = 6;
  for (const std::string pattern : {"fc.zarr", "fc_{valid:%Y%m%d}.zarr"}) {
    for (const std::string more : {"existing=continue", "existing=replace"}) {
      SCOPED_TRACE(cat(pattern, " ", more));
      const auto plan = StreamPlan::make(place + pattern, cat("base=2026-03-01 format=zarr ", more),
                                         {{"t", *layout::Layout::block({6, 6}, 2), "levels=hybrid:1-2"}});
      ASSERT_TRUE(plan.is_ok()) << plan.status().text();
      const bool continues = more == "existing=continue";
      Job job;
      job.nodes = nodes_of(2, 1);
      keyed_places().clear();
      if (continues) EXPECT_TRUE(run(job, *plan, 0, stopped).told.closed.is_ok());
      EXPECT_TRUE(run(job, *plan, continues ? stopped : 0, end).told.closed.is_ok());
      const auto theirs = keyed_places().all();

      keyed_places().clear();
      keyed_places().restart({});
      const Told woken = run(job, *plan, 0, end,
                             {stopped,
                              [&] {
                                keyed_places().replace_all(theirs);
                                keyed_places().restart({});
                              }})
                             .told;
      EXPECT_EQ(keyed_places().changes(), 0);
      EXPECT_TRUE(keyed_places().all() == theirs);
      for (std::int64_t step = stopped; step < end; ++step)
        EXPECT_TRUE(woken.failures.contains(step)) << step;
      EXPECT_FALSE(woken.closed.is_ok());
    }
  }
}

/// The other run puts the index between this run's look at it and its put.
TEST_F(SimWholeObjects, that_are_an_index_are_lost_for_good_to_the_run_that_comes_second) {
  if (!writes_zarr()) GTEST_SKIP();
  const auto plan = StreamPlan::make(place + "fc.zarr", "base=2026-03-01 format=zarr",
                                     {{"t", *layout::Layout::replicated({2}, 1), "levels=hybrid:1-2"}});
  Job job;
  job.nodes = nodes_of(1, 1);
  EXPECT_TRUE(run(job, *plan, 0, 2).told.closed.is_ok());
  const std::string path = place + "fc.zarr.trx";
  const auto target = stores::with_stores(storage::memory_target());
  Result<streams::IndexWriter> index = streams::IndexWriter::open_existing(*target, path);
  ASSERT_TRUE(index.is_ok()) << index.status().text();
  const streams::IndexStep step{2, 2 * kHalfDay, index->data_end(), index->data_end(), {}};
  const Status appended = index->append(step);
  ASSERT_TRUE(appended.is_ok()) << appended.text();
  auto theirs = keyed_places().all();
  std::swap(theirs.at(path).back(), theirs.at(path).front());  // of the same size
  keyed_places().replace_all(theirs);
  EXPECT_EQ(index->sync().code(), Code::state);
  EXPECT_EQ(index->lost().code(), Code::state);
  EXPECT_EQ(index->append(step).code(), Code::state);
  EXPECT_TRUE(keyed_places().all() == theirs);
}

TEST_F(SimWholeObjects, have_one_run_at_a_time) {
  if (!writes_zarr()) GTEST_SKIP();
  const auto plan = StreamPlan::make(place + "fc.zarr", "base=2026-03-01 format=zarr",
                                     {{"t", *layout::Layout::block({6, 6}, 2), "levels=hybrid:1-2"}});
  Job job;
  job.nodes = nodes_of(2, 1);
  for (const std::string lock : {"fc.zarr.lock", "fc.zarr.stream.lock"}) {
    keyed_places().clear();
    const std::string text = "tailrace lock: elsewhere boot pid:[1] 1 1 6f1c0d2e\n";
    const storage::ObjectService::Object object{place + lock, std::as_bytes(std::span(text))};
    ASSERT_TRUE(keyed_places().put({&object, 1}).is_ok());
    const Told second = run(job, *plan, 0, 2).told;
    EXPECT_TRUE(!second.created.is_ok() || second.failures.size() == 2);
    const std::string why = second.failures.empty() ? second.created.text() : second.failures.begin()->second;
    EXPECT_NE(why.find("elsewhere"), std::string::npos) << lock << ": " << why;
    EXPECT_EQ(keyed_places().all().at(place + lock).size(), text.size());
    EXPECT_FALSE(keyed_places().all().contains(place + "fc.zarr/zarr.json"));
  }
}

TEST_F(SimWholeObjects, that_have_no_room_for_a_time_get_the_step_if_the_stream_waits) {
  if (!writes_zarr()) GTEST_SKIP();
  for (const bool waits : {true, false}) {
    const auto plan = StreamPlan::make(
        place + "fc.zarr", cat("base=2026-03-01 format=zarr on_full=", waits ? "wait:1h" : "fail"),
        {{"t", *layout::Layout::block({6, 6}, 2), "levels=hybrid:1-2"}});
    ASSERT_TRUE(plan.is_ok()) << plan.status().text();
    Job job;
    job.nodes = nodes_of(2, 1);
    keyed_places().clear();
    keyed_places().restart({});
    const Told told = run(job, *plan, 0, 3,
                          {1,
                           [&] {
                             keyed_places().restart({1, false, false, ENOSPC});
                           }})
                          .told;
    EXPECT_TRUE(keyed_places().has_failed());
    EXPECT_EQ(told.failures.size(), waits ? 0U : 1U);
    keyed_places().restart({});
    EXPECT_EQ(left_there().indexes["fc.zarr.trx"].steps.size(), waits ? 3U : 2U);
  }
}

/// The step fails, or the failure changes nothing; the steps behind it go on.
TEST_F(SimWholeObjects, of_which_one_cannot_be_put_lose_its_step_at_most) {
  if (!writes_zarr()) GTEST_SKIP();
  const Scenario scenario = scenario_of(3, 2, "");
  Job job;
  job.nodes = {{1, 1}, {1, 1}};
  int failed = 0, created = 0;
  bool fired = true;
  for (std::int64_t nth = 1; fired; ++nth) {
    for (const bool is_made_yet : {false, true}) {
      SCOPED_TRACE(cat("change ", nth, is_made_yet ? ", made" : ", not made"));
      keyed_places().clear();
      keyed_places().restart({nth, false, is_made_yet});
      const Told told = told_by(job, scenario, true);
      fired = keyed_places().has_failed();
      keyed_places().restart({});
      EXPECT_LE(told.failures.size(), 1U);
      EXPECT_TRUE(fired || (told.created.is_ok() && told.failures.empty()));
      if (!told.created.is_ok()) continue;
      ++created;
      if (!told.failures.empty()) ++failed;
      EXPECT_TRUE(told.closed.is_ok() || fired) << told.closed.text();
      if (told.closed.is_ok())
        expect_committed(*stores::with_stores(job.storage), scenario, told.failures, "committed");
    }
  }
  EXPECT_GT(failed, 5);
  EXPECT_GT(created, failed);
}

}  // namespace whole_objects_test
}  // namespace tailrace::sim
