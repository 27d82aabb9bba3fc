// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Shared files and global arrays on the library's own session, in simulated time: ranks of several nodes
// write small pieces anywhere with little memory, and a network delays.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "ground/base/text.hpp"
#include "ground/storage/faulty.hpp"
#include "scenario.hpp"
#include "shared_program.hpp"

namespace tailrace::sim {
namespace {

using shared::GlobalArray;
using shared::SharedFile;

Shape random_shape(Scheduler& dice) {
  Shape shape;
  shape.ranks = static_cast<int>(dice.random(1, 16));
  shape.ranks_per_node = static_cast<int>(dice.random(1, 6));
  return shape;
}

Job random_job(const Shape& shape, std::uint64_t seed) {
  Job job;
  job.nodes = nodes_of(shape.ranks, shape.ranks_per_node);
  job.settings = cat("aggregators=", 1 + seed % 3);
  job.storage = storage::memory_target();
  job.seed = seed;
  job.mixed = seed % 2 == 0;
  job.pauses_in_storage = seed % 3 != 0;
  return job;
}

Texts texts_of(const std::vector<Status>& failures) {
  Texts texts;
  for (const Status& each : failures) texts.push_back(each.text());
  return texts;
}

/// Four frames for each rank of the largest node: pages make room all the time.
SharedProgram::Size size_of(Scheduler& dice, const Shape& shape) {
  return {shape.ranks, 4, static_cast<int>(dice.random(1, 60)), dice.random(1, 2500),
          Bytes{16384} * std::min(shape.ranks, shape.ranks_per_node)};
}

GlobalProgram::Size size_of_array(Scheduler& dice, const Shape& shape) {
  return {shape.ranks, 4, dice.random(1, 30'000), static_cast<int>(dice.random(1, 500))};
}

template <typename Program>
void run_a_program(Program& program, const Job& job, int ranks, const std::string& where) {
  SessionWorld world(job);
  Hearing hearing(ranks);
  const Texts stuck = world.run([&](SessionRank& rank) { program.run(rank, hearing); });
  EXPECT_EQ(hearing.wrong(), Texts()) << where;
  EXPECT_EQ(stuck, Texts()) << where;
  EXPECT_EQ(texts_of(world.failures()), Texts()) << where;
  EXPECT_EQ(hearing.disagreements(), Texts()) << where;
  EXPECT_EQ(hearing.failures(), 0) << where << hearing.said(0).back().text;
}

TEST(sim_shared, every_byte_of_a_shared_file_is_what_the_model_says) {
  for (std::uint64_t seed = 1; seed <= seeds(60); ++seed) {
    Scheduler dice(seed * 104'729);
    const Shape shape = random_shape(dice);
    SharedProgram program(seed, size_of(dice, shape));
    const Job job = random_job(shape, seed);
    run_a_program(program, job, shape.ranks, cat("seed ", seed));
    EXPECT_EQ(program.difference(*job.storage), "") << "seed " << seed;
    if (HasFailure()) return;
  }
}

TEST(sim_shared, every_element_of_a_global_array_is_what_the_model_says) {
  for (std::uint64_t seed = 1; seed <= seeds(60); ++seed) {
    Scheduler dice(seed * 15'485'863);
    const Shape shape = random_shape(dice);
    GlobalProgram program(seed, size_of_array(dice, shape));
    run_a_program(program, random_job(shape, seed), shape.ranks, cat("seed ", seed));
    if (HasFailure()) return;
  }
}

storage::FaultPlan random_fault(Scheduler& dice) {
  storage::FaultPlan plan;
  plan.nth = dice.random(1, dice.once_in(2) ? 20 : 300);
  plan.fault = dice.once_in(2) ? storage::Fault::no_space : storage::Fault::io_error;
  plan.calls = dice.once_in(2) ? storage::all_calls : storage::changing_calls;
  plan.for_good = dice.once_in(2);
  return plan;
}

/// The storage of one rank fails once, or from some call on. Each collective call tells all ranks the same,
/// and all come to the end. What a flush could not store is stored by the next one.
TEST(sim_shared, where_storage_fails_on_one_rank_all_are_told_the_same) {
  int struck = 0;
  for (std::uint64_t seed = 1; seed <= seeds(120); ++seed) {
    Scheduler dice(seed * 32'452'843);
    Shape shape = random_shape(dice);
    if (seed % 3 == 0) shape.ranks_per_node = shape.ranks;
    SharedProgram::Size size = size_of(dice, shape);
    if (seed % 3 == 0) size.memory = Bytes{4} << 20;  // no page makes room: only flushes store
    SharedProgram program(seed, size);
    const Job job = random_job(shape, seed);
    SessionWorld world(job);
    world.storage_at(static_cast<int>(dice.random(0, shape.ranks - 1))).restart(random_fault(dice));
    Hearing hearing(shape.ranks);
    const Texts stuck = world.run([&](SessionRank& rank) { program.run(rank, hearing); });
    EXPECT_EQ(stuck, Texts()) << "seed " << seed;
    EXPECT_EQ(hearing.disagreements(), Texts()) << "seed " << seed;
    // A write to another node's pages may have failed, and the writer hear of it only in a collective call.
    for (const std::string& each : hearing.wrong())
      EXPECT_TRUE(hearing.failed() && each.find(" its own ") != each.npos) << "seed " << seed << " " << each;
    struck += hearing.failures() > 0 ? 1 : 0;
    // A write to another node's pages that failed was told by a collective call, and its bytes are gone.
    const bool has_all =
        !hearing.local_failed() && (!hearing.failed() || shape.ranks <= shape.ranks_per_node);
    const bool is_closed =
        std::ssize(hearing.said(0)) == program.calls() && hearing.said(0).back().text.empty();
    if (has_all && is_closed) {
      EXPECT_EQ(program.difference(*job.storage), "") << "seed " << seed;
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(struck, 10);
}

/// A rank is lost in the middle. What the others were told until they had to wait for it is right, and each
/// of them says in which call it waits.
template <typename Program>
int lose_a_rank(Program& program, const Shape& shape, std::uint64_t seed, const std::string& name) {
  Scheduler dice(seed * 86'028'121);
  const int lost = static_cast<int>(dice.random(0, shape.ranks - 1));
  const int last = static_cast<int>(dice.random(0, program.calls() - 1));
  SessionWorld world(random_job(shape, seed));
  Hearing hearing(shape.ranks);
  const Texts stuck = world.run(
      [&](SessionRank& rank) {
        program.run(rank, hearing, rank.rank() == lost ? last : -1);
        if (rank.rank() != lost) return;
        rank.fibre().lose();
        rank.fibre().stall(1);
      },
      300 * FibreWorld::second);
  EXPECT_EQ(hearing.wrong(), Texts()) << "seed " << seed;
  EXPECT_EQ(hearing.disagreements(), Texts()) << "seed " << seed;
  EXPECT_EQ(std::ssize(stuck), shape.ranks - 1) << "seed " << seed;
  return static_cast<int>(
      std::ranges::count_if(stuck, [&](const std::string& each) { return each.find(name) != each.npos; }));
}

TEST(sim_shared, what_was_told_before_a_rank_was_lost_is_right) {
  int waiting = 0;
  for (std::uint64_t seed = 1; seed <= seeds(40); ++seed) {
    Scheduler dice(seed * 49'979'687);
    const Shape shape = random_shape(dice);
    SharedProgram file(seed, size_of(dice, shape));
    waiting += lose_a_rank(file, shape, seed, "shared");
    GlobalProgram array(seed, size_of_array(dice, shape));
    waiting += lose_a_rank(array, shape, seed, "global");
    if (HasFailure()) return;
  }
  EXPECT_GT(waiting, 100);
}

std::unique_ptr<SharedFile> open_on(SessionRank& rank, const std::vector<int>& ranks,
                                    const std::string& path) {
  const auto group = rank.group(ranks);
  auto file = SharedFile::open(*group, cat("open ", path),
                               shared::Definition{path, *shared::read_mode("w+"), 4096, 1 << 20, {}});
  EXPECT_TRUE(file.is_ok()) << file.status().text();
  return std::move(*file);
}

/// Small pieces in pages of all nodes, and some of them read back.
void write_and_read(SessionRank& rank, SharedFile& file) {
  std::vector<std::byte> bytes(100, std::byte(rank.rank()));
  for (int i = 0; i < 20; ++i) {
    const Bytes offset = 100 * (Bytes{i} * rank.ranks() + rank.rank());
    const shared::Source sources[] = {{bytes, offset}};
    EXPECT_TRUE(file.write(sources).is_ok());
    const shared::Sink sinks[] = {{bytes, offset}};
    if (i % 3 == 0) (void)file.read(sinks);
  }
}

template <typename Object>
using Call = Status (*)(Object&);

/// One rank makes another collective call than the others, on the same object.
template <typename Object>
void make_different_calls(std::uint64_t seed, const std::vector<Call<Object>>& calls,
                          const std::function<std::unique_ptr<Object>(SessionRank& rank, int ranks)>& make) {
  Scheduler dice(seed * 67'867'967);
  Shape shape = random_shape(dice);
  shape.ranks = std::max(shape.ranks, 2);
  const int odd = static_cast<int>(dice.random(0, shape.ranks - 1));
  const auto one = static_cast<std::size_t>(dice.random(0, std::ssize(calls) - 1));
  const auto other = (one + static_cast<std::size_t>(dice.random(1, std::ssize(calls) - 1))) % calls.size();
  SessionWorld world(random_job(shape, seed));
  Hearing hearing(shape.ranks);
  const Texts stuck = world.run([&](SessionRank& rank) {
    const auto object = make(rank, shape.ranks);
    const Status status = calls[rank.rank() == odd ? other : one](*object);
    EXPECT_EQ(status.code(), Code::order) << status.text();
    hearing.collective(rank.rank(), "call", status);
  });
  EXPECT_EQ(stuck, Texts()) << "seed " << seed;
  EXPECT_EQ(hearing.disagreements(), Texts()) << "seed " << seed;
}

TEST(sim_shared, ranks_in_different_calls_of_a_file_are_told_so_and_come_to_the_end) {
  const std::vector<Call<SharedFile>> calls{
      [](SharedFile& file) { return file.sync(); }, [](SharedFile& file) { return file.flush(); },
      [](SharedFile& file) { return file.resize(100); }, [](SharedFile& file) { return file.resize(101); },
      [](SharedFile& file) { return file.close(); }};
  for (std::uint64_t seed = 1; seed <= seeds(60); ++seed) {
    make_different_calls<SharedFile>(seed, calls, [](SessionRank& rank, int ranks) {
      auto file = open_on(rank, all_ranks(ranks), "file");
      write_and_read(rank, *file);
      return file;
    });
    if (HasFailure()) return;
  }
}

TEST(sim_shared, ranks_in_different_calls_of_an_array_are_told_so_and_come_to_the_end) {
  const std::vector<Call<GlobalArray>> calls{
      [](GlobalArray& array) { return array.sync(); }, [](GlobalArray& array) { return array.resize(100); },
      [](GlobalArray& array) { return array.resize(101); }, [](GlobalArray& array) { return array.free(); }};
  for (std::uint64_t seed = 1; seed <= seeds(60); ++seed) {
    make_different_calls<GlobalArray>(seed, calls, [](SessionRank& rank, int ranks) {
      const auto group = rank.group(all_ranks(ranks));
      auto array =
          *GlobalArray::create(*group, "create", shared::GlobalDefinition{ElementType::i32, 20'000, 4096});
      std::vector<Index> indices;
      for (Index i = rank.rank(); i < array->count(); i += 37) indices.push_back(i);
      std::vector<std::int32_t> values(indices.size(), 1);
      auto* const bytes = reinterpret_cast<std::byte*>(values.data());
      EXPECT_TRUE(array->accumulate(indices, bytes, true).is_ok());
      (void)array->gather(indices, bytes);
      return array;
    });
    if (HasFailure()) return;
  }
}

/// Ranks of two groups meet in the files of both, in another order on one rank. It waits for the others in a
/// call on one line, and they for it on another.
TEST(sim_shared, ranks_in_different_order_on_files_of_two_groups_come_to_the_end) {
  for (std::uint64_t seed = 1; seed <= seeds(40); ++seed) {
    Scheduler dice(seed * 179'424'673);
    Shape shape = random_shape(dice);
    shape.ranks = std::max(shape.ranks, 3);
    const int few = static_cast<int>(dice.random(2, shape.ranks - 1));
    const int odd = static_cast<int>(dice.random(0, few - 1));
    SessionWorld world(random_job(shape, seed));
    Hearing hearing(shape.ranks);
    const Texts stuck = world.run([&](SessionRank& rank) {
      const auto all = open_on(rank, all_ranks(shape.ranks), "all");
      std::unique_ptr<SharedFile> some;
      if (rank.rank() < few) some = open_on(rank, all_ranks(few), "some");
      write_and_read(rank, *all);
      if (some != nullptr) write_and_read(rank, *some);
      std::vector<Status> told;
      if (rank.rank() == odd) told.push_back(some->flush());
      told.push_back(all->flush());
      if (rank.rank() != odd && some != nullptr) told.push_back(some->flush());
      for (const Status& status : told) EXPECT_EQ(status.code(), Code::order) << status.text();
      hearing.collective(rank.rank(), "flush", told.front());
      const Status closed = all->close();
      hearing.collective(rank.rank(), "close", closed);
    });
    EXPECT_EQ(stuck, Texts()) << "seed " << seed;
    EXPECT_EQ(hearing.disagreements(), Texts()) << "seed " << seed;
    if (HasFailure()) return;
  }
}

/// Writes for other nodes are gathered for each of their ranks, of which there may be thousands.
TEST(sim_shared, what_is_gathered_for_many_ranks_leaves_before_it_is_much) {
  constexpr int ranks = 150;
  constexpr Bytes page = Bytes{64} << 10;
  SessionWorld world(random_job({ranks, 1}, 1));
  const Texts stuck = world.run([&](SessionRank& rank) {
    const auto group = rank.group(all_ranks(ranks));
    const auto file = *SharedFile::open(
        *group, "open", shared::Definition{"file", *shared::read_mode("w+"), page, 8 * page, {}});
    const std::vector<std::byte> bytes(page - 4096);
    const std::int64_t before = rank.fibre().port().messages();
    Bytes waiting = 0;
    for (Bytes i = 0; i < ranks && rank.rank() == 0; ++i) {
      const shared::Source sources[] = {{bytes, i * page}};
      EXPECT_TRUE(file->write(sources).is_ok());
      waiting = rank.fibre().port().messages() == before ? waiting + std::ssize(bytes) : 0;
      EXPECT_LE(waiting, Bytes{5} << 20);
    }
    EXPECT_TRUE(file->close().is_ok());
  });
  EXPECT_EQ(stuck, Texts());
}

/// A node that has too little memory, or a rank that has an error, keeps all ranks from opening.
TEST(sim_shared, what_one_rank_cannot_open_no_rank_opens) {
  for (std::uint64_t seed = 1; seed <= seeds(40); ++seed) {
    Scheduler dice(seed * 122'949'823);
    const Shape shape = random_shape(dice);
    const int bad = static_cast<int>(dice.random(0, shape.ranks - 1));
    const bool lacks_memory = dice.once_in(2);
    SessionWorld world(random_job(shape, seed));
    Hearing hearing(shape.ranks);
    const Texts stuck = world.run([&](SessionRank& rank) {
      const auto group = rank.group(all_ranks(shape.ranks));
      const int first = (*group)->nodes()[static_cast<std::size_t>(bad)];
      const bool is_bad = (*group)->nodes()[static_cast<std::size_t>(rank.rank())] == first;
      Result<shared::Definition> given =
          shared::Definition{"file", *shared::read_mode("w+"), 4096, 1 << 20, {}};
      if (lacks_memory && is_bad) given->memory = 4096;
      if (!lacks_memory && rank.rank() == bad) given = Status(Code::settings, "a bad option");
      const auto file = SharedFile::open(*group, "open", given);
      EXPECT_EQ(file.status().code(), lacks_memory ? Code::memory : Code::settings) << file.status().text();
      hearing.collective(rank.rank(), "open", file.status());
      EXPECT_TRUE(SharedFile::open(*group, "again",
                                   shared::Definition{"file", *shared::read_mode("w+"), 4096, 1 << 20, {}})
                      .is_ok());
    });
    EXPECT_EQ(stuck, Texts()) << "seed " << seed;
    EXPECT_EQ(hearing.disagreements(), Texts()) << "seed " << seed;
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace tailrace::sim
