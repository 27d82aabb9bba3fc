// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// The invariants of docs/design/008-checkpoints.md, tested at every call that storage gets.
#include <cstdlib>
#include <filesystem>

#include "faces/checkpoint/ranks.hpp"
#include "ground/storage/faulty.hpp"
#include "ground/storage/replace.hpp"
#include "support/crash.hpp"

namespace tailrace::checkpoint {
namespace {

using storage::CrashPolicy;
using storage::CrashTarget;
using storage::Fault;
using storage::FaultPlan;
using storage::FaultyTarget;
using Writes = CrashPolicy::Writes;
using Entries = CrashPolicy::Entries;

constexpr int job_ranks = 4;
constexpr std::int64_t generations = 4;

struct Way {
  Mode mode;
  bool captured;
};
constexpr Way ways[] = {{Mode::parallel, true}, {Mode::parallel, false}, {Mode::local, true}};

std::vector<std::shared_ptr<storage::Target>> for_all(const std::shared_ptr<storage::Target>& target) {
  return std::vector<std::shared_ptr<storage::Target>>(job_ranks, target);
}

/// Saves until storage fails. Returns the generation that was last reported as committed.
std::int64_t run_until_it_stops(const std::shared_ptr<storage::Target>& target, Way way,
                                std::int64_t committed) {
  Job job(for_all(target), way.mode);
  const std::int64_t first = job.slots().next_generation();
  for (std::int64_t generation = first; job.begun().is_ok() && generation < first + generations;
       ++generation) {
    if (job.save(generation, way.captured).is_ok()) committed = generation;
  }
  return committed;
}

/// I1: a save that was reported as committed, or a newer one, is loaded. I2: a load gives one generation
/// (load checks that). I3: after the first commit a load always finds something.
std::int64_t loads_at_least(std::int64_t committed, storage::Target& disk, std::uint64_t seed) {
  constexpr int sizes[] = {1, 3, 4, 7};
  const std::int64_t loaded = load(disk, sizes[seed % 4]);
  EXPECT_GE(loaded, committed);
  return loaded;
}

template <typename Body>
void in_every_way_of_losing(const CrashTarget& disk, std::uint64_t seed, const Body& body) {
  for (const Writes writes : {Writes::dropped, Writes::kept, Writes::torn, Writes::garbage}) {
    for (const Entries entries : {Entries::lost, Entries::kept, Entries::some}) {
      SCOPED_TRACE(testing::Message()
                   << "writes " << static_cast<int>(writes) << " entries " << static_cast<int>(entries));
      body(disk.crash({writes, entries}, seed));
    }
  }
}

/// Ends a run with `fault` at its first call, its second, ... until it comes to its end. Calls `look` with
/// the run's storage, its last commit, and a seed.
template <typename Look>
void end_at_any_call(Fault fault, const Look& look) {
  for (const Way way : ways) {
    for (std::int64_t call = 1;; ++call) {
      SCOPED_TRACE(testing::Message() << "mode " << static_cast<int>(way.mode) << " call " << call);
      const auto disk = storage::crash_target();
      const auto faulty = storage::faulty_target(disk, {call, fault, storage::changing_calls, true});
      const std::int64_t committed = run_until_it_stops(faulty, way, 0);
      look(*disk, committed, static_cast<std::uint64_t>(call));
      if (testing::Test::HasFailure()) return;
      if (!faulty->fired()) break;
    }
  }
}

TEST(checkpoint_crash, a_loss_of_power_at_any_call_leaves_what_was_committed) {
  end_at_any_call(Fault::io_error, [](const CrashTarget& disk, std::int64_t committed, std::uint64_t seed) {
    in_every_way_of_losing(disk, seed, [&](const std::shared_ptr<CrashTarget>& left) {
      loads_at_least(committed, *left, seed);
    });
  });
}

TEST(checkpoint_crash, a_kill_at_any_call_leaves_what_was_committed) {
  end_at_any_call(Fault::stopped, [](CrashTarget& disk, std::int64_t committed, std::uint64_t seed) {
    loads_at_least(committed, disk, seed);
  });
}

/// Data that a killed run has left only in the machine's memory is no reason to give an older copy up,
/// whether the next run has loaded it or not.
void kill_and_then_lose_power(Way way, std::int64_t call, std::int64_t second, bool loads) {
  SCOPED_TRACE(testing::Message() << "mode " << static_cast<int>(way.mode) << " calls " << call << ", "
                                  << second << (loads ? " loaded" : ""));
  const auto disk = storage::crash_target();
  const auto faulty = storage::faulty_target(disk, {call, Fault::stopped, storage::changing_calls, true});
  std::int64_t committed = run_until_it_stops(faulty, way, 0);
  const auto seed = static_cast<std::uint64_t>(call);
  if (loads) {
    // A run does the same: it looks at the copies before it loads.
    EXPECT_TRUE(Slots("run", Slots::paths("run", 2), 0).look(*disk).is_ok());
    committed = loads_at_least(committed, *disk, seed);
  }
  const auto again = storage::faulty_target(disk, {second, Fault::io_error, storage::changing_calls, true});
  committed = run_until_it_stops(again, way, committed);
  in_every_way_of_losing(*disk, seed, [&](const auto& end) { loads_at_least(committed, *end, seed); });
}

TEST(checkpoint_crash, a_kill_and_then_a_loss_of_power_leave_what_was_committed_or_loaded) {
  for (const Way way : ways) {
    for (std::int64_t call = 25; call < 85; ++call) {
      for (std::int64_t second = 2; second < 32; second += 6) {
        for (const bool loads : {false, true}) kill_and_then_lose_power(way, call, second, loads);
        if (testing::Test::HasFailure()) return;
      }
    }
  }
}

TEST(checkpoint_fault, a_failure_is_told_and_the_next_save_succeeds) {
  for (const Way way : ways) {
    for (const Fault fault :
         {Fault::io_error, Fault::no_space, Fault::quota, Fault::interrupted, Fault::short_write}) {
      for (const int victim : {0, job_ranks - 1, -1}) {
        for (const bool for_good : {false, true}) {
          for (std::int64_t call = 1; call < 400; ++call) {
            SCOPED_TRACE(testing::Message()
                         << "mode " << static_cast<int>(way.mode) << " fault " << static_cast<int>(fault)
                         << " rank " << victim << " call " << call << (for_good ? " for good" : ""));
            const auto disk = storage::crash_target();
            auto targets = for_all(disk);
            std::shared_ptr<FaultyTarget> faulty = storage::faulty_target(disk, {});
            for (int rank = 0; rank < job_ranks; ++rank) {
              if (victim < 0 || victim == rank) targets[static_cast<std::size_t>(rank)] = faulty;
            }
            Job job(targets, way.mode);
            ASSERT_TRUE(job.save(1, way.captured).is_ok());
            faulty->restart({call, fault, storage::changing_calls, for_good});
            const Status status = job.save(2, way.captured);
            const bool fired = faulty->fired();
            const bool hidden = fault == Fault::interrupted || fault == Fault::short_write;
            if (!fired || hidden) ASSERT_TRUE(status.is_ok()) << status.text();
            faulty->restart({});
            // I5: the failed save is no copy, and the one before is there.
            ASSERT_EQ(load(*disk, 3), status.is_ok() ? 2 : 1);
            // I6: the next save succeeds.
            const Status next = job.save(3, way.captured);
            ASSERT_TRUE(next.is_ok()) << next.text();
            ASSERT_EQ(load(*disk, 1), 3);
            if (!fired) break;
            if (hidden && call > 40) break;
          }
        }
      }
    }
  }
}

/// I7: corruption is never silent. The test changes every byte on which anything depends, or cuts off
/// everything behind it.
TEST(checkpoint_damage, any_changed_byte_is_noticed) {
  const Bytes stride = std::getenv("TEST_ALL") != nullptr ? 5 : 11;
  for (const Mode mode : {Mode::parallel, Mode::local}) {
    for (const Coding coding : {Coding::raw, Coding::zstd}) {
      const auto disk = storage::crash_target();
      Job job(for_all(disk), mode, {coding, 1});
      ASSERT_TRUE(job.save(1, true).is_ok());
      ASSERT_TRUE(job.save(2, true).is_ok());
      const std::vector<std::string> names = *disk->list(".");
      for (const std::string& name : names) {
        if (!name.starts_with("run.1")) continue;
        const auto file = *disk->open(name, storage::OpenMode::existing);
        const Bytes size = *file->size();
        for (Bytes at = 0; at < size; at += 1 + at % stride) {
          std::byte before{};
          ASSERT_EQ(*file->read({&before, 1}, at), 1);
          const std::byte changed = before ^ std::byte{0x10};
          ASSERT_TRUE(file->write({&changed, 1}, at).is_ok());
          SCOPED_TRACE(testing::Message() << name << " byte " << at);
          // Bytes between parts and after the header's record belong to nothing: then the copy is as it was.
          const std::int64_t loaded = load(*disk, 3);
          ASSERT_TRUE(loaded == 1 || loaded == 2);
          ASSERT_FALSE(testing::Test::HasFailure());
          ASSERT_TRUE(file->write({&before, 1}, at).is_ok());
        }
        const auto whole = disk->crash({Writes::kept, Entries::kept}, 0);
        for (Bytes cut = size - 1; cut > 0; cut -= 1 + size / 50) {
          const auto shorter = whole->crash({Writes::kept, Entries::kept}, 0);
          const auto victim = *shorter->open(name, storage::OpenMode::existing);
          ASSERT_TRUE(victim->truncate(cut).is_ok());
          ASSERT_EQ(load(*shorter, 1), 1) << name << " cut at " << cut;
        }
      }
    }
  }
}

TEST(checkpoint_damage, parts_of_another_generation_are_noticed) {
  const auto disk = storage::crash_target();
  Job job(for_all(disk), Mode::local);
  for (std::int64_t generation = 1; generation <= 3; ++generation)
    ASSERT_TRUE(job.save(generation, true).is_ok());
  // Generations 2 and 3 are there: part 1 of the newest is the older one's.
  ASSERT_TRUE(disk->rename("run.1.r00001", "run.0.r00001").is_ok());
  EXPECT_EQ(load(*disk, 3), 0) << "both have lost a part";
  const Result<Copy> copy = read_copy(*disk, "run.0");
  EXPECT_EQ(copy.status().code(), Code::corrupt);
  EXPECT_NE(copy.status().text().find("belongs to generation 2"), std::string::npos) << copy.status().text();
}

/// Until all parts are sealed nothing says that they are.
TEST(checkpoint_crash, a_copy_is_committed_by_its_commit_record_alone) {
  for (const Mode mode : {Mode::parallel, Mode::local}) {
    const auto disk = storage::crash_target();
    RankData data(0, 1);
    data.fill(1);
    Saving saving(*disk, {"run.0", mode, {Uuid::random(), 1}, {}, 0}, 0, 1, data.items());
    saving.place({saving.part_bytes()});
    ASSERT_TRUE(saving.write().is_ok());
    EXPECT_EQ(read_header(*disk, "run.0").status().code(), Code::corrupt);
    ASSERT_TRUE(saving.seal().is_ok());
    EXPECT_FALSE(read_header(*disk, "run.0")->committed);
    ASSERT_TRUE(saving.commit().is_ok());
    EXPECT_TRUE(read_header(*disk, "run.0")->committed);
    EXPECT_TRUE(saving.close().is_ok());
  }
}

/// Makes a file of nothing but this header, of a save that was committed, and a hole up to `size`.
void put_header(storage::Target& target, const std::string& path, std::int64_t generation, Bytes directory,
                Bytes size) {
  Header header{{Uuid::random(), generation}, Mode::parallel, true, 1, 0, {Header::size, directory, 0}};
  const auto file = *target.open(path, storage::OpenMode::create);
  EXPECT_TRUE(file->write(encode(header), 0).is_ok() && file->truncate(size).is_ok());
}

TEST(checkpoint_slots, no_name_and_no_header_of_a_generation_that_cannot_be_spoils_what_is_saved) {
  constexpr std::int64_t last = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t stray : {last, last - 1, std::int64_t{1} << 48, std::int64_t{1} << 41}) {
    const auto disk = storage::crash_target();
    const std::string undo = "run.u" + std::to_string(stray) + ".0000000000000000.0";
    ASSERT_TRUE((*disk->open(undo, storage::OpenMode::create))->close().is_ok());
    put_header(*disk, "run.1", stray, 100, 8192);
    put_header(*disk, "run.g" + std::to_string(stray), stray, 100, 8192);
    Job job(for_all(disk), Mode::parallel);
    ASSERT_TRUE(job.begun().is_ok());
    EXPECT_EQ(job.slots().next_generation(), 1);
    ASSERT_TRUE(job.save(1, false).is_ok());
    EXPECT_EQ(load(*disk, 2), 1);
    ASSERT_TRUE(job.save(2, false).is_ok());
    EXPECT_EQ(load(*disk, 2), 2);
    EXPECT_EQ(Job(for_all(disk), Mode::parallel).slots().next_generation(), 3);
  }
}

TEST(checkpoint_slots, a_save_behind_the_last_generation_that_can_be_loaded_is_refused) {
  const auto disk = storage::crash_target();
  Job job(for_all(disk), Mode::parallel);
  ASSERT_TRUE(job.save(Header::most_generation - 1, false).is_ok());
  EXPECT_TRUE(job.slots().check_next_generation().is_ok());
  ASSERT_TRUE(job.save(Header::most_generation, false).is_ok());
  EXPECT_EQ(load(*disk, 2), Header::most_generation);
  Job next(for_all(disk), Mode::parallel);
  EXPECT_EQ(next.slots().check_next_generation().code(), Code::corrupt);
  EXPECT_NE(next.slots().check_next_generation().text().find("run"), std::string::npos);
}

TEST(checkpoint_slots, a_header_that_asks_for_a_directory_of_1_tib_hides_no_older_copy) {
  const auto disk = storage::crash_target();
  ASSERT_TRUE(Job(for_all(disk), Mode::parallel).save(1, false).is_ok());
  put_header(*disk, "run.1", 2, Bytes{1} << 40, Bytes{1} << 41);
  // A search through copies passes over damage, but not over a lack of memory.
  EXPECT_TRUE(is_damage(read_directory(*disk, "run.1").status()));
  EXPECT_TRUE(is_damage(look_at(*disk, {"run.1"}).front().status));
  EXPECT_EQ(load(*disk, 3), 1);
  Job next(for_all(disk), Mode::parallel);
  ASSERT_TRUE(next.begun().is_ok());
  EXPECT_EQ(next.slots().place_for(next.slots().next_generation()), "run.1");
}

TEST(checkpoint_slots, a_whole_copy_that_was_never_committed_is_replaced_before_a_committed_one) {
  const auto disk = storage::crash_target();
  ASSERT_TRUE(Job(for_all(disk), Mode::parallel).save(1, false).is_ok());
  RankData data(0, 1);
  data.fill(2);
  Saving saving(*disk, {"run.1", Mode::parallel, {Uuid::random(), 2}, {}, 0}, 0, 1, data.items());
  saving.place({saving.part_bytes()});
  ASSERT_TRUE(saving.write().is_ok() && saving.seal().is_ok() && saving.close().is_ok());
  Slots slots("run", Slots::paths("run", 2), 0);
  ASSERT_TRUE(slots.look(*disk).status().is_ok());
  EXPECT_EQ(slots.good(), std::vector<std::string>{"run.0"});
  EXPECT_EQ(slots.place_for(slots.next_generation()), "run.1");
}

/// A part that is sealed, in a file of which the name is durable.
std::unique_ptr<Saving> sealed_save(CrashTarget& disk) {
  static RankData data(0, 1);
  data.fill(1);
  auto saving = std::make_unique<Saving>(disk, SavePlan{"run.0", Mode::parallel, {Uuid::random(), 1}, {}, 0},
                                         0, 1, data.items());
  saving->place({saving->part_bytes()});
  EXPECT_TRUE(saving->write().is_ok() && saving->seal().is_ok());
  EXPECT_TRUE(disk.sync_directory_of("run.0").is_ok());
  return saving;
}

TEST(checkpoint_crash, a_failed_save_does_not_come_back_with_a_loss_of_power) {
  const auto disk = storage::crash_target();
  const auto saving = sealed_save(*disk);
  EXPECT_TRUE(read_directory(*disk->crash({}, 1), "run.0").is_ok()) << "it can come back";
  saving->abandon();
  EXPECT_TRUE(saving->close().is_ok());
  EXPECT_FALSE(read_directory(*disk->crash({}, 1), "run.0").is_ok());
}

/// The failed save could have the generation of the next one.
TEST(checkpoint_crash, what_a_run_finds_of_a_failed_save_is_what_a_loss_of_power_leaves) {
  const auto disk = storage::crash_target();
  ASSERT_TRUE(sealed_save(*disk)->close().is_ok());
  {
    const auto file = *disk->open("run.0", storage::OpenMode::existing);
    ASSERT_TRUE(file->write(ByteVector(static_cast<std::size_t>(Header::record)), 0).is_ok());
  }
  Job next(for_all(disk), Mode::parallel);
  ASSERT_TRUE(next.save(1, false).is_ok());
  const auto left = disk->crash({}, 1);
  EXPECT_FALSE(read_directory(*left, "run.0").is_ok());
  EXPECT_TRUE(read_directory(*left, "run.1").is_ok());
}

/// The zeros may be those with which the other run's save begins.
TEST(checkpoint_slots, the_copy_of_another_run_behind_a_link_keeps_its_header) {
  const std::filesystem::path before = std::filesystem::current_path();
  const std::filesystem::path directory = testing::TempDir() + "checkpoint-behind-a-link";
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  std::filesystem::current_path(directory);
  const std::shared_ptr<storage::Target> disk = storage::posix_target();
  const std::string zeros = std::string(static_cast<std::size_t>(mark_offset), '\0') + std::string(file_mark);
  ASSERT_TRUE(storage::replace_file(*disk, "other.0", zeros, "other.0.new").is_ok());
  std::filesystem::create_symlink("other.0", "run.1");
  Job job(for_all(disk), Mode::parallel);
  {
    const auto file = *disk->open("other.0", storage::OpenMode::existing);
    const std::string header(static_cast<std::size_t>(Header::record), 'x');
    ASSERT_TRUE(file->write(std::as_bytes(std::span(header)), 0).is_ok());
  }
  ASSERT_EQ(job.slots().failed(), std::vector<std::string>{"run.1"});
  EXPECT_TRUE(job.save(1, false).is_ok());
  const std::string left = *file_beginning(**disk->open("other.0", storage::OpenMode::read));
  EXPECT_EQ(left.front(), 'x');
  std::filesystem::current_path(before);
  std::filesystem::remove_all(directory);
}

TEST(checkpoint_slots, a_copy_with_a_damaged_header_is_known_and_what_no_checkpoint_has_written_is_too) {
  const auto disk = storage::crash_target();
  const auto write = [&](const std::string& path, std::string_view text) {
    const auto file = *disk->open(path, storage::OpenMode::keep);
    EXPECT_TRUE(file->write(std::as_bytes(std::span(text)), 0).is_ok());
  };
  ASSERT_TRUE(Job(for_all(disk), Mode::parallel).save(1, false).is_ok());
  write("run.0", std::string(128, 'x'));
  Job next(for_all(disk), Mode::parallel);
  for (const std::int64_t generation : {2, 3}) {
    const Status saved = next.save(generation, false);
    ASSERT_TRUE(saved.is_ok()) << saved.text();
  }
  write("run.0", std::string(600, 'x'));
  const Status refused = Job(for_all(disk), Mode::parallel).save(4, false);
  EXPECT_EQ(refused.code(), Code::state);
  EXPECT_NE(refused.text().find("run.0"), std::string::npos) << refused.text();
  EXPECT_EQ(load(*disk, 2), 2);
}

TEST(checkpoint_slots, the_files_of_others_stay_that_come_to_the_places_of_parts) {
  const auto disk = storage::crash_target();
  const auto contents = [&](const std::string& path) {
    return *file_beginning(**disk->open(path, storage::OpenMode::read));
  };
  const auto write = [&](const std::string& path) {
    const std::string text(600, 'x');
    const auto file = *disk->open(path, storage::OpenMode::create);
    EXPECT_TRUE(file->write(std::as_bytes(std::span(text)), 0).is_ok());
  };
  write("run.0.r00001");
  write("run.1.r00007");
  Job job(for_all(disk), Mode::local);
  const Status refused = job.save(1, false);
  EXPECT_EQ(refused.code(), Code::state);
  EXPECT_NE(refused.text().find("run.0.r00001"), std::string::npos) << refused.text();
  EXPECT_FALSE(*disk->exists("run.0"));
  ASSERT_TRUE(disk->remove("run.0.r00001").is_ok());
  for (const std::int64_t generation : {1, 2, 3}) ASSERT_TRUE(job.save(generation, false).is_ok());
  EXPECT_EQ(contents("run.1.r00007").front(), 'x') << "no part of a larger save";
  // The copy's parts are known, and the first rank does not look at them again: the part's own rank does.
  write("run.1.r00001");
  EXPECT_EQ(job.save(4, false).code(), Code::state);
  EXPECT_EQ(contents("run.1.r00001").front(), 'x');
  EXPECT_EQ(load(*disk, 2), 3);
}

TEST(checkpoint_slots, a_part_without_a_mark_is_known_by_its_footer) {
  const auto disk = storage::crash_target();
  Job job(for_all(disk), Mode::local);
  ASSERT_TRUE(job.save(1, false).is_ok());
  const auto file = *disk->open("run.0.r00001", storage::OpenMode::existing);
  const std::string data(600, 'x');
  ASSERT_TRUE(file->write(std::as_bytes(std::span(data)), 0).is_ok());
  Job next(for_all(disk), Mode::local);
  for (const std::int64_t generation : {2, 3, 4}) ASSERT_TRUE(next.save(generation, false).is_ok());
  EXPECT_EQ(load(*disk, 3), 4);
}

TEST(checkpoint_slots, the_oldest_copy_is_replaced_first_also_among_broken_ones) {
  Slots slots("run", Slots::paths("run", 3), 0);
  EXPECT_EQ(slots.place_for(1), "run.0");
  slots.committed(4, "run.0");
  slots.committed(2, "run.1");
  EXPECT_EQ(slots.place_for(5), "run.2");
  slots.committed(3, "run.2");
  EXPECT_EQ(slots.place_for(5), "run.1");
  slots.broken("run.0");
  EXPECT_EQ(slots.place_for(5), "run.0");
  slots.broken("run.2");
  EXPECT_EQ(slots.place_for(5), "run.2");
  slots.begun(5, "run.0");  // nothing is left of the copy there
  EXPECT_EQ(slots.place_for(6), "run.0");
}

TEST(checkpoint_giving_up, is_told_from_any_failure) {
  const auto disk = storage::crash_target();
  RankData data(0, 1);
  Saving saving(*disk, {"run.0", Mode::parallel, {Uuid::random(), 1}, {}, 0}, 0, 1, data.items());
  saving.place({saving.part_bytes()});
  saving.cancel();
  EXPECT_TRUE(is_given_up(saving.write()));
  EXPECT_TRUE(is_given_up(saving.write().in("on the way to all ranks")));
  // A call that storage takes for a mistake of its caller has the same code.
  saving.set_make_durable([&] { return Status(Code::state, "the file is closed"); });
  const Status failed = saving.seal();
  EXPECT_EQ(failed.code(), Code::state);
  EXPECT_FALSE(is_given_up(failed));
  EXPECT_FALSE(is_given_up({}));
  EXPECT_EQ(first_cause(given_up().at({given_up().cause().step, -1, 0}),
                        Status(Code::space, "full").at({-1, -1, 7}))
                .code(),
            Code::space);
  EXPECT_TRUE(saving.close().is_ok());
}

TEST(checkpoint_slots, what_more_ranks_have_left_is_removed) {
  const auto disk = storage::crash_target();
  {
    Job job(for_all(disk), Mode::local);
    for (std::int64_t generation = 1; generation <= 2; ++generation)
      ASSERT_TRUE(job.save(generation, true).is_ok());
  }
  Job smaller({disk, disk}, Mode::local);
  EXPECT_EQ(smaller.slots().next_generation(), 3);
  for (std::int64_t generation = 3; generation <= 4; ++generation)
    ASSERT_TRUE(smaller.save(generation, false).is_ok());
  EXPECT_EQ(disk->list(".")->size(), 6U);
  EXPECT_EQ(load(*disk, 5), 4);
}

}  // namespace
}  // namespace tailrace::checkpoint
