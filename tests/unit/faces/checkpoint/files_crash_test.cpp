// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Files that are written over between saves with overwritten=journal: wherever a run ends, the next one finds
// them as they were at the generation that it loads.
#include <gtest/gtest.h>

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <functional>
#include <limits>

#include "faces/checkpoint/files_life.hpp"
#include "faces/restart/run_state.hpp"
#include "ground/base/checksum.hpp"
#include "ground/base/text.hpp"
#include "ground/journal/flushed.hpp"
#include "ground/storage/faulty.hpp"
#include "support/crash.hpp"

namespace tailrace::checkpoint {
namespace {

using storage::Call;
using storage::CrashPolicy;
using storage::CrashTarget;
using storage::Fault;
using storage::FaultPlan;
using Writes = CrashPolicy::Writes;
using Entries = CrashPolicy::Entries;
using Disk = std::shared_ptr<CrashTarget>;

constexpr CrashPolicy ways_of_losing[] = {
    {Writes::dropped, Entries::lost}, {Writes::dropped, Entries::kept}, {Writes::dropped, Entries::some},
    {Writes::kept, Entries::lost},    {Writes::kept, Entries::kept},    {Writes::kept, Entries::some},
    {Writes::torn, Entries::lost},    {Writes::torn, Entries::kept},    {Writes::torn, Entries::some},
    {Writes::garbage, Entries::lost}, {Writes::garbage, Entries::kept}, {Writes::garbage, Entries::some}};

CrashPolicy way_of_losing(std::uint64_t number) { return ways_of_losing[number % std::size(ways_of_losing)]; }

/// Checks what a run that only loads finds. Changes the tree as that run does.
std::int64_t check_recovery(const Disk& disk, History& history, const std::string& name = "run") {
  Life life(disk, history, {name}, 0);
  EXPECT_TRUE(life.is_alive());
  EXPECT_GE(life.loaded(), history[name].committed);
  if (life.loaded() > 0) life.check_files();
  return life.loaded();
}

/// Loses the newest copy: the one before is loaded if there is one, and the files are brought back to it.
/// Returns true if there was one.
bool check_the_copy_before(const Disk& disk, History history) {
  std::string newest;
  std::int64_t lost = 0;
  int whole = 0;
  for (const Found& found : look_at(*disk, *find_copies(*disk, "run"))) {
    const Result<Copy> copy = read_copy(*disk, found.path);
    if (!copy.is_ok() || !is_good(*disk, *copy)) continue;
    if (whole++ > 0) continue;
    newest = found.path;
    lost = copy->generation();
  }
  if (whole < 2) return false;
  const auto file = *disk->open(newest, storage::OpenMode::existing);
  ByteVector begin(16);
  EXPECT_TRUE(file->read(begin, 0).is_ok());
  for (std::byte& each : begin) each ^= std::byte{0x5a};
  EXPECT_TRUE(file->write(begin, 0).is_ok() && file->sync().is_ok());
  history["run"].committed = 1;
  EXPECT_LT(check_recovery(disk, history), lost);
  return true;
}

void check_power_loss(const CrashTarget& disk, History& history, std::uint64_t seed) {
  for (const CrashPolicy& policy : ways_of_losing) {
    SCOPED_TRACE(testing::Message() << "writes " << static_cast<int>(policy.writes) << " entries "
                                    << static_cast<int>(policy.entries));
    check_recovery(disk.crash(policy, seed), history);
  }
}

FaultPlan for_good(std::int64_t call, Fault fault) { return {call, fault, storage::changing_calls, true}; }

struct Script {
  std::uint64_t seed = 0;
  int saves = 4;
  Bytes first_bytes = 3000;
  std::vector<std::string> checkpoints = {"run"};
};
const Script scripts[] = {{1}, {2}, {3, 3, 150'000}};

/// The files of the newest whole copy, as `tailrace run-state` finds them.
restart::Recorded recorded_now(storage::Target& target, std::int64_t& generation) {
  const Loaded loaded = load_newest(target, "run");
  generation = loaded.generation;
  restart::Recorded recorded;
  recorded.files = loaded.positions;
  for (journal::Position& file : recorded.files)
    file.undo = journal::undo_files_of(file, generation, loaded.undo);
  return recorded;
}

/// Expects that the files have the bytes that the generation has recorded.
void expect_files_at(storage::Target& target, const restart::Recorded& recorded,
                     std::map<std::string, Held>& captured) {
  for (const journal::Position& position : recorded.files) {
    const auto file = target.open(position.path, storage::OpenMode::read);
    ASSERT_TRUE(file.is_ok()) << file.status().text();
    EXPECT_TRUE(all_of(**file) == captured[position.path].bytes) << position.path;
  }
  const auto states = restart::look_at_outputs(target, recorded);
  for (const restart::OutputState& state : states)
    EXPECT_EQ(state.outlook, restart::Outlook::agrees) << state.path << ": " << state.text;
}

/// Restores the files from outside, is ended at the call `nth`, and restores them once more. Returns true if
/// the first restore came to its end.
bool restore_twice(const Disk& disk, History& history, std::int64_t nth, Fault fault) {
  std::int64_t generation = 0;
  const restart::Recorded recorded = recorded_now(*disk, generation);
  if (generation == 0) return true;
  bool was_ahead = restart::worst_of(restart::look_at_outputs(*disk, recorded)) == restart::Outlook::ahead;
  const auto faulty = storage::faulty_target(disk, for_good(nth, fault));
  const Status first = restart::restore_outputs(*faulty, recorded);
  const auto seed = static_cast<std::uint64_t>(nth);
  const Disk left = fault == Fault::stopped ? disk : disk->crash(way_of_losing(seed), seed);
  const Status second = restart::restore_outputs(*left, recorded);
  EXPECT_TRUE(second.is_ok()) << second.text();
  expect_files_at(*left, recorded, history["run"].captured[generation]);
  EXPECT_TRUE(was_ahead || first.is_ok() || faulty->fired()) << first.text();
  check_recovery(left->crash({}, seed), history);  // what was restored is durable, and a run goes on
  return first.is_ok();
}

/// Runs a script until storage fails at that call. Returns true if it came to its end.
bool run_until(const Disk& disk, History& history, const Script& script, FaultPlan plan) {
  const auto faulty = storage::faulty_target(disk, plan);
  Life life(faulty, history, script.checkpoints, script.seed, script.first_bytes);
  life.run(script.saves);
  // Files that cannot be cleaned up fail nothing.
  EXPECT_TRUE(life.is_alive() || faulty->fired());
  return !faulty->fired();
}

/// Ends a run at its first call, at that `step` further on, ... until it comes to its end.
void end_at_any_call(const Script& script, Fault fault, std::int64_t step,
                     const std::function<void(const Disk&, History&, std::uint64_t)>& look) {
  for (std::int64_t call = 1;; call += step) {
    SCOPED_TRACE(testing::Message() << "script " << script.seed << " call " << call);
    const Disk disk = storage::crash_target();
    History history;
    const bool ended = run_until(disk, history, script, for_good(call, fault));
    look(disk, history, static_cast<std::uint64_t>(call));
    if (ended || testing::Test::HasFailure()) break;
  }
}

TEST(files_crash, a_loss_of_power_at_any_call_leaves_what_brings_files_back) {
  for (const Script& script : scripts) {
    end_at_any_call(script, Fault::io_error, script.first_bytes > 10'000 ? 3 : 1,
                    [](const Disk& disk, History& history, std::uint64_t seed) {
                      check_power_loss(*disk, history, seed);
                    });
  }
}

TEST(files_crash, a_kill_at_any_call_leaves_what_brings_files_back) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    end_at_any_call({seed}, Fault::stopped, 1, [](const Disk& disk, History& history, std::uint64_t) {
      check_recovery(disk, history);
      check_recovery(disk, history);  // what a run has brought back and left counts as little
    });
  }
}

TEST(files_crash, a_restore_from_outside_ended_anywhere_and_repeated_brings_files_back) {
  for (std::uint64_t seed = 51; seed <= 53; ++seed) {
    end_at_any_call({seed}, Fault::stopped, 5, [](const Disk& disk, History& history, std::uint64_t call) {
      const Disk left = disk->crash({Writes::kept, Entries::kept}, call);
      for (std::int64_t nth = 1;; nth += 2) {
        const Fault fault = nth % 4 == 1 ? Fault::stopped : Fault::io_error;
        SCOPED_TRACE(testing::Message() << "restored until call " << nth);
        if (restore_twice(left->crash({Writes::kept, Entries::kept}, call), history, nth, fault) ||
            testing::Test::HasFailure())
          break;
      }
    });
  }
}

TEST(files_crash, a_shared_file_that_was_left_open_is_seen_and_goes_back_to_its_last_flush) {
  const Disk disk = storage::crash_target();
  const ByteVector flushed(100, std::byte{'f'}), other(150, std::byte{'o'});
  const auto file = *disk->open("pages", storage::OpenMode::create);
  EXPECT_TRUE(file->write(flushed, 0).is_ok());
  const std::uint64_t sample = checksum(ByteVector(200, std::byte{'f'}));
  EXPECT_TRUE(journal::prepare_flushed(*disk, "pages", {1, 100, sample, 5}).is_ok());
  EXPECT_TRUE(journal::commit_flushed(*disk, "pages").is_ok());
  auto undo =
      journal::UndoWriter::create(*disk, journal::flushed_path("pages"), 1, journal::name_beside("pages"));
  ASSERT_TRUE(undo.is_ok()) << undo.status().text();
  EXPECT_TRUE((*undo)->add(journal::UndoRecord::What::bytes, 0, flushed).is_ok() && (*undo)->seal().is_ok());
  EXPECT_TRUE(file->write(other, 0).is_ok());
  const auto states = restart::look_at_shared_files(*disk, {".", "."});
  ASSERT_EQ(states.size(), 1U);
  EXPECT_EQ(states[0].path, "pages");
  EXPECT_EQ(states[0].outlook, restart::Outlook::ahead);
  EXPECT_EQ(states[0].bytes, 150);
  EXPECT_EQ(states[0].recorded_bytes, 100);
  {
    const auto held = journal::lock_flushed(*disk, "pages");
    ASSERT_TRUE(held.is_ok());
    EXPECT_EQ(restart::restore_shared_file(*disk, "pages").status().code(), Code::state);
    EXPECT_TRUE(all_of(*file) == other);
  }
  // As checkpoints have recorded it: at this flush, at an earlier one, and before it was opened anew.
  const auto look = [&](std::int64_t generation, std::uint64_t bytes, std::uint64_t open = 5) {
    const auto all = restart::look_at_shared_files(*disk, {"."}, {{"./pages", generation, 100, bytes, open}});
    return all.size() == 1 ? all[0] : restart::OutputState();
  };
  EXPECT_EQ(look(1, sample).outlook, restart::Outlook::ahead);
  EXPECT_NE(look(1, sample).text.find("its last flush, that of the checkpoint"), std::string::npos);
  EXPECT_NE(look(0, sample).text.find("1 flush ahead of the checkpoint"), std::string::npos);
  for (const std::int64_t generation : {0, 1, 7}) {
    const std::string text = look(generation, sample + 1, 6).text;
    EXPECT_NE(text.find("opened it anew since the checkpoint"), std::string::npos) << text;
    EXPECT_EQ(look(generation, sample, 6).text, text) << "what lies between both ends is not known";
    EXPECT_EQ(look(generation, 0, 6).text, text) << "nobody knows what the checkpoint has recorded";
    // As an early version has recorded it.
    EXPECT_NE(look(generation, sample, 0).text.find("that of the checkpoint"), std::string::npos);
  }
  const Status restored = restart::restore_shared_file(*disk, "pages").status();
  EXPECT_TRUE(restored.is_ok()) << restored.text();
  EXPECT_TRUE(all_of(*file) == flushed);
  EXPECT_TRUE(restart::look_at_shared_files(*disk, {"."}).empty());
  EXPECT_EQ(look(1, sample, 0).outlook, restart::Outlook::agrees);
  EXPECT_EQ(look(1, sample + 1, 0).outlook, restart::Outlook::stays);
  EXPECT_EQ(look(1, sample).outlook, restart::Outlook::stays) << "nothing tells what lies between both ends";
  EXPECT_TRUE(disk->remove("pages").is_ok());
  EXPECT_EQ(look(1, sample).outlook, restart::Outlook::stays);
  EXPECT_NE(look(1, sample).text.find("is not there"), std::string::npos);
}

TEST(files_crash, a_shared_file_that_a_program_holds_is_passed_over) {
  const std::string directory = cat(testing::TempDir(), "tailrace-held-", ::getpid());
  const std::string path = directory + "/pages";
  const auto disk = storage::default_target();
  ASSERT_TRUE(disk->make_directories(directory).is_ok());
  const auto file = *disk->open(path, storage::OpenMode::create);
  EXPECT_TRUE(file->write(ByteVector(150), 0).is_ok());
  EXPECT_TRUE(journal::prepare_flushed(*disk, path, {1, 100}).is_ok());
  EXPECT_TRUE(journal::commit_flushed(*disk, path).is_ok());
  {
    const auto held = journal::lock_flushed(*disk, path);
    ASSERT_TRUE(held.is_ok());
    const auto states = restart::look_at_shared_files(*disk, {directory});
    ASSERT_EQ(states.size(), 1U);
    EXPECT_EQ(states[0].outlook, restart::Outlook::agrees);
    EXPECT_NE(states[0].text.find("held by"), std::string::npos) << states[0].text;
  }
  EXPECT_EQ(restart::look_at_shared_files(*disk, {directory}).at(0).outlook, restart::Outlook::ahead);
  std::filesystem::remove_all(directory);
}

TEST(files_crash, damaged_covered_files_are_an_error) {
  restart::Recorded recorded;
  recorded.covered = {{"log", 10, 3}};
  ASSERT_TRUE(restart::Recorded::unpack(recorded.pack()).is_ok());
  for (const restart::CoveredFile& damaged : {restart::CoveredFile{"", 10, 3}, {"log", -1, 3}}) {
    recorded.covered[0] = damaged;
    EXPECT_EQ(restart::Recorded::unpack(recorded.pack()).status().code(), Code::corrupt);
  }
}

TEST(files_crash, restart_files_and_shared_files_are_recorded_behind_covered_files) {
  restart::Recorded recorded;
  recorded.covered = {{"log", 10, 3}};
  const ByteVector before = recorded.pack();
  recorded.shared = {{"pages", 4, 100, 7, 9}};
  for (const bool has_restart : {false, true}) {
    if (has_restart) recorded.covered.push_back({"restart.nc", 20, 5, true});
    const auto found = restart::Recorded::unpack(recorded.pack());
    ASSERT_TRUE(found.is_ok()) << found.status().text();
    EXPECT_TRUE(found->covered == recorded.covered && found->shared == recorded.shared);
    const ByteVector bytes = recorded.pack();
    EXPECT_TRUE(std::equal(before.begin(), before.end(), bytes.begin()));
    for (std::size_t cut = before.size() + 1; cut < bytes.size(); ++cut) {
      const bool is_list = cut == before.size() + (has_restart ? 42 : 8);  // whole, without shared files
      const bool is_early = cut == bytes.size() - 8;                       // whole, without their opens
      const auto part = restart::Recorded::unpack(std::span(bytes).first(cut));
      EXPECT_EQ(part.is_ok(), is_list || is_early) << cut;
      if (is_early) EXPECT_EQ(part->shared, (std::vector<restart::SharedFlush>{{"pages", 4, 100, 7}}));
    }
  }
  recorded.shared[0].size = -1;
  EXPECT_EQ(restart::Recorded::unpack(recorded.pack()).status().code(), Code::corrupt);
}

TEST(files_crash, without_the_newest_copy_files_are_brought_back_to_the_one_before) {
  int times = 0;
  for (std::uint64_t seed = 11; seed <= 14; ++seed) {
    end_at_any_call({seed}, Fault::io_error, 2, [&](const Disk& disk, History& history, std::uint64_t call) {
      const Disk left = disk->crash(way_of_losing(call), call);
      if (!check_the_copy_before(left, history)) return;
      ++times;
      // And a run that goes on from there may rely on what it saves.
      history["run"].committed = 1;
      run_until(left, history, {seed + call, 2}, {});
      check_recovery(left->crash(way_of_losing(call + 1), call), history);
    });
  }
  EXPECT_GT(times, 100);
}

/// A second run goes on from where the first was ended, and is ended itself.
void live_twice(const Script& first, std::int64_t call, bool killed, std::int64_t second, int& fallbacks) {
  SCOPED_TRACE(testing::Message() << "calls " << call << (killed ? " killed, " : " lost, ") << second);
  const auto seed = static_cast<std::uint64_t>(call + second);
  Disk disk = storage::crash_target();
  History history;
  run_until(disk, history, first, for_good(call, killed ? Fault::stopped : Fault::io_error));
  if (!killed) disk = disk->crash(way_of_losing(seed), seed);
  if (second % 4 == 0 && history["run"].committed > 1) {
    // It goes on from a generation older than the one to which files may have been brought back already.
    const Disk copy = disk->crash({Writes::kept, Entries::kept}, seed);
    if (check_the_copy_before(copy, history)) {
      history["run"].committed = 1;
      disk = copy;
    }
  }
  run_until(disk, history, {first.seed + seed, 3}, for_good(second, Fault::io_error));
  for (std::uint64_t i = 0; i < 4; ++i)
    check_recovery(disk->crash(way_of_losing(seed + 5 * i), seed), history);
  if (check_the_copy_before(disk->crash(way_of_losing(seed), seed), history)) ++fallbacks;
  check_recovery(disk, history);
}

TEST(files_crash, a_second_run_that_ends_anywhere_leaves_what_brings_files_back) {
  const bool is_thorough = std::getenv("TEST_ALL") != nullptr;
  int fallbacks = 0;
  for (const Script& script : {Script{21}, Script{22}}) {
    for (std::int64_t call = 30; call < 190; call += 9) {
      for (std::int64_t second = 1; second < 120; second += is_thorough ? 5 : 23)
        for (const bool killed : {true, false}) live_twice(script, call, killed, second, fallbacks);
      if (testing::Test::HasFailure()) return;
    }
  }
  EXPECT_GT(fallbacks, is_thorough ? 100 : 20);
}

TEST(files_crash, each_of_two_checkpoints_brings_the_files_back) {
  for (std::uint64_t seed = 31; seed <= 32; ++seed) {
    const Script script{seed, 6, 3000, {"run", "other"}};
    end_at_any_call(script, Fault::io_error, 2, [](const Disk& disk, History& history, std::uint64_t call) {
      for (const char* name : {"run", "other"}) {
        SCOPED_TRACE(name);
        for (std::uint64_t i = 0; i < 3; ++i)
          check_recovery(disk->crash(way_of_losing(call + 5 * i), call), history, name);
      }
    });
  }
}

TEST(files_crash, undo_files_do_not_pile_up) {
  for (std::uint64_t seed = 41; seed <= 43; ++seed) {
    const Disk disk = storage::crash_target();
    History history;
    std::size_t most = 0;
    for (int saves = 1; saves <= 12; ++saves) {
      // Each run goes on from the one before.
      run_until(disk, history, {seed + static_cast<std::uint64_t>(saves), saves % 3 + 1}, {});
      const std::int64_t last = history["run"].committed;
      const auto copies = look_at(*disk, *find_copies(*disk, "run"));
      ASSERT_FALSE(copies.empty());
      ASSERT_EQ(copies.front().generation, last);
      const Result<std::vector<journal::UndoName>> undo = journal::find_undo_files(*disk, "run");
      ASSERT_TRUE(undo.is_ok());
      std::int64_t oldest = last;
      for (const Found& each : copies)
        oldest = std::min(oldest, oldest_undo_of(*read_copy(*disk, each.path)));
      for (const journal::UndoName& each : *undo) EXPECT_GE(each.generation, oldest);
      most = std::max(most, undo->size());
    }
    EXPECT_GT(most, 1U);
  }
}

/// A call that replaces recorded bytes. Returns errno, 0 if it went well.
struct Replacing {
  const char* name;
  std::int64_t own_calls;  // those at the end that change the file itself
  int (*body)(storage::Target&, files::CStream&, journal::Journals&);
};

int write_here(std::FILE* stream) {
  const std::string text(700, 'x');
  errno = 0;
  const bool good =
      std::fwrite(text.data(), 1, text.size(), stream) == text.size() && std::fflush(stream) == 0;
  return good ? 0 : errno;
}

int write_over(storage::Target&, files::CStream& file, journal::Journals&) { return write_here(file.stream); }

int cut_off(storage::Target&, files::CStream& file, journal::Journals& journals) {
  constexpr Bytes size = 600;
  Status status = journals.keep("log", *file.file, size, std::numeric_limits<Bytes>::max());
  if (status.is_ok()) status = file.file->truncate(size);
  return status.error_number();
}

int begin_anew(storage::Target& target, files::CStream&, journal::Journals& journals) {
  Result<files::CStream> file =
      files::open_stream(target, "log", *files::parse_mode("w"), false, {}, journals);
  if (!file.is_ok()) return file.status().error_number();
  return std::fclose(file->stream) == 0 ? 0 : errno;
}

const Replacing replacings[] = {{"write", 1, write_over}, {"cut", 1, cut_off}, {"anew", 2, begin_anew}};

/// A file of 2000 bytes that generation 1 has recorded, on storage that may be told to fail.
struct RecordedFile {
  const Disk disk = storage::crash_target();
  const std::shared_ptr<storage::FaultyTarget> faulty = storage::faulty_target(disk, {});
  journal::Journals journals;
  ByteVector recorded{2000, std::byte{'o'}};
  const journal::Position position{"log", 0, 2000};
  files::CStream file;

