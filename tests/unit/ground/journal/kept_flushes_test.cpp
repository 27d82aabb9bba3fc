// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// FILE.undo.kept: its bytes, what is done with one that is none, and the ways back that it allows.
#include "ground/journal/kept_flushes.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

#include "ground/base/checksum.hpp"
#include "ground/storage/memory.hpp"
#include "ground/storage/posix.hpp"
#include "ground/storage/scratch.hpp"
#include "support/between.hpp"
#include "support/small_files.hpp"

namespace tailrace::journal {
namespace kept_flushes_test {
namespace {

void add_number(ByteVector& bytes, std::uint64_t number) {
  for (unsigned i = 0; i < 8; ++i) bytes.push_back(static_cast<std::byte>(number >> 8 * i & 0xff));
}

void add_text(ByteVector& bytes, std::string_view text) {
  for (const char each : text) bytes.push_back(static_cast<std::byte>(each));
}

/// docs/formats/undo-files.md#of-earlier-flushes
TEST(kept_flushes, the_bytes_are_those_of_the_format) {
  const auto target = storage::memory_target();
  const KeptFlushes kept{0x78, 5, 2, {"../cp"}, {{3, 4}}, 2, {100, 200, 0, 0}, {{4, 1}, {5, 6}}};
  ASSERT_TRUE(write_kept(*target, "f", kept).is_ok());
  EXPECT_EQ(*read_kept(*target, "f"), kept);
  ByteVector expected;
  add_text(expected, "TRFKEPT1");
  for (const std::uint64_t number : {0x78, 5, 2, 1, 5}) add_number(expected, number);
  add_text(expected, "../cp");
  for (const std::uint64_t number : {1, 3, 4, 2, 100, 200, 2, 4, 1, 5, 6}) add_number(expected, number);
  add_number(expected, checksum(expected));
  EXPECT_TRUE(bytes_in(*target, "f.undo.kept") == expected);
  EXPECT_EQ(*target->list("."), std::vector<std::string>{"f.undo.kept"});
}

/// docs/formats/undo-files.md#of-shared-files
TEST(kept_flushes, a_restore_under_way_has_a_form_of_its_own) {
  const auto target = storage::memory_target();
  ASSERT_TRUE(prepare_flushed(*target, "f", {4, 10, 0x56, 0x78, 9}).is_ok());
  ASSERT_TRUE(commit_flushed(*target, "f").is_ok());
  EXPECT_EQ(*read_flushed(*target, "f"), (Flushed{4, 10, 0x56, 0x78, 9}));
  ByteVector expected;
  add_text(expected, "TRFLUSH3");
  for (const std::uint64_t number : {4, 10, 0x56, 0x78, 9}) add_number(expected, number);
  add_number(expected, checksum(expected));
  EXPECT_TRUE(bytes_in(*target, "f.undo") == expected);
}

/// With what FILE.undo was before: docs/formats/undo-files.md#of-shared-files
TEST(kept_flushes, a_restore_that_is_announced_has_a_form_of_its_own) {
  const auto target = storage::memory_target();
  const Flushed announced{4, 10, 0x56, 0x78, 9, BeforeRestore{8, 12, 0x9a, 0}};
  ASSERT_TRUE(prepare_flushed(*target, "f", announced).is_ok() && commit_flushed(*target, "f").is_ok());
  EXPECT_EQ(*read_flushed(*target, "f"), announced);
  ByteVector expected;
  add_text(expected, "TRFLUSH4");
  for (const std::uint64_t number : {4, 10, 0x56, 0x78, 9, 8, 12, 0x9a, 0}) add_number(expected, number);
  add_number(expected, checksum(expected));
  EXPECT_TRUE(bytes_in(*target, "f.undo") == expected);
}

TEST(kept_flushes, a_file_that_is_damaged_is_named) {
  const auto target = storage::memory_target();
  ASSERT_TRUE(write_kept(*target, "f", {0x78, 5, 2, {"cp"}, {{3, 4}}}).is_ok());
  const ByteVector good = bytes_in(*target, "f.undo.kept");
  for (std::size_t at = 0; at <= good.size(); ++at) {
    ByteVector bad = good;
    if (at < good.size())
      bad[at] ^= std::byte{1};
    else
      bad.push_back(std::byte{0});
    put_in(*target, "f.undo.kept", bad);
    const Status status = read_kept(*target, "f").status();
    EXPECT_EQ(status.code(), Code::corrupt) << at;
    EXPECT_NE(status.text().find("f.undo.kept"), std::string::npos);
  }
}

TEST(kept_flushes, a_checkpoint_is_named_from_the_directory_of_the_file) {
  const auto target = storage::memory_target();
  for (const auto& [file, checkpoint, claim] : {std::tuple("f", "cp", "cp"),
                                                {"out/f", "cp", "../cp"},
                                                {"f", "restart/cp", "restart/cp"},
                                                {"a/b/f", "a/c/cp", "../c/cp"}}) {
    EXPECT_EQ(claim_of(*target, file, checkpoint), claim);
    EXPECT_EQ(claimant(file, claim), checkpoint);
  }
}

/// The file goes back to its third flush, then to its first, and never to one that was left so.
TEST(kept_flushes, the_ways_back_are_those_to_flushes_that_were_not_left) {
  const auto target = storage::memory_target();
  put_in(*target, "f", ByteVector(100, std::byte{'a'}));
  write_over(*target, 1, 0, 50, 'b');
  write_over(*target, 2, 25, 50, 'c');
  write_over(*target, 3, 0, 100, 'd');
  ASSERT_TRUE(write_kept(*target, "f", {7, 4, 0, {"cp"}, {}}).is_ok());
  const auto at = [](std::int64_t generation, std::uint64_t open = 7) {
    return RecordedFlush{"f", generation, 100, 0, open};
  };
  EXPECT_FALSE(*bring_back_to(*target, at(3, 8))) << "of a file that was begun anew";
  EXPECT_FALSE(*bring_back_to(*target, at(5))) << "behind the last one";
  EXPECT_FALSE(*bring_back_to(*target, {"f", 3, 100, 1, 7})) << "something else has written there";
  EXPECT_TRUE(bytes_in(*target, "f") == ByteVector(100, std::byte{'d'}));
  EXPECT_TRUE(*bring_back_to(*target, at(3)));
  ByteVector third(100, std::byte{'a'});
  std::fill_n(third.begin(), 25, std::byte{'b'});
  std::fill_n(third.begin() + 25, 50, std::byte{'c'});
  EXPECT_TRUE(bytes_in(*target, "f") == third);
  EXPECT_FALSE(*bring_back_to(*target, at(4))) << "it was left";
  EXPECT_EQ(*highest_undo(*target, "f"), 2);
  // An undo file that could not be removed counts no longer.
  const auto left = *UndoWriter::create(*target, flushed_path("f"), 4, name_beside("f"));
  EXPECT_TRUE(left->add(UndoRecord::What::bytes, 0, ByteVector(100, std::byte{'x'})).is_ok() &&
              left->seal().is_ok());
  write_over(*target, 5, 0, 100, 'y');
  EXPECT_TRUE(*bring_back_to(*target, at(3)));
  EXPECT_TRUE(bytes_in(*target, "f") == third);
  EXPECT_TRUE(*bring_back_to(*target, at(1)));
  EXPECT_TRUE(bytes_in(*target, "f") == ByteVector(100, std::byte{'a'}));
  EXPECT_FALSE(*bring_back_to(*target, at(3)));
}

TEST(kept_flushes, nothing_leads_over_undo_files_that_are_gone) {
  for (const std::int64_t gone : {1, 2, 3}) {
    const auto target = with_three_flushes();
    const auto all = find_undo_files(*target, flushed_path("f"));
    for (const UndoName& each : *all) {
      if (each.generation == gone) EXPECT_TRUE(target->remove(each.path).is_ok());
    }
    for (const std::int64_t to : {1, 2, 3, 4}) {
      std::string why;
      EXPECT_EQ(way_back(*target, {"f", to, 100, 0, 7}, &why)->has_value(), to > gone);
      EXPECT_EQ(why.empty(), to > gone);
    }
    // Whoever closes the file next does not forget it.
    KeptFlushes kept = **read_kept(*target, "f");
    EXPECT_TRUE(note_closed(*target, "f", 4, 0, kept).is_ok());
    EXPECT_EQ(kept.from, gone + 1);
  }
}

TEST(kept_flushes, nothing_leads_before_what_was_said_to_go) {
  const auto target = with_three_flushes();
  ASSERT_TRUE(raise_lowest_kept(*target, "f", 7, 2).is_ok() && raise_lowest_kept(*target, "f", 8, 4).is_ok());
  ASSERT_TRUE(raise_lowest_kept(*target, "f", 7, 3).is_ok());
  EXPECT_EQ(*lowest_kept(*target, "f", **read_kept(*target, "f")), 3);
  EXPECT_FALSE(way_back(*target, {"f", 2, 100, 0, 7})->has_value());
  EXPECT_FALSE(*bring_back_to(*target, {"f", 2, 100, 0, 7}));
  EXPECT_TRUE(*bring_back_to(*target, {"f", 3, 100, 0, 7}));
  EXPECT_TRUE(give_up_kept(*target, "f").is_ok());
  EXPECT_EQ(*target->list("."), std::vector<std::string>{"f"});
}

TEST(kept_flushes, nothing_leads_over_writes_that_nobody_has_kept) {
  const storage::ScratchDirectory scratch;
  const auto target = storage::posix_target();
  const std::string path = scratch / "f";
  put_in(*target, path, ByteVector(100, std::byte{'a'}));
  KeptFlushes kept{7, 4, 0, {"cp"}, {}, 1};
  ASSERT_TRUE(note_closed(*target, path, 4, 0, kept).is_ok() && write_kept(*target, path, kept).is_ok());
  EXPECT_TRUE(way_back(*target, {path, 2, 100, 0, 7})->has_value());
  // Another file of the same size.
  const auto time = std::filesystem::last_write_time(path);
  put_in(*target, path + ".other", ByteVector(100, std::byte{'b'}));
  std::filesystem::last_write_time(path + ".other", time + std::chrono::nanoseconds(1));
  std::filesystem::rename(path, path + ".before");
  std::filesystem::rename(path + ".other", path);
  std::string why;
  EXPECT_FALSE(way_back(*target, {path, 2, 100, 0, 7}, &why)->has_value());
  EXPECT_FALSE(why.empty());
  // A copy that keeps the time, as cp -a and backups make it.
  std::filesystem::copy_file(path + ".before", path, std::filesystem::copy_options::overwrite_existing);
  std::filesystem::last_write_time(path, time);
  EXPECT_TRUE(way_back(*target, {path, 2, 100, 0, 7})->has_value());
  // The same file, but written to.
  std::filesystem::rename(path + ".before", path);
  EXPECT_TRUE(way_back(*target, {path, 2, 100, 0, 7})->has_value());
  std::filesystem::last_write_time(path, time + std::chrono::nanoseconds(1));
  EXPECT_FALSE(way_back(*target, {path, 2, 100, 0, 7})->has_value());
}

/// The checksum of both ends, of which each is the whole file here.
std::uint64_t sample_of_flush(std::int64_t generation) {
  ByteVector both = flush_of_three(generation);
  both.insert(both.end(), both.begin(), both.begin() + 100);
  return checksum(both);
}

/// A commit or prune of another program that says with call `says`, and removes with call `removes`, what no
/// copy needs before generation 4 of the file of with_three_flushes().
storage::Between::Deeds removal(const std::shared_ptr<storage::Target>& target, int says, int removes) {
  const auto may = std::make_shared<bool>(false);
  const auto all = *find_undo_files(*target, flushed_path("f"));
  const auto say = [target, may] { *may = raise_lowest_kept(*target, "f", 7, 4).is_ok(); };
  const auto remove = [target, may, all] {
    for (const UndoName& each : all) {
      if (!*may || each.generation >= 4) continue;
      EXPECT_TRUE(storage::remove_if_there(*target, each.path).is_ok());
    }
  };
  return {{says, say}, {removes, remove}};
}

/// The file of with_three_flushes(), or what a killed program has left of it behind its fourth flush.
std::shared_ptr<storage::Target> with_flushes(bool is_left_open) {
  auto target = with_three_flushes();
  if (!is_left_open) return target;
  EXPECT_TRUE(prepare_flushed(*target, "f", {4, 100, 0, 7}).is_ok() && commit_flushed(*target, "f").is_ok());
  write_over(*target, 4, 10, 80, 'x');
  return target;
}

/// Undo files are removed without a lock: whenever that happens, a restore brings the file back or changes
/// nothing.
TEST(kept_flushes, a_restore_that_meets_a_removal_leaves_no_mixture) {
  for (const bool is_left_open : {false, true}) {
    int restored = 0, refused = 0;
    bool is_met = true;  // the restore makes so many calls
    for (int says = 1; is_met; ++says) {
      for (int removes = says, calls = says; removes <= calls; ++removes) {
        SCOPED_TRACE(testing::Message() << is_left_open << " says " << says << " removes " << removes);
        const auto below = with_flushes(is_left_open);
        const ByteVector before = bytes_in(*below, "f");
        storage::Between target(below, removal(below, says, removes));
        const Result<bool> back = bring_back_to(target, {"f", 2, 100, 0, 7});
        calls = target.calls();
        is_met = says <= calls;
        const bool is_back = back.is_ok() && *back;
        ASSERT_TRUE(bytes_in(*below, "f") == (is_back ? flush_of_three(2) : before)) << back.status().text();
        EXPECT_TRUE(!is_back || !*below->exists("f.undo"));
        ++(is_back ? restored : refused);
        // Whoever opens it next.
        const Status opened = bring_back_flushed(*below, "f").status();
        EXPECT_TRUE(opened.is_ok()) << opened.text();
        ASSERT_TRUE(bytes_in(*below, "f") == flush_of_three(is_back ? 2 : 4));
      }
    }
    EXPECT_GT(restored, 10);
    EXPECT_GT(refused, 10);
  }
}

/// What ends a program at once.
struct Killed {};

/// Whenever a restore is killed, and whether or not somebody has removed undo files before it began, or was
/// about to and stopped: whoever opens the file next gets it at one flush or the other.
TEST(kept_flushes, a_restore_that_is_killed_while_undo_files_go_is_completed_or_taken_back) {
  for (const bool is_left_open : {false, true}) {
    for (const bool removes : {false, true}) {
      int restored = 0, taken_back = 0;
      bool is_met = true;  // the restore makes so many calls
      for (int says = 1; is_met; ++says) {
        bool is_killed = true;
        for (int dies = says; is_killed; ++dies) {
          SCOPED_TRACE(testing::Message() << is_left_open << removes << " says " << says << " dies " << dies);
          const auto below = with_flushes(is_left_open);
          // Between what it says and its look at FILE.undo it is stopped.
          const auto says_only = [&] { put_in(*below, "f.undo.f0000000000000007.4", {}); };
          storage::Between::Deeds deeds{{says, says_only}};
          if (removes) deeds = removal(below, says, says);
          deeds.emplace(dies, [] { throw Killed(); });
          storage::Between target(below, std::move(deeds));
          try {
            static_cast<void>(bring_back_to(target, {"f", 2, 100, 0, 7}));
            is_killed = false;
          } catch (const Killed&) {
          }
          is_met = says <= target.calls();
          const Status opened = bring_back_flushed(*below, "f").status();
          ASSERT_TRUE(opened.is_ok()) << opened.text();
          const bool is_back = bytes_in(*below, "f") == flush_of_three(2);
          ASSERT_TRUE(is_back || bytes_in(*below, "f") == flush_of_three(4));
          ++(is_back ? restored : taken_back);
        }
      }
      EXPECT_GT(restored, 10);
      EXPECT_GT(taken_back, 10);
    }
  }
}

/// A client of NFS may list files that are gone, for as long as anybody looks.
class ListsWhatIsGone final : public storage::ForwardingTarget {
 public:
  explicit ListsWhatIsGone(std::shared_ptr<storage::Target> below)
      : ForwardingTarget(below), names_(*below->list(".")) {}
  Result<std::vector<std::string>> list(const std::string&) override { return names_; }

