// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Shared files whose flushes a checkpoint has recorded: wherever the power fails, or the program is killed,
// the file can be brought back to each flush that a copy has, through all later flushes, opens and restores.
// The checkpoint is played: SafeFile::keep_for() is all that a save asks of a shared file.
#include <gtest/gtest.h>

#include <algorithm>

#include "faces/restart/run_state.hpp"
#include "faces/shared/shared_file.hpp"
#include "ground/base/text.hpp"
#include "ground/journal/kept_flushes.hpp"
#include "ground/storage/faulty.hpp"
#include "ground/storage/forwarding.hpp"
#include "shared_disk.hpp"

namespace tailrace::sim {
namespace {

using shared::Safety;
using shared::SharedFile;
using storage::Fault;
using storage::FaultPlan;
using Disk = CrashDisk;

const std::string path = "pages";
/// The copies that the checkpoint has.
constexpr std::size_t most_copies = 2;

struct Piece {
  int rank = 0;
  Bytes offset = 0;
  std::string bytes;
};

/// What all ranks do up to a flush, and whether a save follows it.
struct Flush {
  std::vector<Piece> pieces;
  std::optional<Bytes> resize;  // after them
  std::string content;
  bool is_saved = false;
};

/// One program. Its last flush is the close.
struct Life {
  int ranks = 1;
  int ranks_per_node = 1;
  std::vector<Flush> flushes;
};

/// A copy of the checkpoint: a flush that it has recorded, and what the file held.
struct Saved {
  journal::RecordedFlush flush;
  std::string content;
};

/// What all programs of the file have been told.
struct History {
  std::string content;       // of the last flush of which a rank was told
  std::string attempted;     // of the last one that was begun
  std::vector<Saved> saved;  // the oldest first
};

Flush random_flush(Scheduler& dice, int ranks, std::string content) {
  constexpr Bytes length = 700;
  Flush flush;
  for (std::int64_t i = dice.random(0, 20); i > 0; --i) {
    const auto number = dice.random(0, dice.once_in(4) ? 70 : 45);
    Piece piece{static_cast<int>(number % ranks), number * length,
                std::string(length, static_cast<char>('a' + dice.random(0, 25)))};
    content.resize(std::max(content.size(), static_cast<std::size_t>(piece.offset + length)), '\0');
    content.replace(static_cast<std::size_t>(piece.offset), length, piece.bytes);
    flush.pieces.push_back(std::move(piece));
  }
  if (dice.once_in(4)) {
    flush.resize = dice.random(0, 40'000);
    content.resize(static_cast<std::size_t>(*flush.resize), '\0');
  }
  flush.content = std::move(content);
  flush.is_saved = dice.once_in(3);
  return flush;
}

Life random_life(Scheduler& dice, std::string content) {
  Life life;
  life.ranks = static_cast<int>(dice.random(1, 4));
  life.ranks_per_node = static_cast<int>(dice.random(1, life.ranks));
  for (std::int64_t i = dice.random(1, 8); i > 0; --i) {
    life.flushes.push_back(random_flush(dice, life.ranks, std::move(content)));
    content = life.flushes.back().content;
  }
  return life;
}

Bytes bytes_beside(storage::Target& disk) {
  Bytes all = 0;
  const auto files = journal::find_undo_files(disk, journal::flushed_path(path));
  for (const journal::UndoName& each : *files)
    all += *(*disk.open(each.path, storage::OpenMode::read))->size();
  return all;
}

/// Forgets the oldest copies, and removes what none needs, as a save does once it is committed.
void clean_up(storage::Target& disk, History& history) {
  while (history.saved.size() > most_copies) history.saved.erase(history.saved.begin());
  const std::int64_t needed = std::ranges::min(history.saved, {}, [](const Saved& each) {
                                return each.flush.generation;
                              }).flush.generation;
  const Result<std::vector<journal::UndoName>> all =
      journal::find_undo_files(disk, journal::flushed_path(path));
  if (!all.is_ok() || all->empty() || all->back().generation >= needed) return;
  if (!journal::raise_lowest_kept(disk, path, history.saved.back().flush.open, needed).is_ok()) return;
  for (const journal::UndoName& each : *all) {
    if (each.generation < needed) (void)disk.remove(each.path).is_ok();
  }
}

/// Saves as a checkpoint does: every rank says so, and then they agree.
bool save(SessionRank& rank, SharedFile& file, storage::Target& disk, History& history) {
  const Status kept = file.keep_for("cp");
  const auto last = file.last_flush();
  const bool agreed = file.sync().is_ok();
  if (rank.rank() != 0) return agreed;
  if (!kept.is_ok() || !agreed) return false;
  const journal::Flushed& now = last->flushed;
  history.saved.push_back({{last->path, now.generation, now.size, now.sample, now.open}, history.content});
  clean_up(disk, history);
  return true;
}

/// Writes this rank's pieces. Pages that need room for others are stored at once.
bool write_pieces(const Flush& flush, SessionRank& rank, SharedFile& file) {
  for (const Piece& piece : flush.pieces) {
    const shared::Source sources[] = {{std::as_bytes(std::span(piece.bytes)), piece.offset}};
    if (piece.rank == rank.rank() && !file.write(sources).is_ok()) return false;
  }
  return true;
}

void live(const Life& life, SessionRank& rank, storage::Target& disk, History& history) {
  const auto group = rank.group(rank.session().topology().roster().compute_transport);
  if (!group.is_ok()) return;
  shared::Definition what{path, *shared::read_mode("r+"), 4096, 16384 * life.ranks};
  what.safety = Safety::journal;
  Result<std::unique_ptr<SharedFile>> file = SharedFile::open(*group, "open", what);
  if (!file.is_ok()) return;
  for (std::size_t i = 0; i < life.flushes.size(); ++i) {
    const Flush& flush = life.flushes[i];
    if (!write_pieces(flush, rank, **file)) return;
    if (flush.resize && !(*file)->resize(*flush.resize).is_ok()) return;
    history.attempted = flush.content;
    const bool closes = i + 1 == life.flushes.size();
    if (!(closes ? (*file)->close() : (*file)->flush()).is_ok()) return;
    history.content = flush.content;
    if (closes || !flush.is_saved) continue;
    // What is stored between the flush and the save was kept for the flush alone.
    if (i % 2 == 0 && !write_pieces(life.flushes[i + 1], rank, **file)) return;
    if (!save(rank, **file, disk, history)) return;
  }
}

/// Runs a program until storage fails. Returns true if it has failed.
bool run(const Life& life, const Disk& disk, FaultPlan plan, std::uint64_t seed, History& history) {
  const auto faulty = storage::faulty_target(disk, plan);
  Job job;
  job.nodes = nodes_of(life.ranks, life.ranks_per_node);
  job.settings = cat("aggregators=", 1 + seed % 3);
  job.storage = faulty;
  job.seed = seed;
  SessionWorld world(job);
  const Texts stuck = world.run([&](SessionRank& rank) { live(life, rank, *faulty, history); });
  // A rank that has left because its own write failed is awaited by others, until they are ended, too.
  EXPECT_TRUE(stuck.empty() || faulty->fired());
  return faulty->fired();
}

/// Brings the file back until storage fails. Returns the error, or whether something led there.
Result<bool> brought_back(storage::Target& disk, const journal::RecordedFlush& to) {
  const auto lock = journal::lock_flushed(disk, path);
  TR_TRY(lock.status());
  return journal::bring_back_to(disk, to);
}

/// The file is brought back to each recorded flush, with `also_ended` also if that is ended on the way and
/// begun again.
void check_saved(const Disk& left, const History& history, std::uint64_t seed, bool also_ended = true) {
  for (const Saved& each : history.saved) {
    SCOPED_TRACE(testing::Message() << "flush " << each.flush.generation);
    const Disk disk = copy_of(left);
    const Result<bool> back = brought_back(*disk, each.flush);
    ASSERT_TRUE(back.is_ok()) << back.status().text();
    ASSERT_TRUE(*back);
    ASSERT_TRUE(content_of(*disk, path) == each.content);
    EXPECT_FALSE(*disk->exists(journal::flushed_path(path)));
    for (std::int64_t call = 1; also_ended; call += 1 + static_cast<std::int64_t>(seed % 3)) {
      SCOPED_TRACE(testing::Message() << "restored until call " << call);
      Disk ended = copy_of(left);
      const auto faulty =
          storage::faulty_target(ended, {call, Fault::io_error, storage::changing_calls, true});
      const Result<bool> tried = brought_back(*faulty, each.flush);
      if (!faulty->fired()) break;
      ended = ended->crash(any_way_of_losing(seed + static_cast<std::uint64_t>(call)), seed);
      // Somebody else may open the file first.
      if (call % 2 == 0) {
        ASSERT_TRUE(journal::bring_back_flushed(*ended, path).is_ok());
        const std::string found = content_of(*ended, path);
        ASSERT_TRUE(found == each.content || found == history.content || found == history.attempted);
      }
      const Result<bool> again = brought_back(*ended, each.flush);
      ASSERT_TRUE(again.is_ok()) << again.status().text();
      ASSERT_TRUE(*again);
      ASSERT_TRUE(content_of(*ended, path) == each.content);
    }
  }
}

/// A restart from one of the copies, or a program that knows of none. Returns false after a failed check.
void go_on(Scheduler& dice, const Disk& disk, History& history) {
  if (history.saved.empty() || dice.once_in(3)) {
    ASSERT_TRUE(journal::bring_back_flushed(*disk, path).is_ok());
    const std::string found = content_of(*disk, path);
    ASSERT_TRUE(found == history.content || found == history.attempted);
    history.content = history.attempted = found;
    return;
  }
  const auto to = static_cast<std::size_t>(dice.random(0, std::ssize(history.saved) - 1));
  const std::vector<Saved> before = history.saved;
  ASSERT_TRUE(*brought_back(*disk, before[to].flush));
  history.saved.resize(to + 1);
  history.content = history.attempted = before[to].content;
  // Nothing leads to later flushes any more, but to their bytes, if no others came before.
  for (std::size_t i = to + 1; i < before.size(); ++i) {
    const Disk other = copy_of(disk);
    const Result<bool> back = brought_back(*other, before[i].flush);
    ASSERT_TRUE(!back.is_ok() || !*back || content_of(*other, path) == before[i].content);
  }
}

TEST(sim_shared_kept, many_lives_leave_every_flush_that_a_copy_has_recorded) {
  int restored = 0;
  for (std::uint64_t seed = 1; seed <= seeds(40); ++seed) {
    Scheduler dice(seed * 9973);
    History history;
    history.content = history.attempted = std::string(20'000, 'A');
    Disk disk = disk_with(path, history.content);
    for (int number = 0; number < 8; ++number) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << " life " << number);
      const Life life = random_life(dice, history.content);
      const auto end = dice.once_in(3) ? 100'000 : dice.random(1, 200);
      const Fault fault = dice.once_in(2) ? Fault::stopped : Fault::io_error;
      const bool failed = run(life, disk, {end, fault, storage::changing_calls, true},
                              seed * 100 + static_cast<std::uint64_t>(number), history);
      if (failed && dice.once_in(2))
        disk = disk->crash(any_way_of_losing(static_cast<std::uint64_t>(dice.random(0, 11))), seed);
      else
        disk = copy_of(disk);
      restored += static_cast<int>(history.saved.size());
      check_saved(disk, history, seed);
      if (testing::Test::HasFatalFailure()) return;
      go_on(dice, disk, history);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
  EXPECT_GT(restored, of_seeds(100));
}

/// Ends a program at its first call, its second, ..., and then loses power or not.
TEST(sim_shared_kept, a_program_that_is_ended_at_any_call_leaves_every_recorded_flush) {
  for (std::uint64_t seed = 1; seed <= seeds(6); ++seed) {
    Scheduler dice(seed * 31);
    const std::string before(20'000, 'A');
    const Life first = random_life(dice, before);
    Life second = random_life(dice, first.flushes.back().content);
    for (Flush& flush : second.flushes) flush.is_saved = dice.once_in(2);
    for (std::int64_t call = 1;; call += seed % 2 == 0 ? 1 : 3) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << " call " << call);
      const Disk disk = disk_with(path, before);
      History history{before, before, {}};
      // A flush that is recorded and then left by a close, on which the second program goes on.
      run(first, disk, {}, seed, history);
      const bool failed =
          run(second, disk,
              {call, seed % 3 == 0 ? Fault::stopped : Fault::io_error, storage::changing_calls, true}, seed,
              history);
      for (std::uint64_t i = 0; i < 3; ++i)
        check_saved(disk->crash(any_way_of_losing(static_cast<std::uint64_t>(call) + i * 5), seed + i),
                    history, seed, false);
      check_saved(copy_of(disk), history, seed, false);
      if (testing::Test::HasFatalFailure()) return;
      if (!failed) break;
    }
  }
}

/// However often a file is flushed, what lies beside it has each page once for each copy, and once more since
/// the last flush.
TEST(sim_shared_kept, what_lies_beside_the_file_does_not_grow_with_flushes) {
  for (std::uint64_t seed = 1; seed <= seeds(4); ++seed) {
    Scheduler dice(seed);
    History history;
    history.content = history.attempted = std::string(30'000, 'A');
    const Disk disk = disk_with(path, history.content);
    Bytes least = std::numeric_limits<Bytes>::max();
    for (const int flushes : {10, 80}) {
      Life life = random_life(dice, history.content);
      life.flushes.clear();
      for (int i = 0; i < flushes; ++i) {
        Flush flush = random_flush(dice, life.ranks, i == 0 ? history.content : life.flushes.back().content);
        flush.is_saved = i == 1;
        life.flushes.push_back(std::move(flush));
      }
      EXPECT_FALSE(run(life, disk, {}, seed, history));
      EXPECT_LE(bytes_beside(*disk), 4 * Bytes{60'000});
      least = std::min(least, bytes_beside(*disk));
    }
    EXPECT_GT(least, 0);
    check_saved(copy_of(disk), history, seed);
    if (testing::Test::HasFatalFailure()) return;
  }
}

/// A program that saves at its first flush, and whose storage fails with call `call` of its close.
struct FailingClose {
  std::int64_t call = 1;
  bool fired = false;
  Status closed;
  std::optional<shared::SafeFile::LastFlush> before;  // the last flush before the close
  std::optional<shared::SafeFile::LastFlush> told;    // what the next save would record

  void live(const Life& life, SessionRank& rank, storage::FaultyTarget& disk, History& history) {
    const auto group = rank.group(rank.session().topology().roster().compute_transport);
    shared::Definition what{path, *shared::read_mode("r+"), 4096, 16384 * life.ranks};
    what.safety = Safety::journal;
    const auto opened = SharedFile::open(*group, "open", what);
    ASSERT_TRUE(opened.is_ok()) << opened.status().text();
    SharedFile& file = **opened;
    for (const std::size_t i : {0U, 1U}) {
      const Flush& flush = life.flushes[i];
      EXPECT_TRUE(write_pieces(flush, rank, file));
      EXPECT_TRUE(!flush.resize || file.resize(*flush.resize).is_ok());
      EXPECT_TRUE(file.flush().is_ok());
      history.content = flush.content;
      EXPECT_TRUE(i > 0 || save(rank, file, disk, history));
    }
    EXPECT_TRUE(write_pieces(life.flushes[2], rank, file));
    EXPECT_TRUE(file.sync().is_ok());
    if (rank.rank() == 0) before = file.last_flush();
    if (rank.rank() == 0) disk.restart({call, Fault::io_error, storage::changing_calls});
    EXPECT_TRUE(file.sync().is_ok());
    const Status status = file.close();
    if (rank.rank() > 0) return;
    fired = disk.fired();
    disk.restart({});
    closed = status;
    told = file.closed_flush();
  }
};

/// The program goes on, and its next save records what the file holds or goes back to, not the flush that the
/// save before has recorded.
TEST(sim_shared_kept, a_close_that_fails_leaves_its_last_flush_to_the_next_save) {
  int failed_closes = 0;
  for (std::uint64_t seed = 1; seed <= seeds(8); ++seed) {
    FailingClose program;
    for (; program.call == 1 || program.fired; ++program.call) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << " call " << program.call);
      Scheduler dice(seed * 101);
      History history;
      history.content = history.attempted = std::string(20'000, 'A');
      Life life{static_cast<int>(dice.random(1, 4)), 1, {}};
      life.ranks_per_node = static_cast<int>(dice.random(1, life.ranks));
      for (int i = 0; i < 3; ++i)
        life.flushes.push_back(
            random_flush(dice, life.ranks, i == 0 ? history.content : life.flushes.back().content));
      life.flushes.back().resize.reset();
      const Disk disk = disk_with(path, history.content);
      const auto faulty = storage::faulty_target(disk, {});
      Job job;
      job.nodes = nodes_of(life.ranks, life.ranks_per_node);
      job.storage = faulty;
      job.seed = seed;
      SessionWorld world(job);
      EXPECT_EQ(world.run([&](SessionRank& rank) { program.live(life, rank, *faulty, history); }), Texts());
      ASSERT_TRUE(program.told && program.before) << program.closed.text();
      const journal::Flushed &told = program.told->flushed, &before = program.before->flushed;
      EXPECT_GE(told.generation, before.generation);
      EXPECT_TRUE(!program.closed.is_ok() || told.generation > before.generation);
      failed_closes += told == before ? 1 : 0;
      if (told == before) {
        history.saved.push_back(
            {{path, told.generation, told.size, told.sample, told.open}, history.content});
        check_saved(copy_of(disk), history, seed, false);
        for (std::uint64_t i = 0; i < 3; ++i)
          check_saved(disk->crash(any_way_of_losing(seed + i * 5), seed + i), history, seed, false);
        // The program opens it once more, and writes it over.
        const Disk next = copy_of(disk);
        for (Flush& flush : life.flushes) flush.is_saved = false;
        run(life, next, {}, seed, history);
        check_saved(copy_of(next), history, seed, false);
      }
      if (testing::Test::HasFailure()) return;
    }
  }
  EXPECT_GT(failed_closes, of_seeds(20));
}

/// Opens the file on two ranks as a program that knows of no checkpoint, writes `bytes`, flushes, and closes
/// the file or is killed.
void another_program(const Disk& disk, const std::string& mode, Safety safety, const std::string& bytes,
                     Bytes offset, bool is_killed) {
  SessionWorld world({nodes_of(2, 1), {}, {}, disk, 1});
  const Texts stuck = world.run([&](SessionRank& rank) {
    const auto group = rank.group({0, 1});
    shared::Definition what{path, *shared::read_mode(mode), 4096, 16384 * 2};
    what.safety = safety;
    const auto file = SharedFile::open(*group, "open", what);
    ASSERT_TRUE(file.is_ok()) << file.status().text();
    const shared::Source sources[] = {{std::as_bytes(std::span(bytes)), offset}};
    EXPECT_TRUE(rank.rank() > 0 || (*file)->write(sources).is_ok());
    EXPECT_TRUE((*file)->flush().is_ok());
    EXPECT_TRUE(is_killed || (*file)->close().is_ok());
  });
  EXPECT_EQ(stuck, Texts());
}

/// Both ends of the file stay as they were, so that only the way back tells what lies between them.
TEST(sim_shared_kept, another_program_between_a_save_and_its_load_leaves_no_mixture_without_a_word) {
  const std::string saved(300'000, 'A');
  std::string changed = saved;
  changed.replace(140'000, 5'000, std::string(5'000, 'x'));
  for (const auto& [mode, safety] : {std::pair("r+", Safety::journal), std::pair("r+", Safety::none),
                                     std::pair("w+", Safety::journal), std::pair("w+", Safety::rename)}) {
    for (const bool is_killed : {false, true}) {
      SCOPED_TRACE(testing::Message()
                   << mode << " safety " << static_cast<int>(safety) << " killed " << is_killed);
      if (is_killed && safety == Safety::none) continue;
      History history{saved, saved, {}};
      Disk disk = disk_with(path, saved);
      const Life life{1, 1, {{{}, {}, saved, true}, {{}, {}, saved, false}}};
      EXPECT_FALSE(run(life, disk, {}, 1, history));
      ASSERT_EQ(history.saved.size(), 1U);
      const journal::RecordedFlush& to = history.saved.front().flush;
      const bool is_anew = std::string_view(mode) == "w+";
      another_program(disk, mode, safety, is_anew ? changed : std::string(5'000, 'x'), is_anew ? 0 : 140'000,
                      is_killed);
      disk = copy_of(disk);
      EXPECT_TRUE(content_of(*disk, path) == changed);
      const bool is_kept = !is_anew && safety == Safety::journal;
      const Result<restart::FlushStanding> standing = restart::standing_of(*disk, to);
      ASSERT_TRUE(standing.is_ok()) << standing.status().text();
      EXPECT_FALSE(standing->is_there);
      EXPECT_EQ(standing->leads_back, is_kept);
      EXPECT_FALSE(standing->text.empty());
      const Result<bool> back = restart::restore_shared_file(*disk, path, &to);
      ASSERT_TRUE(back.is_ok()) << back.status().text();
      EXPECT_EQ(*back, is_kept);
      EXPECT_TRUE(content_of(*disk, path) == (is_kept ? saved : changed));
    }
  }
}

/// Does not open the file for writing, as a file that may be read alone.
class ReadOnly final : public storage::ForwardingTarget {
 public:
  using ForwardingTarget::ForwardingTarget;
  using Target::open;
  Result<std::unique_ptr<storage::File>> open(const std::string& name, storage::OpenMode mode,
                                              unsigned permissions) override {
    if (name == path && mode != storage::OpenMode::read)
      return Status(Code::io, cat("open ", name, ": not permitted"), EACCES);
    return ForwardingTarget::open(name, mode, permissions);
  }
};

TEST(sim_shared_kept, an_open_that_may_not_write_leaves_the_way_back) {
  for (const auto& [mode, safety] : {std::pair("w+", Safety::journal), std::pair("w+", Safety::rename),
                                     std::pair("r+", Safety::none), std::pair("w", Safety::none)}) {
    const std::string content(20'000, 'A');
    History history{content, content, {}};
    const Disk disk = disk_with(path, content);
    const Life life{1, 1, {{{{0, 0, "first"}}, {}, content, true}, {{{0, 0, "later"}}, {}, content, false}}};
    EXPECT_FALSE(run(life, disk, {}, 1, history));
    ASSERT_EQ(history.saved.size(), 1U);
    const auto target = std::make_shared<ReadOnly>(disk);
    SessionWorld world({nodes_of(1, 1), {}, {}, target, 1});
    const Texts stuck = world.run([&, mode = mode, safety = safety](SessionRank& rank) {
      const auto group = rank.group({0});
      shared::Definition what{path, *shared::read_mode(mode), 4096, 16384};
      what.safety = safety;
      EXPECT_FALSE(SharedFile::open(*group, "open", what).is_ok());
    });
    EXPECT_EQ(stuck, Texts());
    const Disk left = copy_of(disk);
    EXPECT_TRUE(*brought_back(*left, history.saved.front().flush)) << mode;
    EXPECT_TRUE(content_of(*left, path).starts_with("first")) << mode;
  }
}

/// A file that was begun anew is not mistaken for one that can be brought back.
TEST(sim_shared_kept, nothing_leads_over_a_file_that_was_begun_anew) {
  for (const auto& [mode, safety] : {std::pair("w+", Safety::journal), std::pair("w+", Safety::rename),
                                     std::pair("r+", Safety::none), std::pair("w", Safety::none)}) {
    Scheduler dice(3);
    History history;
    history.content = history.attempted = std::string(30'000, 'A');
    const Disk disk = disk_with(path, history.content);
    Life life = random_life(dice, history.content);
    life.flushes.resize(1);
    life.flushes.push_back(random_flush(dice, life.ranks, life.flushes.back().content));
    life.flushes.front().is_saved = true;
    EXPECT_FALSE(run(life, disk, {}, 1, history));
    ASSERT_EQ(history.saved.size(), 1U);
    EXPECT_TRUE(*disk->exists(journal::kept_path(path)));
    SessionWorld world({nodes_of(2, 1), {}, {}, disk, 1});
    const Texts stuck = world.run([&, mode = mode, safety = safety](SessionRank& rank) {
      const auto group = rank.group({0, 1});
      shared::Definition what{path, *shared::read_mode(mode), 4096, 16384 * 2};
      what.safety = safety;
      const auto file = SharedFile::open(*group, "open", what);
      EXPECT_TRUE(file.is_ok()) << file.status().text();
      EXPECT_TRUE((*file)->close().is_ok());
    });
    EXPECT_EQ(stuck, Texts());
    EXPECT_FALSE(*brought_back(*disk, history.saved.front().flush));
    EXPECT_EQ(*disk->list("."), Texts{path}) << mode;
  }
}

}  // namespace
}  // namespace tailrace::sim
