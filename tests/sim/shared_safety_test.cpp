// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Shared files with safety=: wherever the power fails, or the program is killed, the next program finds the
// content of the last flush, whole. Ranks of several nodes write with little memory, so that pages of which
// there is no flushed copy are stored all the time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "faces/shared/pages/page_server.hpp"
#include "faces/shared/shared_file.hpp"
#include "ground/base/text.hpp"
#include "ground/storage/faulty.hpp"
#include "shared_disk.hpp"

namespace tailrace::sim {
namespace {

using shared::Safety;
using shared::SharedFile;
using storage::CrashPolicy;
using storage::Fault;
using storage::FaultPlan;
using Disk = CrashDisk;
using Writes = CrashPolicy::Writes;
using Entries = CrashPolicy::Entries;

const std::string name = "dir/../data";  // "data"

struct Write {
  int rank = 0;
  Bytes offset = 0;
  std::string bytes;
};

/// What all ranks do between two flushes.
struct Phase {
  std::vector<Write> writes;
  std::optional<Bytes> resize;  // after them
  std::string content;          // that the file has in the end
};

/// A program, and all contents that it flushes. The last flush is the close.
struct Script {
  int ranks = 1;
  int ranks_per_node = 1;
  int servers = 0;  // of each node
  std::string mode = "r+";
  Safety safety = Safety::journal;
  std::string before;  // that the file holds durably; empty: there is none
  std::vector<Phase> phases;
};

/// Each rank has pieces of its own: what two ranks write at once is not decided.
Phase random_phase(Scheduler& dice, int ranks, std::string content) {
  constexpr Bytes piece = 700;
  Phase phase;
  const auto most = dice.random(0, 60);
  for (std::int64_t i = 0; i < most; ++i) {
    const auto number = dice.random(0, dice.once_in(4) ? 90 : 60);
    Write write{static_cast<int>(number % ranks), number * piece,
                std::string(static_cast<std::size_t>(piece), ' ')};
    for (char& each : write.bytes) each = static_cast<char>('a' + dice.random(0, 25));
    const auto end = static_cast<std::size_t>(write.offset) + write.bytes.size();
    if (content.size() < end) content.resize(end, '\0');
    content.replace(static_cast<std::size_t>(write.offset), write.bytes.size(), write.bytes);
    phase.writes.push_back(std::move(write));
  }
  if (dice.once_in(3)) {
    phase.resize = dice.random(0, 50'000);
    content.resize(static_cast<std::size_t>(*phase.resize), '\0');
  }
  phase.content = std::move(content);
  return phase;
}

/// Without `before` the file holds anything.
Script random_script(std::uint64_t seed, Safety safety, const std::optional<std::string>& before = {}) {
  Scheduler dice(seed * 7561);
  Script script;
  script.ranks = static_cast<int>(dice.random(1, 5));
  script.ranks_per_node = static_cast<int>(dice.random(1, 5));
  script.safety = safety;
  script.mode = safety == Safety::rename ? "w+" : dice.once_in(4) ? "a+" : "r+";
  for (Bytes i = dice.random(1, 40'000); i > 0; --i) script.before += static_cast<char>('A' + i % 26);
  if (before) script.before = *before;
  std::string content = script.mode == "w+" ? "" : script.before;
  for (int i = 0; i < 4; ++i) {
    script.phases.push_back(random_phase(dice, script.ranks, content));
    content = script.phases.back().content;
  }
  return script;
}

/// What a program has heard.
struct Course {
  int told = 0;       // flushes that some rank was told to be done: the phase with this number is whole
  int attempted = 0;  // the last one that was begun
  bool failed = false;
};

class Program {
 public:
  Program(const Script& script, Course& course) : script_(script), course_(course) {}

  void run(SessionRank& rank) const {
    const auto group = rank.group(rank.session().topology().roster().compute_transport);
    if (!heard(group.status())) return;
    // Servers that answer need room, too.
    const int ranks = script_.servers > 0 ? script_.ranks_per_node : script_.ranks;
    shared::Definition what{name, *shared::read_mode(script_.mode), 4096, 16384 * ranks};
    what.safety = script_.safety;
    Result<std::unique_ptr<SharedFile>> file = SharedFile::open(*group, "open", what);
    if (!heard(file.status())) return;
    for (std::size_t i = 0; i < script_.phases.size(); ++i) {
      if (!run(**file, rank.rank(), static_cast<int>(i))) return;
    }
  }

 private:
  /// Does a phase again if it fails: all ranks hear the same of a flush. Returns false if the program cannot
  /// go on: what it would flush without a change of size is no content of the script.
  bool run(SharedFile& file, int rank, int number) const {
    constexpr int most_tries = 3;
    const bool is_last = number + 1 == static_cast<int>(script_.phases.size());
    for (int tries = 0; tries < most_tries; ++tries) {
      const Phase& phase = script_.phases[static_cast<std::size_t>(number)];
      const bool good = write(file, rank, phase);
      if (phase.resize && !heard(file.resize(*phase.resize)) && !heard(file.resize(*phase.resize)))
        return false;
      course_.attempted = std::max(course_.attempted, number + 1);
      if (!heard(is_last ? file.close() : file.flush()) && !is_last) continue;
      if (good && !(is_last && course_.failed)) course_.told = std::max(course_.told, number + 1);
      return true;
    }
    return true;
  }
  [[nodiscard]] bool write(SharedFile& file, int rank, const Phase& phase) const {
    bool good = true;
    for (const Write& write : phase.writes) {
      if (write.rank != rank) continue;
      const shared::Source sources[] = {{std::as_bytes(std::span(write.bytes)), write.offset}};
      if (!heard(file.write(sources))) good = heard(file.write(sources)) && good;
    }
    return good;
  }
  bool heard(const Status& status) const {
    course_.failed = course_.failed || !status.is_ok();
    return status.is_ok();
  }

  const Script& script_;
  Course& course_;
};

/// Runs it until storage fails. Returns what it has heard.
Course run(const Script& script, const Disk& disk, FaultPlan plan, std::uint64_t seed, bool& fired) {
  Course course;
  const auto faulty = storage::faulty_target(disk, plan);
  Job job;
  job.nodes = nodes_of(script.ranks, script.ranks_per_node);
  for (NodeShape& node : job.nodes) node.servers = script.servers;
  if (script.servers > 0) {
    job.limits_parks = true;
    job.on_server = [](session::Session& session) {
      return std::shared_ptr<void>(
          std::shared_ptr<shared::PageServer>(std::move(*shared::PageServer::create(session, false))));
    };
  }
  job.settings = cat("aggregators=", 1 + seed % 3);
  job.storage = faulty;
  job.seed = seed;
  SessionWorld world(job);
  const Program program(script, course);
  const Texts stuck = world.run([&](SessionRank& rank) { program.run(rank); });
  EXPECT_EQ(stuck, Texts());
  fired = faulty->fired();
  EXPECT_TRUE(fired || !course.failed);
  return course;
}

/// Opens the file for reading, as the next program does, on other ranks.
std::string found_by_next(const Disk& disk, FaultPlan plan = {}) {
  bool fired = false;
  Script script;
  script.mode = "r";
  script.safety = Safety::none;
  script.phases.resize(1);
  run(script, disk, plan, 1, fired);
  return content_of(*disk, name);
}

/// Returns the number of the phase whose content this is, or -1: first of those that are allowed.
int phase_of(const Script& script, const Course& course, const std::string& found) {
  for (int i = course.told; i <= course.attempted; ++i) {
    if (found == (i == 0 ? script.before : script.phases[static_cast<std::size_t>(i) - 1].content)) return i;
  }
  return -1;
}

void check(const Script& script, const Course& course, const Disk& disk, const std::string& how) {
  const std::string found = found_by_next(disk);
  EXPECT_GE(phase_of(script, course, found), 0)
      << how << ": told " << course.told << " attempted " << course.attempted << " size " << found.size();
  // Undo files that count no longer may be left, until the next program that writes.
  EXPECT_FALSE(*disk->exists(journal::flushed_path(name))) << how;
}

/// Ends a program at its first call, its second, ...
void end_at_any_call(std::uint64_t seed, Safety safety, Fault fault, bool lasting, int servers = 0) {
  Script script = random_script(seed, safety);
  if (servers > 0) {
    // Each node has room for fewer pages than there are.
    while (script.ranks != 3) script = random_script(++seed, safety);
    script.ranks_per_node = 1;
    script.servers = servers;
  }
  std::int64_t step = 1;
  for (std::int64_t call = 1;; call += step) {
    SCOPED_TRACE(testing::Message() << "seed " << seed << " call " << call);
    const Disk disk = disk_with(name, script.before);
    bool fired = false;
    const Course course = run(script, disk, {call, fault, storage::changing_calls, lasting}, seed, fired);
    if (!fired) {
      EXPECT_EQ(course.told, static_cast<int>(script.phases.size()));
      EXPECT_TRUE(content_of(*disk, name) == script.phases.back().content);
      EXPECT_EQ(*disk->list("."), (Texts{"data", "dir"}));
    }
    for (std::uint64_t i = 0; i < 3; ++i) {
      const auto way = static_cast<std::uint64_t>(call) + i * 5;
      check(script, course, disk->crash(any_way_of_losing(way), seed + way), "power");
    }
    // The program that brings the file back may lose power itself.
    const Disk again = disk->crash(any_way_of_losing(seed + static_cast<std::uint64_t>(call)), seed);
    found_by_next(again, {call % 12 + 1, Fault::io_error, storage::changing_calls, true});
    check(script, course, again->crash(any_way_of_losing(seed), seed), "power twice");
    check(script, course, disk, "killed");
    if (!fired || testing::Test::HasFailure()) return;
    if (call > 60 && std::getenv("TEST_ALL") == nullptr) step = 3;
  }
}

TEST(sim_shared_safety, a_loss_of_power_at_any_call_leaves_the_last_flush_with_journal) {
  for (std::uint64_t seed = 1; seed <= seeds(6); ++seed) {
    end_at_any_call(seed, Safety::journal, Fault::io_error, true);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(sim_shared_safety, a_loss_of_power_at_any_call_leaves_the_last_flush_with_rename) {
  for (std::uint64_t seed = 21; seed <= 20 + seeds(6); ++seed) {
    end_at_any_call(seed, Safety::rename, Fault::io_error, true);
    if (testing::Test::HasFailure()) return;
  }
}

/// Pages are stored, and so kept before, because servers need room.
TEST(sim_shared_safety, a_loss_of_power_or_a_kill_leaves_the_last_flush_where_servers_answer) {
  for (std::uint64_t seed = 81; seed <= 80 + seeds(2); ++seed) {
    end_at_any_call(seed, Safety::journal, Fault::io_error, true, 1);
    end_at_any_call(seed, Safety::rename, Fault::stopped, true, 1);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(sim_shared_safety, a_kill_at_any_call_leaves_the_last_flush) {
  for (std::uint64_t seed = 41; seed <= 40 + seeds(6); ++seed) {
    end_at_any_call(seed, seed % 2 == 0 ? Safety::journal : Safety::rename, Fault::stopped, true);
    if (testing::Test::HasFailure()) return;
  }
}

/// Storage recovers, and the program goes on: what it is told then must be true all the same.
TEST(sim_shared_safety, a_call_that_fails_once_harms_no_flushed_content) {
  for (std::uint64_t seed = 61; seed <= 60 + seeds(6); ++seed) {
    end_at_any_call(seed, seed % 2 == 0 ? Safety::journal : Safety::rename, Fault::no_space, false);
    if (testing::Test::HasFailure()) return;
  }
}

/// Programs of one file, each on what the one before has left. Returns the disk.
Disk live_on(std::uint64_t seed, int lives) {
  Scheduler dice(seed * 7919);
  std::string content(30'000, 'b');
  Disk disk = disk_with(name, content);
  for (int life = 0; life < lives; ++life) {
    const auto way = static_cast<std::uint64_t>(dice.random(0, 11));
    const bool loses_power = dice.once_in(2);
    const auto own_seed = seed * 100 + static_cast<std::uint64_t>(life);
    const Script script =
        random_script(own_seed, dice.once_in(2) ? Safety::journal : Safety::rename, content);
    // Some end before they have begun, and some close the file.
    const auto end = dice.random(1, dice.once_in(3) ? 12 : 250);
    const Fault fault = dice.once_in(2) ? Fault::stopped : Fault::io_error;
    bool fired = false;
    const Course course = run(script, disk, {end, fault, storage::changing_calls, true}, own_seed, fired);
    if (fired && loses_power) disk = disk->crash(any_way_of_losing(way), own_seed);
    // The next one may be ended while it brings the file back, and lose power, too.
    if (dice.once_in(3)) {
      found_by_next(disk, {dice.random(1, 12), Fault::io_error, storage::changing_calls, true});
      if (dice.once_in(2)) disk = disk->crash(any_way_of_losing(way + 1), own_seed);
    }
    const std::string found = found_by_next(disk);
    EXPECT_GE(phase_of(script, course, found), 0)
        << "seed " << seed << " life " << life << ": told " << course.told << " attempted "
        << course.attempted << " size " << found.size();
    if (testing::Test::HasFailure()) return disk;
    content = found;
  }
  return disk;
}

/// What a program leaves must not harm the one after the next.
TEST(sim_shared_safety, many_lives_of_one_file_leave_the_last_flush_of_each) {
  for (std::uint64_t seed = 1; seed <= seeds(25); ++seed) {
    const Disk disk = live_on(seed, 8);
    if (testing::Test::HasFailure()) return;
    // The last one closes the file, and leaves nothing beside it.
    bool fired = false;
    Script last;
    last.before = content_of(*disk, name);
    last.phases.resize(1);
    const Course course = run(last, disk, {}, seed, fired);
    EXPECT_EQ(course.told, 1);
    EXPECT_TRUE(content_of(*disk, name) == last.before) << seed;
    EXPECT_EQ(*disk->list("."), (Texts{"data", "dir"})) << seed;
  }
}

/// The program that wrote the file before may not have synchronised it.
TEST(sim_shared_safety, what_the_file_holds_when_it_is_opened_counts_as_flushed) {
  const std::string before(60'000, 'b');
  for (std::uint64_t way = 0; way < 12; ++way) {
    const Disk disk = storage::crash_target();
    EXPECT_TRUE(
        (*disk->open("data", storage::OpenMode::create))->write(std::as_bytes(std::span(before)), 0).is_ok());
    SessionWorld world({nodes_of(2, 1), {}, {}, disk, 1});
    const Texts stuck = world.run([&](SessionRank& rank) {
      const auto group = rank.group({0, 1});
      shared::Definition what{"data", *shared::read_mode("r+"), 4096, 16384};
      what.safety = Safety::journal;
      const auto file = SharedFile::open(*group, "open", what);
      const std::string after(50'000, 'a');
      const shared::Source sources[] = {{std::as_bytes(std::span(after)), 0}};
      EXPECT_TRUE((*file)->write(sources).is_ok());
      EXPECT_TRUE((*file)->sync().is_ok());
    });
    EXPECT_EQ(stuck, Texts());
    EXPECT_FALSE(content_of(*disk, name) == before);
    const Disk left = disk->crash(any_way_of_losing(way), way);
    EXPECT_TRUE(found_by_next(left) == before) << way;
  }
}

/// Rank 0 may be killed before the others, which go on storing for a while.
TEST(sim_shared_safety, nobody_brings_a_file_back_while_any_rank_may_store) {
  const Disk disk = disk_with(name, "before");
  SessionWorld world({nodes_of(3, 2), {}, {}, disk, 1});
  shared::Definition what{name, *shared::read_mode("r+"), 4096, 16384 * 2};
  what.safety = Safety::journal;
  int gone = 0;
  const Texts stuck = world.run([&](SessionRank& rank) {
    const auto group = rank.group({0, 1, 2});
    auto file = SharedFile::open(*group, "open", what);
    EXPECT_TRUE(file.is_ok()) << file.status().text();
    while (gone < rank.rank()) rank.compute(1'000'000);
    EXPECT_EQ(shared::bring_back_before_opening(*disk, what).code(), Code::state) << rank.rank();
    file->reset();
    ++gone;
  });
  EXPECT_EQ(stuck, Texts());
  EXPECT_TRUE(shared::bring_back_before_opening(*disk, what).is_ok());
  EXPECT_FALSE(*disk->exists(journal::flushed_path(name)));
}

/// A rank that has left a flush writes to pages of a node whose ranks are still in it.
TEST(sim_shared_safety, nobody_stores_over_a_flush_that_others_have_not_left) {
  constexpr int ranks = 4;
  constexpr Bytes size = Bytes{4} << 20;
  for (std::uint64_t seed = 1; seed <= seeds(30); ++seed) {
    const Disk disk = disk_with(name, "before");
    SessionWorld world({nodes_of(ranks, 2), {}, {}, disk, seed});
    const std::string flushed(static_cast<std::size_t>(size), 'f');
    const std::string after(static_cast<std::size_t>(size), 'a');
    const Texts stuck = world.run([&](SessionRank& rank) {
      const auto group = rank.group({0, 1, 2, 3});
      shared::Definition what{name, *shared::read_mode("w+"), 4096, 16384 * 2};
      what.safety = Safety::journal;
      const auto file = SharedFile::open(*group, "open", what);
      const auto write = [&](const std::string& bytes) {
        const shared::Source sources[] = {{std::as_bytes(std::span(bytes)), 0}};
        EXPECT_TRUE((*file)->write(sources).is_ok());
      };
      if (rank.rank() == 0) write(flushed);
      EXPECT_TRUE((*file)->flush().is_ok());
      if (static_cast<std::uint64_t>(rank.rank()) == seed % ranks) write(after);
      EXPECT_TRUE((*file)->sync().is_ok());
    });
    EXPECT_EQ(stuck, Texts());
    EXPECT_FALSE(content_of(*disk, name) == flushed);
    EXPECT_TRUE(found_by_next(disk->crash(any_way_of_losing(seed), seed)) == flushed) << seed;
    if (testing::Test::HasFailure()) return;
  }
}

/// Only what pages had been stored for was synchronised: not a size, nor a file that was emptied.
TEST(sim_shared_safety, a_flush_of_nothing_but_a_size_is_durable) {
  for (const char* mode : {"r+", "w+"}) {
    for (const std::optional<Bytes> size :
         {std::optional<Bytes>(10), std::optional<Bytes>(90'000), std::optional<Bytes>()}) {
      const Disk disk = disk_with(name, "a content that was there before");
      SessionWorld world({nodes_of(3, 2), {}, {}, disk, 1});
      Bytes expected = -1;
      const Texts stuck = world.run([&](SessionRank& rank) {
        const auto group = rank.group({0, 1, 2});
        const auto file =
            SharedFile::open(*group, "open", shared::Definition{name, *shared::read_mode(mode), 4096, 65536});
        const Status resized = size ? (*file)->resize(*size) : Status();
        EXPECT_TRUE(resized.is_ok());
        EXPECT_TRUE((*file)->flush().is_ok());
        expected = *(*file)->size();
        EXPECT_TRUE((*file)->close().is_ok());
      });
      EXPECT_EQ(stuck, Texts());
      const Disk left = disk->crash({Writes::dropped, Entries::lost}, 1);
      EXPECT_EQ(std::ssize(content_of(*left, name)), expected) << mode;
    }
  }
}

}  // namespace
}  // namespace tailrace::sim