  RecordedFile() {
    const auto before = *disk->open("log", storage::OpenMode::create);
    EXPECT_TRUE(before->write(recorded, 0).is_ok() && before->sync().is_ok() &&
                disk->sync_directory_of("log").is_ok());
    journals.of(*faulty, "run").begin(1, std::span(&position, 1));
    file = *files::open_stream(*faulty, "log", *files::parse_mode("r+"), false, {}, journals);
  }
  ~RecordedFile() { (void)std::fclose(file.stream); }
  RecordedFile(const RecordedFile&) = delete;
  RecordedFile& operator=(const RecordedFile&) = delete;

  /// Positions the stream while storage works: the C library reads there.
  void go_to(Bytes offset) {
    std::clearerr(file.stream);
    ASSERT_EQ(::fseeko(file.stream, offset, SEEK_SET), 0);
  }
  int replace(const Replacing& how) { return how.body(*faulty, file, journals); }
  [[nodiscard]] ByteVector now() const { return all_of(**disk->open("log", storage::OpenMode::read)); }
  /// Checks that a run that goes on from generation 1 finds the bytes that it has recorded.
  void check_brought_back(const Disk& left) const {
    journal::Position from = position;
    from.undo = *journal::find_undo_files(*left, "run");
    const auto found = *left->open("log", storage::OpenMode::existing);
    const Status status = journal::bring_back(*left, *found, from);
    ASSERT_TRUE(status.is_ok()) << status.text();
    EXPECT_TRUE(all_of(*found) == recorded);
  }
};

std::int64_t calls_of(const Replacing& how) {
  RecordedFile file;
  file.go_to(600);
  file.faulty->restart({0, Fault::io_error, storage::all_calls});
  EXPECT_EQ(file.replace(how), 0);
  return file.faulty->calls();
}

void fail_once(const Replacing& how, FaultPlan plan, bool keeps) {
  RecordedFile file;
  file.go_to(600);
  file.faulty->restart(plan);
  const int error = file.replace(how);
  ASSERT_TRUE(file.faulty->fired());
  ASSERT_EQ(error, storage::error_number_of(plan.fault));
  file.faulty->restart({});
  if (keeps) ASSERT_TRUE(file.now() == file.recorded);
  // On a full disk the room counts.
  if (keeps && !plan.for_good) EXPECT_TRUE(journal::find_undo_files(*file.disk, "run")->empty());
  file.check_brought_back(file.disk->crash({Writes::kept, Entries::kept}, 0));
  // Later writes work, in the same place and in another.
  for (const Bytes offset : {600, 100}) {
    file.go_to(offset);
    ASSERT_EQ(file.replace(how), 0);
    ASSERT_EQ(write_here(file.file.stream), 0);
  }
  ASSERT_FALSE(file.now() == file.recorded);
  for (const CrashPolicy& policy : ways_of_losing) file.check_brought_back(file.disk->crash(policy, 1));
}

TEST(files_fault, bytes_that_cannot_be_kept_stay_and_the_writer_is_told) {
  for (const Replacing& how : replacings) {
    const std::int64_t calls = calls_of(how);
    ASSERT_GT(calls, 7);
    for (std::int64_t call = 1; call <= calls; ++call) {
      for (const Fault fault : {Fault::io_error, Fault::no_space, Fault::quota}) {
        for (const bool lasting : {false, true}) {
          SCOPED_TRACE(testing::Message() << how.name << " call " << call << " fault "
                                          << static_cast<int>(fault) << (lasting ? " for good" : ""));
          fail_once(how, {call, fault, storage::all_calls, lasting}, call <= calls - how.own_calls);
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
}

/// Runs that load generation 2, which does not record the file, find it as the one before has left it.
TEST(files_order, of_what_several_runs_have_kept_in_one_generation_the_first_counts) {
  constexpr std::size_t runs = 12;  // numbers are no letters: 10 comes behind 9
  RecordedFile file;
  for (std::size_t run = 0; run < runs; ++run) {
    journal::Journals journals;
    journals.of(*file.faulty, "run").begin(2, std::span(&file.position, 1));
    const files::CStream again =
        *files::open_stream(*file.faulty, "log", *files::parse_mode("r+"), false, {}, journals);
    ASSERT_EQ(::fseeko(again.stream, static_cast<Bytes>(100 * run), SEEK_SET), 0);
    ASSERT_EQ(write_here(again.stream), 0);
    ASSERT_EQ(std::fclose(again.stream), 0);
  }
  ASSERT_EQ(journal::find_undo_files(*file.disk, "run")->size(), runs);
  file.check_brought_back(file.disk->crash({Writes::kept, Entries::kept}, 0));
}

}  // namespace
}  // namespace tailrace::checkpoint
