// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Streams whose servers take offsets by themselves (method=offset_sharing). Worlds with an even seed have
// one-sided counters, the others count by messages.
#include <gtest/gtest.h>

#include "ground/base/text.hpp"
#include "scenario.hpp"

namespace tailrace::sim {
namespace offsets_test {

Scenario sharing(const std::string& pattern, const std::string& format, std::vector<Variable> variables) {
  Scenario scenario;
  scenario.pattern = pattern;
  scenario.format = format;
  scenario.method = "offset_sharing";
  scenario.variables = std::move(variables);
  scenario.prepare();
  return scenario;
}

/// Passes adds on, and counts them. One of them gets a value that is too high or too low: a planted mistake.
class Between final : public comm::Counters {
 public:
  struct Plan {
    std::int64_t adds = 0;   // so far, of all servers
    std::int64_t wrong = 0;  // number of the add that goes wrong, from 1
    std::int64_t by = 3;     // what it gets too much
    bool is_full = false;    // other streams have all counters
    int ends = 0;            // objects of this class so far
  };
  Between(std::unique_ptr<comm::Counters> under, Plan& plan) : under_(std::move(under)), plan_(plan) {
    ++plan_.ends;
    while (plan_.is_full && make().is_ok()) continue;
  }
  void set(int counter, std::int64_t value) override { under_->set(counter, value); }
  void add(int process, int counter, std::int64_t amount, Taken taken) override {
    const std::int64_t off = ++plan_.adds == plan_.wrong ? plan_.by : 0;
    under_->add(process, counter, amount,
                [taken = std::move(taken), off](std::int64_t before) { taken(before + off); });
  }
  bool poll() override { return under_->poll(); }
  [[nodiscard]] bool are_one_sided() const override { return true; }

