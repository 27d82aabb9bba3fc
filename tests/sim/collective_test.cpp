// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Streams whose servers write together (method=mpiio). The simulated world throws if servers come to
// different calls, and a test hangs if one does not come.
#include <gtest/gtest.h>

#include "ground/base/text.hpp"
#include "scenario.hpp"

namespace tailrace::sim {
namespace collective_test {

Scenario together(const std::string& pattern, const std::string& format, std::vector<Variable> variables,
                  const std::string& more = "", const std::string& method = "mpiio") {
  Scenario scenario;
  scenario.pattern = pattern;
  scenario.format = format;
  scenario.method = method;
  scenario.variables = std::move(variables);
  scenario.prepare();
  if (!more.empty())
    scenario.plan = *StreamPlan::make(scenario.pattern,
                                      cat("base=2026-03-01 method=", method, " format=", format, " ", more),
                                      scenario.variables);
  return scenario;
}

/// A layout of which rank `first` owns the first element, and the ranks before it nothing: it is the
/// reference of a stream with such fields, and its home the root.
layout::Layout layout_from(int first, int ranks) {
  std::vector<std::vector<Index>> own(static_cast<std::size_t>(ranks));
  for (Index i = 0; i < 60; ++i)
    own[static_cast<std::size_t>(first + static_cast<int>(i) % (ranks - first))].push_back(i);
  return *layout::Layout::indexed({60}, own);
}

void put_all(SessionRank& rank, const std::vector<Scenario>& scenarios,
             std::map<std::pair<std::size_t, std::int64_t>, std::vector<float>>& arrays) {
  std::vector<std::unique_ptr<PlannedStream>> streams;
  for (const Scenario& each : scenarios) {
    streams.push_back(std::make_unique<PlannedStream>(rank, each.plan));
    const Status created = streams.back()->create();
    EXPECT_TRUE(created.is_ok()) << created.text();
  }
  for (std::int64_t step = 0; step < 3; ++step) {
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

/// Each stream has another root, and the roots decide side by side.
TEST(sim_collective, calls_of_streams_with_different_roots_have_one_order) {
  constexpr int ranks = 4;
  for (std::uint64_t seed = 1; seed <= seeds(40); ++seed) {
    const bool appends = seed % 2 == 0;  // in any order: only the size of a file is known
    const auto expect_file = [&](const SessionWorld& world, const std::string& path,
                                 const ByteVector& expected) {
      const ByteVector found = read_file(world.storage(), path);
      EXPECT_EQ(found.size(), expected.size()) << path;
      EXPECT_TRUE(appends || found == expected) << path;
    };
    std::vector<Scenario> scenarios;
    for (int first = 0; first < ranks; ++first) {
      const std::string pattern =
          first % 2 == 0 ? cat("fc", first, ".data") : cat("fc", first, "_{lead:03h}.data");
      scenarios.push_back(together(pattern, appends ? "raw" : "cdf5",
                                   {{"t", layout_from(first, ranks), "levels=hybrid:1-3"}}, "",
                                   appends ? "mpiio_shared" : "mpiio"));
    }
    Job job;
    job.nodes = seed % 3 == 0 ? nodes_of(ranks, 2) : std::vector<NodeShape>{{2, 2}, {2, 1}};
    job.seed = seed;
    SessionWorld world(job);
    std::vector<std::map<std::pair<std::size_t, std::int64_t>, std::vector<float>>> arrays(ranks);
    const Texts stuck = world.run(
        [&](SessionRank& rank) { put_all(rank, scenarios, arrays[static_cast<std::size_t>(rank.rank())]); });
    ASSERT_TRUE(stuck.empty()) << "seed " << seed << ": " << text_of(stuck);
    for (int first = 0; first < ranks; ++first) {
      const StreamPlan& plan = *scenarios[static_cast<std::size_t>(first)].plan;
      if (first % 2 == 0) {
        expect_file(world, cat("fc", first, ".data"), bytes_of_file(plan, {0, 1, 2}));
        continue;
      }
      for (std::int64_t step = 0; step < 3; ++step)
        expect_file(world, cat("fc", first, "_00", step, ".data"), bytes_of_file(plan, {step}));
    }
    // Open, round (or one seek), sync and close at least: of one file with three steps, and of three with
    // one.
    EXPECT_GE(world.collective_calls(), 2 * (1 + (appends ? 1 + 3 : 3 * 2) + 1) + 2 * 3 * 4);
  }
}

/// The n-th write finds no space, for each n, on each server. The stream waits, and the round is made again.
TEST(sim_collective, a_round_without_space_is_made_again_by_all_servers) {
  const Scenario scenario = together(
      "fc.data", "cdf5", {{"t", *layout::Layout::block({6, 6}, 2), "levels=hybrid:1-3"}}, "on_full=wait:1h");
  for (int victim = 0; victim < 2; ++victim) {
    for (int n = 1;; n += std::getenv("TEST_ALL") != nullptr ? 1 : 3) {
      Job job;
      job.nodes = {{2, 2}};
      job.seed = static_cast<std::uint64_t>(100 * victim + n);
      SessionWorld world(job);
      world.storage_of(victim).restart({n, storage::Fault::no_space, storage::set_of(storage::Call::write)});
      std::vector<Arrays> arrays(2);
      std::vector<Told> told(2);
      const Texts stuck = world.run([&](SessionRank& rank) {
        const auto me = static_cast<std::size_t>(rank.rank());
        patient_forecast(rank, scenario, arrays[me], told[me]);
      });
      ASSERT_TRUE(stuck.empty()) << "call " << n << ": " << text_of(stuck);
      for (const Told& each : told) expect_same(each, told[0], cat("call ", n));
      const std::map<std::int64_t, std::string>& failures = told[0].failures;
      expect_committed(world.storage(), scenario, failures, cat("call ", n, ": "));
      if (!world.storage_of(victim).fired()) break;
      // The root also writes the index and the head, as with other methods.
      EXPECT_LE(failures.size(), victim == world.roster().home[0] ? 1U : 0U) << "call " << n;
    }
  }
}

/// Three servers, of which the last has neither compute ranks nor a record: only the collective calls need
/// it.
TEST(sim_collective, the_watchdog_tells_of_a_call_to_which_a_server_does_not_come) {
  const Scenario scenario =
      together("fc.data", "raw", {{"t", *layout::Layout::block({6, 6}, 2), "levels=surface"}});
  Job job;
  job.nodes = {{2, 3}};
  SessionWorld world(job);
  std::vector<Arrays> arrays(2);
  const Texts stuck = world.run(
      [&](SessionRank& rank) {
        PlannedStream stream(rank, scenario.plan);
        EXPECT_TRUE(stream.create().is_ok());
        for (std::int64_t step = 0; step < 2; ++step) {
          stream.begin(step * 3600);
          std::vector<float>& array = arrays[static_cast<std::size_t>(rank.rank())][{step, 0}];
          array = array_of(*scenario.plan, rank.rank(), 0, step);
          stream.put(0, reinterpret_cast<const std::byte*>(array.data()));
          EXPECT_TRUE(stream.end().is_ok());
          EXPECT_TRUE(stream.wait(true).is_ok());
          if (rank.rank() == 0) world.world().rank(world.roster().server_transport[2]).lose();
        }
      },
      10 * FibreWorld::second);
  EXPECT_NE(text_of(stuck).find("fc.data: a collective call on fc.data is not over on server 0 1 2;"),
            std::string::npos)
      << text_of(stuck);
}

/// Chunks of three servers become ready in any order. The simulated servers throw if one appends where the
/// shared file pointer does not stand.
TEST(sim_collective, records_are_appended_in_turns) {
  for (std::uint64_t seed = 1; seed <= seeds(40); ++seed) {
    const Scenario scenario = together("fc.data", seed % 2 == 0 ? "raw" : "own",
                                       {{"t", *layout::Layout::block({6, 6}, 3), "levels=hybrid:1-5"},
                                        {"u", *layout::Layout::block({6, 6}, 3), "levels=surface"}},
                                       "", "mpiio_shared");
    ASSERT_EQ(scenario.method, "mpiio_shared");
    Job job;
    job.nodes = seed % 3 == 0 ? nodes_of(3, 3) : std::vector<NodeShape>{{2, 2}, {1, 1}};
    job.disk_bytes_per_second = seed % 4 == 0 ? 1e5 : 0;
    job.seed = seed;
    expect_right_bytes(job, scenario, cat("seed ", seed, ": "));
    if (HasFailure()) return;
  }
}

/// A write fails on each server in turn. The server itself makes one that the MPI has not made. Where others
/// fail the step is cut off: the pointer goes back, and the steps behind it are whole. A stream that waits
/// for room loses none but by the root's other writes.
TEST(sim_collective, the_pointer_goes_back_when_a_step_was_cut) {
  for (const bool waits : {false, true}) {
    const Scenario scenario =
        together("fc.data", "raw", {{"t", *layout::Layout::block({6, 6}, 2), "levels=hybrid:1-3"}},
                 waits ? "on_full=wait:1h" : "same_lead=fail", "mpiio_shared");
    for (int victim = 0; victim < 2; ++victim) {
      int healed = 0;
      bool is_root = false;
      for (int n = 1;; n += std::getenv("TEST_ALL") != nullptr ? 1 : 3) {
        Job job;
        job.nodes = {{2, 2}};
        job.seed = static_cast<std::uint64_t>(100 * victim + n);
        SessionWorld world(job);
        world.storage_of(victim).restart({n, waits ? storage::Fault::no_space : storage::Fault::io_error,
                                          storage::set_of(storage::Call::write)});
        std::vector<Arrays> arrays(2);
        std::vector<Told> told(2);
        const Texts stuck = world.run([&](SessionRank& rank) {
          const auto me = static_cast<std::size_t>(rank.rank());
          patient_forecast(rank, scenario, arrays[me], told[me]);
        });
        ASSERT_TRUE(stuck.empty()) << "call " << n << ": " << text_of(stuck);
        for (const Told& each : told) expect_same(each, told[0], cat("call ", n));
        const std::map<std::int64_t, std::string>& failures = told[0].failures;
        expect_committed(world.storage(), scenario, failures, cat("call ", n, ": "));
        if (!world.storage_of(victim).fired()) break;
        if (failures.empty()) ++healed;
        is_root = victim == world.roster().home[0];
      }
      // The root writes the index and the head, too.
      EXPECT_TRUE(is_root || healed > 0) << "a server makes a write itself that the MPI has not made";
    }
  }
}

TEST(sim_collective, formats_with_places_and_an_mpi_without_pointers_are_refused_alike) {
  for (const auto& [format, has_pointers, words] :
       {std::tuple{"cdf5", true, "in which each record has a place of its own"},
        std::tuple{"raw", false, "the MPI has no shared file pointers"}, std::tuple{"raw", true, ""}}) {
    Job job;
    job.nodes = {{2, 2}, {1, 1}};
    SessionWorld world(job);
    if (!has_pointers) world.break_shared_pointers();
    std::vector<Status> created(3);
    const Texts stuck = world.run([&, format = std::string(format)](SessionRank& rank) {
      created[static_cast<std::size_t>(rank.rank())] =
          streams::Stream::create(rank.session(), "fc.data",
                                  cat("base=2026-03-01 method=mpiio_shared format=", format), std::nullopt)
              .status();
    });
    ASSERT_TRUE(stuck.empty()) << text_of(stuck);
    const std::string text = words;
    for (const Status& each : created) {
      EXPECT_EQ(each.is_ok(), text.empty()) << each.text();
      EXPECT_NE(each.text().find(text), std::string::npos) << each.text();
      EXPECT_EQ(each.text(), created[0].text());
    }
    if (text.empty()) continue;
    EXPECT_NE(created[0].text().find("choose another method"), std::string::npos) << created[0].text();
  }
}

TEST(sim_collective, a_store_of_objects_and_hints_for_nobody_are_refused_alike) {
  for (const auto& [options, code, words] :
       {std::tuple{"format=zarr method=mpiio", Code::unsupported, "choose another method"},
        std::tuple{"format=raw mpiio_hints=a=b", Code::settings, "hints are for method=mpiio"}}) {
    Job job;
    job.nodes = {{2, 1}};
    SessionWorld world(job);
    std::vector<Status> created(2);
    const Result<const formats::Format*> zarr = formats::find("zarr");
    if (code == Code::unsupported && (!zarr.is_ok() || (*zarr)->make == nullptr)) continue;
    const std::string pattern = std::string_view(options).starts_with("format=zarr") ? "fc.zarr" : "fc.raw";
    const Texts stuck = world.run([&, options = std::string(options)](SessionRank& rank) {
      created[static_cast<std::size_t>(rank.rank())] =
          streams::Stream::create(rank.session(), pattern, cat("base=2026-03-01 ", options), std::nullopt)
              .status();
    });
    ASSERT_TRUE(stuck.empty()) << text_of(stuck);
    for (const Status& each : created) {
      EXPECT_EQ(each.code(), code) << each.text();
      EXPECT_NE(each.text().find(words), std::string::npos) << each.text();
    }
    EXPECT_EQ(created[0].text(), created[1].text());
  }
}

}  // namespace collective_test
}  // namespace tailrace::sim
