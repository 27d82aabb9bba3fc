// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Shared files and global arrays in a session with servers: the first server of each node answers other nodes
// for its compute ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>

#include "faces/files/node_servers.hpp"
#include "faces/shared/pages/page_server.hpp"
#include "ground/base/text.hpp"
#include "scenario.hpp"
#include "shared_program.hpp"

namespace tailrace::sim {
namespace {

using shared::GlobalArray;
using shared::PageServer;
using shared::SharedFile;

constexpr Bytes page = 4096;

/// Two nodes or more, most of which have a server.
Job job_with_servers(std::uint64_t seed) {
  Scheduler dice(seed * 982'451'653);
  Job job;
  const auto nodes = static_cast<std::size_t>(dice.random(2, 4));
  for (std::size_t node = 0; node < nodes; ++node)
    job.nodes.push_back({static_cast<int>(dice.random(1, 4)), static_cast<int>(dice.random(1, 2))});
  if (dice.once_in(3)) job.nodes.back().servers = 0;
  job.settings = cat("aggregators=", 1 + seed % 3);
  job.seed = seed;
  job.mixed = seed % 2 == 0;
  job.crowded = seed % 5 == 0;
  job.limits_parks = true;
  job.on_server = [](session::Session& session) {
    Result<std::unique_ptr<PageServer>> made = PageServer::create(session, false);
    EXPECT_TRUE(made.is_ok());
    return std::shared_ptr<void>(std::shared_ptr<PageServer>(std::move(*made)));
  };
  return job;
}

int ranks_of(const Job& job) {
  return std::accumulate(job.nodes.begin(), job.nodes.end(), 0,
                         [](int sum, const NodeShape& node) { return sum + node.ranks; });
}

/// Four frames for each rank of the largest node: pages make room all the time.
SharedProgram::Size file_size(Scheduler& dice, const Job& job) {
  const int most = std::ranges::max(job.nodes, {}, &NodeShape::ranks).ranks;
  return {ranks_of(job), 3, static_cast<int>(dice.random(1, 30)), dice.random(1, 2500), 4 * page * most};
}

GlobalProgram::Size array_size(Scheduler& dice, const Job& job) {
  return {ranks_of(job), 4, dice.random(1, 30'000), static_cast<int>(dice.random(1, 500))};
}

template <typename Program>
void expect_success(Program& program, SessionWorld& world, const std::string& where) {
  Hearing hearing(world.ranks());
  const Texts stuck =
      world.run([&](SessionRank& rank) { program.run(rank, hearing); }, 300 * FibreWorld::second);
  EXPECT_EQ(hearing.wrong(), Texts()) << where;
  EXPECT_EQ(stuck, Texts()) << where;
  EXPECT_TRUE(world.failures().empty()) << where;
  EXPECT_EQ(hearing.disagreements(), Texts()) << where;
  EXPECT_EQ(hearing.failures(), 0) << where << hearing.said(0).back().text;
}

TEST(sim_served, every_byte_of_a_shared_file_is_what_the_model_says) {
  for (std::uint64_t seed = 1; seed <= seeds(16); ++seed) {
    Scheduler dice(seed * 104'729);
    const Job job = job_with_servers(seed);
    SharedProgram program(seed, file_size(dice, job));
    SessionWorld world(job);
    expect_success(program, world, cat("seed ", seed));
    EXPECT_EQ(program.difference(*job.storage), "") << "seed " << seed;
    if (HasFailure()) return;
  }
}

TEST(sim_served, every_element_of_a_global_array_is_what_the_model_says) {
  for (std::uint64_t seed = 1; seed <= seeds(12); ++seed) {
    Scheduler dice(seed * 15'485'863);
    const Job job = job_with_servers(seed);
    GlobalProgram program(seed, array_size(dice, job));
    SessionWorld world(job);
    expect_success(program, world, cat("seed ", seed));
    if (HasFailure()) return;
  }
}

/// An open costs each node a few bytes for the ranks of its group, however many there are.
TEST(sim_served, a_server_hears_in_a_few_bytes_which_ranks_a_group_has) {
  std::vector<int> all(10'000);
  for (int i = 0; i < std::ssize(all); ++i) all[static_cast<std::size_t>(i)] = i + i / 46 * 2;
  std::vector<int> reversed(all.rbegin(), all.rend() - 9'000);
  std::vector<int> row;
  for (int rank = 7; rank < 9'000; rank += 30) row.push_back(rank);
  Scheduler dice(7);
  std::vector<int> any(300);
  for (int& rank : any) rank = static_cast<int>(dice.random(0, 9'000));
  const std::pair<std::vector<int>, std::size_t> groups[] = {
      {all, 16}, {reversed, 12 * 24 + 8}, {row, 20}, {{5}, 20}, {{3, 4, 9}, 32}, {any, 12 * 300 + 8}};
  for (const auto& [ranks, most] : groups) {
    Packer packed;
    files::pack_ranks(packed, ranks, all);
    EXPECT_LE(packed.bytes().size(), most) << ranks.size() << " ranks";
    Unpacker in(packed.bytes());
    EXPECT_EQ(files::unpack_ranks(in, all), ranks);
    EXPECT_TRUE(in.ok() && in.rest().empty());
  }
}

/// The server cannot open the file: the ranks of all nodes answer themselves.
TEST(sim_served, where_a_server_cannot_have_the_pages_the_ranks_answer) {
  for (std::uint64_t seed = 1; seed <= seeds(8); ++seed) {
    Scheduler dice(seed * 49'979'687);
    const Job job = job_with_servers(seed);
    SharedProgram program(seed, file_size(dice, job));
    SessionWorld world(job);
    world.storage_of(0).restart({1, storage::Fault::io_error, set_of(storage::Call::open), true});
    expect_success(program, world, cat("seed ", seed));
    EXPECT_TRUE(world.storage_of(0).fired() || job.nodes.front().servers > 1 || job.mixed);
    EXPECT_EQ(program.difference(*job.storage), "") << "seed " << seed;
    if (HasFailure()) return;
  }
}

/// The storage of one rank or server fails once, or from some call on.
TEST(sim_served, where_storage_fails_all_ranks_are_told_the_same) {
  int struck = 0;
  for (std::uint64_t seed = 1; seed <= seeds(24); ++seed) {
    Scheduler dice(seed * 32'452'843);
    const Job job = job_with_servers(seed);
    SharedProgram program(seed, file_size(dice, job));
    SessionWorld world(job);
    const storage::FaultPlan plan{dice.random(1, dice.once_in(2) ? 20 : 200), storage::Fault::io_error,
                                  storage::all_calls, dice.once_in(2)};
    if (dice.once_in(2))
      world.storage_of(static_cast<int>(dice.random(0, world.servers() - 1))).restart(plan);
    else
      world.storage_at(static_cast<int>(dice.random(0, world.ranks() - 1))).restart(plan);
    Hearing hearing(world.ranks());
    const Texts stuck =
        world.run([&](SessionRank& rank) { program.run(rank, hearing); }, 300 * FibreWorld::second);
    EXPECT_EQ(stuck, Texts()) << "seed " << seed;
    EXPECT_EQ(hearing.disagreements(), Texts()) << "seed " << seed;
    for (const std::string& each : hearing.wrong())
      EXPECT_TRUE(hearing.failed() && each.find(" its own ") != each.npos) << "seed " << seed << " " << each;
    struck += hearing.failed() ? 1 : 0;
    if (HasFailure()) return;
  }
  EXPECT_GT(struck, of_seeds(4));
}

/// A file and an array in which each rank has pages, and each byte is its place.
struct Both {
  explicit Both(SessionRank& rank, Bytes memory = Bytes{64} * page)
      : here(rank),
        group(*rank.group(rank.session().topology().roster().compute_transport)),
        pages(4 * rank.ranks()) {
    file = *SharedFile::open(group, "open",
                             shared::Definition{"file", *shared::read_mode("w+"), page, memory, {}});
    array =
        *GlobalArray::create(group, "create", shared::GlobalDefinition{ElementType::i64, pages * 512, page});
  }
  static std::byte byte_at(Bytes offset) { return static_cast<std::byte>(offset * 31 / 7); }
  void write(Index which) const {
    ByteVector bytes(static_cast<std::size_t>(page));
    for (Bytes i = 0; i < page; ++i) bytes[static_cast<std::size_t>(i)] = byte_at(which * page + i);
    const shared::Source sources[] = {{bytes, which * page}};
    EXPECT_TRUE(file->write(sources).is_ok());
  }
  void check(Index which) const {
    ByteVector bytes(static_cast<std::size_t>(page));
    const shared::Sink sinks[] = {{bytes, which * page}};
    EXPECT_EQ(file->read(sinks).status().text(), Status().text());
    bool is_right = true;
    for (Bytes i = 0; i < page; ++i)
      is_right = is_right && bytes[static_cast<std::size_t>(i)] == byte_at(which * page + i);
    EXPECT_TRUE(is_right) << "page " << which;
  }
  void close() const {
    EXPECT_EQ(file->close().text(), Status().text());
    EXPECT_EQ(array->free().text(), Status().text());
  }

  SessionRank& here;
  std::shared_ptr<files::Group> group;
  const Index pages;
  std::unique_ptr<SharedFile> file;
  std::unique_ptr<GlobalArray> array;
};

/// One rank reads and writes the pages and elements of all while the others compute for 3 s.
TEST(sim_served, a_rank_that_computes_keeps_no_other_node_waiting) {
  for (std::uint64_t seed = 1; seed <= seeds(4); ++seed) {
    Job job = job_with_servers(seed);
    job.nodes.back().servers = 1;
    SessionWorld world(job);
    const Texts stuck = world.run(
        [&](SessionRank& rank) {
          const Both both(rank);
          for (Index which = rank.rank(); which < both.pages; which += rank.ranks()) both.write(which);
          EXPECT_TRUE(both.file->sync().is_ok());
          EXPECT_TRUE(both.array->sync().is_ok());
          if (rank.rank() != static_cast<int>(seed) % rank.ranks())
            return rank.compute(3 * FibreWorld::second), both.close();
          const Nanoseconds before = rank.session().line().now();
          std::vector<std::int64_t> values(static_cast<std::size_t>(both.array->count()), 7);
          auto* const bytes = reinterpret_cast<std::byte*>(values.data());
          EXPECT_TRUE(both.array->write(0, both.array->count(), bytes).is_ok());
          std::ranges::fill(values, 0);
          EXPECT_TRUE(both.array->read(0, both.array->count(), bytes).is_ok());
          EXPECT_EQ(std::ranges::count(values, 7), both.array->count());
          for (Index which = 0; which < both.pages; ++which) {
            both.check(which);
            both.write(which);
            both.check(which);
          }
          EXPECT_TRUE(both.file->size().is_ok());
          const Result<Bytes> end = both.file->append(std::as_bytes(std::span("end")));
          EXPECT_TRUE(end.is_ok() && *end == both.pages * page);
          EXPECT_LT(rank.session().line().now() - before, FibreWorld::second) << "seed " << seed;
          both.close();
        },
        2 * FibreWorld::hour);
    EXPECT_EQ(stuck, Texts()) << "seed " << seed;
    if (HasFailure()) return;
  }
}

/// Rank 0 of two nodes reads pages and elements of the last rank, which computes a millisecond at a time and
/// then calls `work`. All other ranks compute for 3 s.
void expect_served_by_the_last_rank(SessionWorld& world,
                                    const std::function<void(SessionRank&, const Both&)>& work) {
  const Texts stuck = world.run(
      [&](SessionRank& rank) {
        const Both both(rank);
        const int last = rank.ranks() - 1;
        for (Index which = rank.rank(); which < both.pages; which += rank.ranks()) both.write(which);
        EXPECT_TRUE(both.file->sync().is_ok());
        EXPECT_TRUE(both.array->sync().is_ok());
        const Nanoseconds before = rank.session().line().now();
        const auto passed = [&] { return rank.session().line().now() - before; };
        if (rank.rank() == 0) {
          rank.compute(100'000'000);  // the others have left their calls
          both.check(last);
          EXPECT_LT(passed(), FibreWorld::second);
          std::int64_t value = 0;
          EXPECT_TRUE(both.array->read(last * 512, 1, reinterpret_cast<std::byte*>(&value)).is_ok());
          EXPECT_LT(passed(), FibreWorld::second);
        } else if (rank.rank() < last) {
          rank.compute(3 * FibreWorld::second);
        } else {
          while (passed() < 3 * FibreWorld::second) {
            rank.compute(1'000'000);
            work(rank, both);
          }
        }
        both.close();
      },
      FibreWorld::hour);
  EXPECT_EQ(stuck, Texts());
}

/// The server has failed. Another rank of its node computes, and the one that owns the page is in calls.
TEST(sim_served, where_the_ranks_answer_the_owner_of_a_page_does) {
  Job job = job_with_servers(1);
  job.nodes = {{1, 1}, {2, 1}};
  job.mixed = false;
  SessionWorld world(job);
  world.storage_of(1).restart({1, storage::Fault::io_error, set_of(storage::Call::open), true});
  expect_served_by_the_last_rank(world,
                                 [](SessionRank& rank, const Both&) { (void)rank.session().board().pump(); });
}

/// No call of the rank needs another node.
TEST(sim_served, a_rank_that_uses_its_own_pages_alone_serves_other_nodes) {
  Job job = job_with_servers(1);
  job.nodes = {{1, 0}, {1, 0}};
  job.mixed = false;
  SessionWorld world(job);
  expect_served_by_the_last_rank(world, [](SessionRank&, const Both& both) {
    for (int i = 0; i < 5; ++i) both.check(1);
    for (int i = 0; i < 5; ++i) both.write(1);
  });
}

/// The pages of the other nodes come from storage, into frames whose pages have not changed.
TEST(sim_served, pages_come_from_storage_while_their_ranks_compute) {
  Job job = job_with_servers(3);
  for (NodeShape& node : job.nodes) node.servers = 1;
  SessionWorld world(job);
  const int most = std::ranges::max(job.nodes, {}, &NodeShape::ranks).ranks;
  const Texts stuck = world.run(
      [&](SessionRank& rank) {
        const Both both(rank, 4 * page * most);
        for (int round = 0; round < 3; ++round) {
          for (Index which = rank.rank(); which < 3 * both.pages; which += rank.ranks()) both.write(which);
          EXPECT_TRUE(both.file->flush().is_ok());
          if (rank.rank() == round % rank.ranks()) {
            const Nanoseconds before = rank.session().line().now();
            for (Index which = 0; which < 3 * both.pages; ++which) both.check(which);
            EXPECT_LT(rank.session().line().now() - before, FibreWorld::second);
          } else {
            rank.compute(3 * FibreWorld::second);
          }
        }
        both.close();
      },
      FibreWorld::hour);
  EXPECT_EQ(stuck, Texts());
}

/// The server has to ask for room, and its ranks store pages when they come to the library.
TEST(sim_served, where_all_pages_have_changed_ranks_store_some_for_their_server) {
  Job job = job_with_servers(5);
  job.nodes = {{2, 1}, {2, 1}};
  SessionWorld world(job);
  const Texts stuck = world.run([&](SessionRank& rank) {
    const Both both(rank, 8 * page);
    if (rank.rank() < 2)
      for (Index which = 0; which < 12 * both.pages; ++which) both.write(which);
    EXPECT_TRUE(both.file->sync().is_ok());
    for (Index which = 0; which < 12 * both.pages; ++which) both.check(which);
    both.close();
  });
  EXPECT_EQ(stuck, Texts());
}

/// A page that its rank cannot store is not waited for: who asked is told.
TEST(sim_served, a_page_that_cannot_make_room_fails_the_call_that_needs_it) {
  Job job = job_with_servers(5);
  job.nodes = {{1, 1}, {1, 1}};
  job.mixed = false;
  SessionWorld world(job);
  int failed = 0;
  const Texts stuck = world.run([&](SessionRank& rank) {
    const Both both(rank, 4 * page);
    if (rank.rank() == 1)
      world.storage_at(1).restart({1, storage::Fault::no_space, storage::changing_calls, true});
    EXPECT_TRUE(both.file->sync().is_ok());
    ByteVector bytes(static_cast<std::size_t>(page));
    for (Index which = 1; which < 40 && rank.rank() == 0; which += 2) {
      const shared::Source sources[] = {{bytes, which * page}};
      EXPECT_TRUE(both.file->write(sources).is_ok());
      const shared::Sink sinks[] = {{bytes, which * page}};
      failed += both.file->read(sinks).is_ok() ? 0 : 1;
    }
    EXPECT_EQ(both.file->sync().code(), Code::space);
    if (rank.rank() == 1) world.storage_at(1).restart({});
    (void)both.file->close();
    (void)both.array->free();
  });
  EXPECT_EQ(stuck, Texts());
  EXPECT_GT(failed, 0);
}

/// The memory of a closed file goes to the next one, and the server has let go of it.
TEST(sim_served, the_memory_of_a_closed_file_is_served_again_for_the_next) {
  Job job = job_with_servers(7);
  job.nodes = {{2, 1}, {3, 1}};
  SessionWorld world(job);
  const Texts stuck = world.run([&](SessionRank& rank) {
    for (int round = 0; round < 4; ++round) {
      const Both both(rank);
      for (Index which = rank.rank(); which < both.pages; which += rank.ranks()) both.write(which);
      EXPECT_TRUE(both.file->sync().is_ok());
      for (Index which = 0; which < both.pages; ++which) both.check(which);
      EXPECT_TRUE(both.file->resize(page + round).is_ok());
      EXPECT_EQ(*both.file->size(), page + round);
      EXPECT_TRUE(both.array->resize(3 + round).is_ok());
      EXPECT_TRUE(both.array->resize(90'000).is_ok());
      std::vector<std::int64_t> values(90'000, 1);
      EXPECT_TRUE(both.array->read(0, 90'000, reinterpret_cast<std::byte*>(values.data())).is_ok());
      EXPECT_EQ(std::ranges::count(values, 0), 90'000);
      both.close();
    }
  });
  EXPECT_EQ(stuck, Texts());
}

}  // namespace
}  // namespace tailrace::sim