 private:
  const std::unique_ptr<comm::Counters> under_;
  Plan& plan_;
};

TEST(sim_offsets, that_servers_take_leave_no_hole_for_any_ranks_servers_nodes_and_timing) {
  for (std::uint64_t seed = 1; seed <= seeds(80); ++seed) {
    Scheduler dice(seed * 4099);
    const int ranks = static_cast<int>(dice.random(1, 6));
    const int servers = static_cast<int>(dice.random(0, 5));
    Scenario scenario = sharing("fc.data", any_format(seed), random_variables(dice, ranks));
    scenario.steps = static_cast<int>(dice.random(1, 5));
    Job job;
    job.nodes = random_nodes(dice, ranks, servers);
    job.seed = seed / 2;
    job.threads = static_cast<int>(dice.random(1, 3));
    job.mixed = dice.once_in(2);
    job.disk_bytes_per_second = dice.once_in(3) ? 1e5 : 1e9;
    if (dice.once_in(3)) squeeze(job, *scenario.plan);
    expect_right_bytes(job, scenario, cat("seed ", seed, ", ", ranks, " ranks, ", servers, " servers: "));
    if (HasFatalFailure()) return;
  }
}

/// A layout of which rank `first` owns the first element, and the ranks before it nothing: its home is the
/// root of a stream with such fields.
layout::Layout owned_from(int first, int ranks) {
  std::vector<std::vector<Index>> own(static_cast<std::size_t>(ranks));
  for (Index i = 0; i < 60; ++i)
    own[static_cast<std::size_t>(first + static_cast<int>(i) % (ranks - first))].push_back(i);
  return *layout::Layout::indexed({60}, own);
}

constexpr std::int64_t steps_of_all = 3;

void put_in_all(SessionRank& rank, const std::vector<Scenario>& scenarios,
                std::map<std::pair<std::size_t, std::int64_t>, std::vector<float>>& arrays) {
  std::vector<std::unique_ptr<PlannedStream>> streams;
  for (const Scenario& each : scenarios) {
    streams.push_back(std::make_unique<PlannedStream>(rank, each.plan));
    const Status created = streams.back()->create();
    EXPECT_TRUE(created.is_ok()) << created.text();
  }
  for (std::int64_t step = 0; step < steps_of_all; ++step) {
    for (std::size_t i = 0; i < streams.size(); ++i) {
      streams[i]->begin(step * 3600);
      std::vector<float>& array = arrays[{i, step}];
      array = array_of(*scenarios[i].plan, rank.rank(), 0, step);
      streams[i]->put(0, reinterpret_cast<const std::byte*>(array.data()));
      const Status ended = streams[i]->end();
      EXPECT_TRUE(ended.is_ok()) << ended.text();
    }
  }
  for (const auto& stream : streams) {
    const Status closed = stream->close();
    EXPECT_TRUE(closed.is_ok()) << closed.text();
  }
}

/// Expects that `path` holds the step `only` of the scenario's steps, or all of them.
void expect_file(storage::Target& target, const Scenario& scenario, const std::string& path,
                 std::optional<std::int64_t> only, const std::string& where) {
  Scenario of_file = scenario;
  of_file.pattern = path;
  std::map<std::int64_t, std::string> others;
  for (std::int64_t step = 0; step < steps_of_all; ++step)
    if (only && step != *only) others[step] = "in another file";
  expect_committed(target, of_file, others, where);
}

/// Each stream has another root, and so its counter at another server. Every second one has a file for each
/// step.
TEST(sim_offsets, of_streams_with_different_roots_do_not_disturb_each_other) {
  constexpr int ranks = 4;
  for (std::uint64_t seed = 1; seed <= seeds(40); ++seed) {
    std::vector<Scenario> scenarios;
    for (int first = 0; first < ranks; ++first) {
      const std::string pattern =
          first % 2 == 0 ? cat("fc", first, ".data") : cat("fc", first, "_{lead:03h}.data");
      scenarios.push_back(sharing(pattern, "raw", {{"t", owned_from(first, ranks), "levels=hybrid:1-5"}}));
    }
    Job job;
    job.nodes = seed % 3 == 0 ? nodes_of(ranks, 2) : std::vector<NodeShape>{{2, 2}, {2, 1}};
    job.seed = seed;
    Between::Plan plan;
    job.around_counters = [&plan](std::unique_ptr<comm::Counters> own) {
      return std::make_unique<Between>(std::move(own), plan);
    };
    SessionWorld world(job);
    std::vector<std::map<std::pair<std::size_t, std::int64_t>, std::vector<float>>> arrays(ranks);
    const Texts stuck = world.run([&](SessionRank& rank) {
      put_in_all(rank, scenarios, arrays[static_cast<std::size_t>(rank.rank())]);
    });
    const std::string where = cat("seed ", seed, ": ");
    ASSERT_TRUE(stuck.empty()) << where << text_of(stuck);
    // One add for each chunk, of which a step of each stream has one at least.
    EXPECT_TRUE(seed % 2 == 1 ? plan.adds == 0 : plan.adds >= ranks * steps_of_all) << where << plan.adds;
    for (int first = 0; first < ranks; ++first) {
      const Scenario& scenario = scenarios[static_cast<std::size_t>(first)];
      for (std::int64_t step = 0; step < (first % 2 == 0 ? 1 : steps_of_all); ++step) {
        const bool is_one = first % 2 == 0;
        expect_file(world.storage(), scenario,
                    is_one ? scenario.pattern : cat("fc", first, "_00", step, ".data"),
                    is_one ? std::nullopt : std::optional(step), where);
      }
    }
  }
}

/// Runs a forecast one of whose adds goes wrong. Returns the number of failed steps.
int failed_steps(const Scenario& scenario, std::int64_t wrong, std::int64_t by) {
  Job job;
  job.nodes = {{2, 2}};
  job.seed = static_cast<std::uint64_t>(2 * wrong);
  Between::Plan plan{.wrong = wrong, .by = by};
  job.around_counters = [&plan](std::unique_ptr<comm::Counters> own) {
    return std::make_unique<Between>(std::move(own), plan);
  };
  SessionWorld world(job);
  std::vector<Arrays> arrays(2);
  std::vector<Told> told(2);
  const Texts stuck = world.run([&](SessionRank& rank) {
    const auto me = static_cast<std::size_t>(rank.rank());
    patient_forecast(rank, scenario, arrays[me], told[me]);
  });
  const std::string where = cat("add ", wrong, " by ", by, ": ");
  EXPECT_TRUE(stuck.empty()) << where << text_of(stuck);
  if (!stuck.empty()) return 0;
  for (const Told& each : told) expect_same(each, told[0], where);
  EXPECT_EQ(told[0].failures.size(), wrong <= plan.adds ? 1U : 0U) << where;
  for (const auto& [step, text] : told[0].failures)
    EXPECT_NE(text.find("offsets are wrong"), std::string::npos) << where << text;
  expect_committed(world.storage(), scenario, told[0].failures, where);
  return static_cast<int>(told[0].failures.size());
}

/// Whatever goes wrong with a counter, no step is durable that has bytes which nobody has written, and no
/// byte of a durable step is written again.
TEST(sim_offsets, that_are_wrong_fail_their_step_and_no_other) {
  const Scenario scenario =
      sharing("fc.data", "raw", {{"t", *layout::Layout::block({6, 6}, 2), "levels=hybrid:1-4"}});
  for (const std::int64_t by : {3, -3, -200}) {
    int failed = 0;
    for (std::int64_t wrong = 1; wrong <= 12; ++wrong) failed += failed_steps(scenario, wrong, by);
    EXPECT_GT(failed, 3) << by;
  }
}

TEST(sim_offsets, of_a_stream_that_gets_no_counter_fail_each_step_on_all_ranks) {
  const Scenario scenario =
      sharing("fc.data", "raw", {{"t", *layout::Layout::block({6, 6}, 2), "levels=hybrid:1-4"}});
  Job job;
  job.nodes = {{2, 2}};
  job.seed = 2;
  Between::Plan plan{.is_full = true};
  job.around_counters = [&plan](std::unique_ptr<comm::Counters> own) {
    return std::make_unique<Between>(std::move(own), plan);
  };
  SessionWorld world(job);
  std::vector<Arrays> arrays(2);
  std::vector<Told> told(2);
  const Texts stuck = world.run([&](SessionRank& rank) {
    const auto me = static_cast<std::size_t>(rank.rank());
    patient_forecast(rank, scenario, arrays[me], told[me]);
  });
  ASSERT_TRUE(stuck.empty()) << text_of(stuck);
  for (const Told& each : told) expect_same(each, told[0], "");
  EXPECT_EQ(static_cast<std::int64_t>(told[0].failures.size()), scenario.steps);
  for (const auto& [step, text] : told[0].failures) {
    EXPECT_NE(text.find("stream fc.data, step at"), std::string::npos) << text;
    EXPECT_NE(text.find("method=offset_sharing: one process keeps 4096 counters at most"), std::string::npos)
        << text;
  }
  EXPECT_EQ(plan.adds, 0);
}

/// A format with places for records needs no counters, and so no window of MPI.
TEST(sim_offsets, are_not_counted_in_formats_with_places) {
  for (const char* const format : {"cdf5", "raw"}) {
    Job job;
    job.nodes = {{2, 2}};
    job.seed = 2;
    Between::Plan plan;
    job.around_counters = [&plan](std::unique_ptr<comm::Counters> own) {
      return std::make_unique<Between>(std::move(own), plan);
    };
    expect_right_bytes(
        job, sharing("fc.data", format, {{"t", *layout::Layout::block({6, 6}, 2), "levels=hybrid:1-4"}}),
        cat(format, ": "));
    EXPECT_EQ(plan.ends, std::string(format) == "raw" ? 2 : 0) << format;
  }
}

/// The report knows streams by their names: what it tells of the method is that of the last stream.
TEST(sim_offsets, a_stream_of_the_same_name_does_not_inherit_how_the_method_was_chosen) {
  const std::vector<Variable> variables = {{"t", *layout::Layout::block({6, 6}, 2), "levels=surface"}};
  std::vector<std::shared_ptr<const StreamPlan>> plans;
  for (const char* const method : {"auto", "offset_sharing", "scan"})
    plans.push_back(*StreamPlan::make(
        "fc.data", cat("base=2026-03-01 format=raw existing=replace method=", method), variables));
  Job job;
  job.nodes = {{2, 2}};
  job.seed = 2;
  std::vector<pipeline::Statistics> told;
  job.on_server = [&told](session::Session& session) {
    return std::shared_ptr<void>(&told, [&session, &told](void*) { told.push_back(session.statistics()); });
  };
  SessionWorld world(job);
  const Texts stuck = world.run([&](SessionRank& rank) {
    for (const auto& plan : plans) {
      PlannedStream stream(rank, plan);
      EXPECT_TRUE(stream.create().is_ok());
      const std::vector<float> array = array_of(*plan, rank.rank(), 0, 0);
      stream.begin(0);
      stream.put(0, reinterpret_cast<const std::byte*>(array.data()));
      EXPECT_TRUE(stream.end().is_ok());
      EXPECT_TRUE(stream.close().is_ok());
    }
  });
  ASSERT_TRUE(stuck.empty()) << text_of(stuck);
  ASSERT_EQ(told.size(), 2U);
  for (const pipeline::Statistics& server : told) {
    EXPECT_TRUE(server.why_method.empty());
    const pipeline::Counters& counters = server.streams.at("fc.data");
    EXPECT_EQ(pipeline::methods()[static_cast<std::size_t>(counters.method)].name, "scan");
    EXPECT_EQ(static_cast<pipeline::OffsetsBy>(counters.offsets), pipeline::OffsetsBy::none);
  }
}

/// Servers hear of a step once it has a record: without one it has no file.
TEST(sim_offsets, a_step_without_records_begins_no_file) {
  Scenario scenario =
      sharing("fc_{lead:03h}.data", "raw", {{"t", *layout::Layout::block({6, 6}, 2), "levels=surface"}});
  scenario.plan =
      *StreamPlan::make(scenario.pattern, "base=2026-03-01 method=offset_sharing format=raw empty_step=keep",
                        scenario.variables);
  Job job;
  job.nodes = {{2, 2}};
  SessionWorld world(job);
  const Texts stuck = world.run([&](SessionRank& rank) {
    PlannedStream stream(rank, scenario.plan);
    EXPECT_TRUE(stream.create().is_ok());
    const std::vector<float> array = array_of(*scenario.plan, rank.rank(), 0, 1);
    for (std::int64_t step = 0; step < 2; ++step) {
      stream.begin(step * 3600);
      if (step == 1) stream.put(0, reinterpret_cast<const std::byte*>(array.data()));
      const Status ended = stream.end();
      EXPECT_TRUE(ended.is_ok()) << ended.text();
    }
    EXPECT_TRUE(stream.wait(true).is_ok());
    EXPECT_TRUE(stream.close().is_ok());
  });
  ASSERT_TRUE(stuck.empty()) << text_of(stuck);
  EXPECT_TRUE(read_file(world.storage(), "fc_000.data").empty());
  EXPECT_FALSE(read_file(world.storage(), "fc_001.data").empty());
}

}  // namespace offsets_test
}  // namespace tailrace::sim
