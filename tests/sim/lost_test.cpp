// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>

#include "ground/base/text.hpp"
#include "scenario.hpp"

namespace tailrace::sim {
namespace {

/// Returns the servers among the ranks that have not ended.
Texts servers_in(Texts stuck) {
  std::erase_if(stuck, [](const std::string& each) { return !each.starts_with("a server waits:"); });
  return stuck;
}

enum class When { before_begin, before_put, between_puts, before_end };

/// Runs a forecast in which rank `lost` dies in its second step. Returns what the watchdogs say then.
Texts lose_a_rank(std::vector<NodeShape> nodes, int ranks, int lost, When when, std::uint64_t seed,
                  const std::string& handoff = "") {
  Scenario scenario;
  scenario.handoff = handoff;
  scenario.variables = {{"t", *layout::Layout::block({6, 6}, ranks), "levels=hybrid:1-2"},
                        {"u", *layout::Layout::block({6, 6}, ranks), "levels=surface"}};
  scenario.prepare();
  Job job;
  job.nodes = std::move(nodes);
  job.seed = seed;
  SessionWorld world(job);
  std::vector<Arrays> arrays(static_cast<std::size_t>(ranks));
  const auto dies = [&](SessionRank& rank, std::int64_t step, When now) {
    if (rank.rank() == lost && step == 1 && when == now) world.lose(lost);
  };
  const Texts stuck = world.run([&](SessionRank& rank) {
    Arrays& mine = arrays[static_cast<std::size_t>(rank.rank())];
    PlannedStream stream(rank, scenario.plan);
    Status status = stream.create();
    for (std::int64_t step = 0; step < 3; ++step) {
      dies(rank, step, When::before_begin);
      rank.compute(1000);
      stream.begin(step);
      for (int field = 0; field < 2; ++field) {
        dies(rank, step, field == 0 ? When::before_put : When::between_puts);
        rank.compute(1000);
        mine[{step, field}] = array_of(*scenario.plan, rank.rank(), field, step);
        stream.put(field, reinterpret_cast<const std::byte*>(mine[{step, field}].data()));
      }
      dies(rank, step, When::before_end);
      rank.compute(1000);
      status = stream.end();
      EXPECT_TRUE(status.is_ok()) << status.text();
    }
    status = stream.close();
  });
  EXPECT_FALSE(stuck.empty());
  // Steps committed before stay readable, and nothing else is in the index.
  const Result<streams::IndexContents> index =
      streams::load_index(world.storage(), streams::index_path("fc.data"));
  // A rank without a server on its node takes data with it that it has not sent yet.
  EXPECT_TRUE(index.is_ok() || !handoff.empty() ||
              world.roster().shares_node[static_cast<std::size_t>(lost)] == 0);
  if (index.is_ok()) {
    EXPECT_LE(index->steps.size(), 1U);
    const ByteVector file = read_file(world.storage(), "fc.data");
    const ByteVector first = bytes_of_step(*scenario.plan, 0);
    EXPECT_TRUE(index->steps.empty() || std::equal(first.begin(), first.end(), file.begin()));
  }
  return servers_in(stuck);
}

TEST(sim_lost, a_lost_rank_crashes_nobody_and_is_named_by_the_servers) {
  for (const When when : {When::before_begin, When::before_put, When::between_puts, When::before_end}) {
    for (const int lost : {0, 1, 3}) {
      for (std::uint64_t seed = 1; seed <= 8; ++seed) {
        const std::string text = text_of(lose_a_rank({{2, 1}, {2, 1}}, 4, lost, when, seed));
        const std::string where =
            cat("lost ", lost, ", moment ", static_cast<int>(when), ", seed ", seed, ":", text);
        EXPECT_NE(text.find(cat("compute rank ", lost)), std::string::npos) << where;
        for (int other = 0; other < 4; ++other) {
          if (other == lost) continue;
          EXPECT_EQ(text.find(cat("compute rank ", other)), std::string::npos) << where;
        }
      }
    }
  }
}

TEST(sim_lost, so_is_one_that_is_alone_with_its_server_or_has_none_on_its_node) {
  for (const When when : {When::before_begin, When::before_put, When::between_puts, When::before_end}) {
    for (const int lost : {0, 1, 2}) {
      const std::string text = text_of(lose_a_rank({{1, 1}, {1, 1}, {1, 0}}, 3, lost, when, 5));
      EXPECT_NE(text.find(cat("compute rank ", lost)), std::string::npos)
          << "lost " << lost << ", moment " << static_cast<int>(when) << ":" << text;
    }
  }
}

TEST(sim_lost, so_is_one_whose_data_travel_as_messages_or_are_got_by_its_server) {
  for (const std::string handoff : {"messages", "onesided"}) {
    for (const When when : {When::before_begin, When::before_put, When::between_puts, When::before_end}) {
      for (const int lost : {0, 1, 3}) {
        const std::string text = text_of(lose_a_rank({{2, 1}, {2, 1}}, 4, lost, when, 7, handoff));
        EXPECT_NE(text.find(cat("compute rank ", lost)), std::string::npos)
            << handoff << ", lost " << lost << ", moment " << static_cast<int>(when) << ":" << text;
      }
    }
  }
}

TEST(sim_lost, one_that_is_lost_before_an_agreement_is_missing_in_it) {
  Scenario scenario;
  scenario.variables = {{"t", *layout::Layout::block({6, 6}, 5), "levels=surface"}};
  scenario.prepare();
  for (const int lost : {1, 2, 3, 4}) {
    Job job;
    job.nodes = {{5, 1}};
    job.settings = "watchdog=5s";
    SessionWorld world(job);
    set_log_level(LogLevel::warn);
    testing::internal::CaptureStderr();
    const Texts stuck = world.run([&](SessionRank& rank) {
      if (rank.rank() == lost) world.lose(lost);
      rank.compute(1000);
      PlannedStream stream(rank, scenario.plan);
      const Status status = stream.create();
      ADD_FAILURE() << "rank " << rank.rank() << " came through";
    });
    const std::string log = testing::internal::GetCapturedStderr();
    EXPECT_EQ(stuck.size(), 5U) << text_of(stuck);
    for (int rank = 0; rank < 5; ++rank) {
      const bool waits = log.find(cat("compute rank ", rank, " has waited 5 s")) != std::string::npos;
      EXPECT_EQ(waits, rank != lost) << log;
    }
    EXPECT_NE(log.find(cat("nothing from compute rank ", lost, " or those behind it")), std::string::npos)
        << log;
  }
}

/// Runs `program` on ranks of three nodes, which make no call for a while.
void run_silently(const std::string& settings, const std::function<void(SessionRank&)>& program) {
  Job job;
  job.nodes = {{2, 1}, {1, 1}, {1, 0}};
  job.settings = settings;
  job.limits_parks = true;
  SessionWorld world(job);
  set_log_level(LogLevel::warn);
  const Texts stuck = world.run(program);
  EXPECT_TRUE(stuck.empty()) << text_of(stuck);
}
std::string printed_by(const std::string& settings, const std::function<void(SessionRank&)>& program) {
  testing::internal::CaptureStderr();
  run_silently(settings, program);
  return testing::internal::GetCapturedStderr();
}

constexpr Nanoseconds second = 1'000'000'000;
const std::string silence = "server 0: no compute rank has called the library for 1 s";

TEST(sim_lost, a_model_that_calls_nothing_is_told_once_what_it_may_wait_for) {
  const std::string log = printed_by("watchdog=1s", [](SessionRank& rank) {
    for (int time = 0; time < 2; ++time) {
      rank.compute(5 * second / 2);
      EXPECT_TRUE(rank.session().agree({{}, "a call", {}}).status.is_ok());
    }
  });
  const std::size_t first = log.find(silence);
  ASSERT_NE(first, std::string::npos) << log;
  EXPECT_EQ(log.find(silence, first + 1), std::string::npos) << log;
  EXPECT_NE(log.find("MPI_COMM_WORLD"), std::string::npos) << log;
}

TEST(sim_lost, one_rank_that_calls_or_waits_is_enough_for_the_servers) {
  for (const int busy : {0, 2, 3}) {
    const std::string calling = printed_by("watchdog=1s", [busy](SessionRank& rank) {
      for (int time = 0; time < 5; ++time) {
        rank.compute(second / 2);
        if (rank.rank() == busy) rank.session().computing().note_call(rank.session().line().now());
      }
    });
    EXPECT_EQ(calling.find(silence), std::string::npos) << busy << ": " << calling;
    const std::string waiting = printed_by("watchdog=1s", [busy](SessionRank& rank) {
      if (rank.rank() != busy) rank.compute(5 * second / 2);
      EXPECT_TRUE(rank.session().agree({{}, "a call", {}}).status.is_ok());
    });
    EXPECT_EQ(waiting.find(silence), std::string::npos) << busy << ": " << waiting;
  }
}

TEST(sim_lost, a_model_that_calls_nothing_ends_at_the_time_out) {
  const auto hang = [](SessionRank& rank) { rank.compute(5 * second); };
  EXPECT_DEATH(run_silently("watchdog=off timeout=1s", hang),
               "server 0 gives up \\(TAILRACE_TIMEOUT\\): no compute rank has called the library for 1 s");
}

/// Sends the opening of a stream to the first server, without its last `cut` bytes. Returns the ranks that
/// then do not come to the end.
Texts open_a_stream(const pipeline::Opening& opening, std::size_t cut) {
  Job job;
  job.nodes = {{2, 1}};
  SessionWorld world(job);
  return world.run([&](SessionRank& rank) {
    if (rank.rank() != 0) return;
    Packer out;
    out.put(pipeline::Message::open);
    opening.pack(out, true);
    ByteVector bytes = out.take();
    bytes.resize(bytes.size() - cut);
    rank.session().line().send(rank.session().topology().roster().server_transport[0], std::move(bytes));
    rank.compute(1000);
  });
}

TEST(sim_lost, a_server_that_cannot_open_a_stream_says_why_and_keeps_nobody_waiting) {
  pipeline::Opening opening;
  opening.stream = 1;
  const std::string begin = "server 0 cannot open a stream that the compute ranks have begun: ";
  EXPECT_DEATH(open_a_stream(opening, 1), begin + "a stream's definition arrived incomplete");
  opening.reference = 2;
  EXPECT_DEATH(open_a_stream(opening, 0), begin + "a stream's definition arrived with a rank that is none");
  opening.reference = 0;
  opening.layouts.emplace_back(3, std::byte{1});
  opening.in_parts.push_back(0);
  EXPECT_DEATH(open_a_stream(opening, 0), begin);
  opening.in_parts.back() = 1;
  open_a_stream(opening, 0);  // its parts are still to come
}

}  // namespace
}  // namespace tailrace::sim