 private:
  const std::vector<std::string> names_;
};

TEST(kept_flushes, nothing_leads_over_undo_files_that_are_listed_and_gone) {
  const auto below = with_three_flushes();
  ListsWhatIsGone target(below);
  const auto all = *find_undo_files(*below, flushed_path("f"));
  for (const UndoName& each : all) EXPECT_TRUE(below->remove(each.path).is_ok());
  std::string why;
  const auto way = way_back(target, {"f", 2, 100, sample_of_flush(2), 7}, &why);
  ASSERT_TRUE(way.is_ok()) << way.status().text();
  EXPECT_FALSE(way->has_value());
  EXPECT_FALSE(why.empty());
  const Result<bool> back = bring_back_to(target, {"f", 2, 100, 0, 7});
  ASSERT_TRUE(back.is_ok()) << back.status().text();
  EXPECT_FALSE(*back);
  EXPECT_FALSE(*below->exists("f.undo"));
}

TEST(kept_flushes, a_look_that_meets_a_removal_tells_whether_anything_leads_back) {
  int at = 1;
  for (bool is_met = true; is_met; ++at) {
    const auto below = with_three_flushes();
    storage::Between target(below, removal(below, at, at));
    std::string why;
    const auto way = way_back(target, {"f", 2, 100, sample_of_flush(2), 7}, &why);
    is_met = at <= target.calls();
    ASSERT_TRUE(way.is_ok()) << at << ": " << way.status().text();
    EXPECT_EQ(way->has_value(), why.empty()) << at;
  }
  EXPECT_GT(at, 10);
}

TEST(kept_flushes, nobody_says_that_undo_files_may_go_which_a_restore_needs) {
  const auto target = with_three_flushes();
  ASSERT_TRUE(raise_lowest_kept(*target, "f", 7, 2).is_ok());
  // A restore to generation 2 that was killed.
  ASSERT_TRUE(prepare_flushed(*target, "f", {2, 100, 0, 7, 4}).is_ok() &&
              commit_flushed(*target, "f").is_ok());
  EXPECT_EQ(raise_lowest_kept(*target, "f", 7, 3).code(), Code::state);
  EXPECT_EQ(*lowest_kept(*target, "f", **read_kept(*target, "f")), 2);
  EXPECT_TRUE(raise_lowest_kept(*target, "f", 7, 2).is_ok());
  EXPECT_TRUE(*bring_back_flushed(*target, "f"));
  EXPECT_TRUE(bytes_in(*target, "f") == flush_of_three(2));
  // What was said before the restore stays said: undo files may have gone by then.
  const auto other = with_three_flushes();
  ASSERT_TRUE(raise_lowest_kept(*other, "f", 7, 3).is_ok());
  ASSERT_TRUE(prepare_flushed(*other, "f", {2, 100, 0, 7, 4}).is_ok() && commit_flushed(*other, "f").is_ok());
  EXPECT_EQ(raise_lowest_kept(*other, "f", 7, 3).code(), Code::state);
  EXPECT_EQ(*lowest_kept(*other, "f", **read_kept(*other, "f")), 3);
}

/// Somebody has removed undo files by hand before a killed restore is completed.
TEST(kept_flushes, a_restore_that_was_killed_is_not_completed_without_its_undo_files) {
  const auto target = with_three_flushes();
  ASSERT_TRUE(prepare_flushed(*target, "f", {2, 100, 0, 7, 4}).is_ok() &&
              commit_flushed(*target, "f").is_ok());
  const auto all = *find_undo_files(*target, flushed_path("f"));
  EXPECT_TRUE(target->remove(all.front().path).is_ok());
  const Status refused = bring_back_flushed(*target, "f").status();
  EXPECT_EQ(refused.code(), Code::corrupt);
  EXPECT_NE(refused.text().find("f.undo"), std::string::npos) << refused.text();
  EXPECT_TRUE(bytes_in(*target, "f") == flush_of_three(4) && *target->exists("f.undo"));
}

TEST(kept_flushes, undo_files_that_a_save_removes_meanwhile_are_no_error) {
  int at = 1;
  for (bool is_met = true; is_met; ++at) {
    const auto below = with_three_flushes();
    storage::Between target(below, removal(below, at, at));
    const Result<std::int64_t> given_up = give_up_kept(target, "f");
    is_met = at <= target.calls();
    EXPECT_TRUE(given_up.is_ok()) << at << ": " << given_up.status().text();
  }
  EXPECT_GT(at, 10);
}

}  // namespace
}  // namespace kept_flushes_test
}  // namespace tailrace::journal
