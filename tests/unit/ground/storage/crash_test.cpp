// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "support/crash.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <random>
#include <set>

#include "ground/storage/every_crash.hpp"
#include "ground/storage/scratch.hpp"

namespace tailrace::storage {
namespace {

TEST(power_loss, spares_what_was_synced) {
  const auto disk = crash_target();
  ASSERT_TRUE(put_file(*disk, "a", "synced").is_ok());
  const auto file = disk->open("a", OpenMode::existing);
  ASSERT_TRUE((*file)->write(bytes_of(" and not"), 6).is_ok());
  after_every_crash(*disk, 20,
                    [](CrashTarget& left) { EXPECT_EQ(contents_of(left, "a").substr(0, 6), "synced"); });
  EXPECT_EQ(contents_of(*disk, "a"), "synced and not") << "the running program sees no crash";
}

TEST(power_loss, drops_or_keeps_all_as_told) {
  const auto disk = crash_target();
  ASSERT_TRUE(put_file(*disk, "a", "old").is_ok());
  const auto file = disk->open("a", OpenMode::existing);
  ASSERT_TRUE((*file)->write(bytes_of("NEW and longer"), 0).is_ok());
  ASSERT_TRUE((*file)->truncate(12).is_ok());
  EXPECT_EQ(contents_of(*disk->crash({Writes::dropped, Entries::lost}, 1), "a"), "old");
  EXPECT_EQ(contents_of(*disk->crash({Writes::kept, Entries::lost}, 1), "a"), "NEW and long");
}

TEST(power_loss, tears_at_sectors_and_never_outside_of_the_write) {
  const auto disk = crash_target();
  ASSERT_TRUE(put_file(*disk, "a", std::string(4096, 'o')).is_ok());
  const auto file = disk->open("a", OpenMode::existing);
  ASSERT_TRUE((*file)->write(bytes_of(std::string(2000, 'n')), 700).is_ok());
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const std::string text = contents_of(*disk->crash({Writes::torn, Entries::lost}, seed), "a");
    ASSERT_EQ(text.size(), 4096u);
    EXPECT_EQ(text.substr(0, 700), std::string(700, 'o'));
    EXPECT_EQ(text.substr(2700), std::string(1396, 'o'));
    for (std::size_t i = 701; i < 2700; ++i) {
      if (i % 512 != 0) ASSERT_EQ(text[i], text[i - 1]) << "torn inside of a sector at " << i;
    }
    seen.insert(text);
  }
  EXPECT_EQ(seen.size(), 32u) << "five sectors, each old or new";
}

TEST(power_loss, may_leave_garbage_and_may_grow_the_file_without_its_data) {
  const auto disk = crash_target();
  ASSERT_TRUE(put_file(*disk, "a", "").is_ok());
  const auto file = disk->open("a", OpenMode::existing);
  ASSERT_TRUE((*file)->write(bytes_of(std::string(512, 'n')), 0).is_ok());
  int whole = 0, empty = 0, zeros = 0, garbage = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const std::string text = contents_of(*disk->crash({Writes::garbage, Entries::lost}, seed), "a");
    if (text.empty())
      ++empty;
    else if (text == std::string(512, 'n'))
      ++whole;
    else if (text == std::string(512, '\0'))
      ++zeros;
    else
      ++garbage;
  }
  EXPECT_GT(whole, 20);
  EXPECT_GT(empty, 10);
  EXPECT_GT(zeros, 10);
  EXPECT_GT(garbage, 20);
}

TEST(power_loss, loses_names_whose_directory_was_not_synced) {
  const auto disk = crash_target();
  const auto file = disk->open("new", OpenMode::create);
  ASSERT_TRUE((*file)->write(bytes_of("data"), 0).is_ok());
  ASSERT_TRUE((*file)->sync().is_ok());
  EXPECT_FALSE(*disk->crash({Writes::kept, Entries::lost}, 1)->exists("new"));
  EXPECT_EQ(contents_of(*disk->crash({Writes::dropped, Entries::kept}, 1), "new"), "data");
  ASSERT_TRUE(disk->sync_directory_of("new").is_ok());
  after_every_crash(*disk, 3, [](CrashTarget& left) { EXPECT_EQ(contents_of(left, "new"), "data"); });
}

TEST(power_loss, brings_back_what_was_removed_or_renamed_without_a_sync) {
  const auto disk = crash_target();
  for (const char* name : {"removed", "from", "to"}) ASSERT_TRUE(put_file(*disk, name, name).is_ok());
  ASSERT_TRUE(disk->remove("removed").is_ok());
  ASSERT_TRUE(disk->rename("from", "to").is_ok());
  const auto left = disk->crash({Writes::dropped, Entries::lost}, 1);
  for (const char* name : {"removed", "from", "to"}) EXPECT_EQ(contents_of(*left, name), name);
  ASSERT_TRUE(disk->sync_directory_of("to").is_ok());
  after_every_crash(*disk, 3, [](CrashTarget& after) {
    EXPECT_EQ(*after.list("."), std::vector<std::string>{"to"});
    EXPECT_EQ(contents_of(after, "to"), "from");
  });
}

TEST(power_loss, renames_wholly_or_not_at_all) {
  const auto disk = crash_target();
  for (const char* name : {"from", "to"}) ASSERT_TRUE(put_file(*disk, name, name).is_ok());
  ASSERT_TRUE(disk->rename("from", "to").is_ok());
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const auto left = disk->crash({Writes::dropped, Entries::some}, seed);
    const std::string to = contents_of(*left, "to");
    EXPECT_EQ(*left->exists("from"), to == "to");
    seen.insert(to);
  }
  EXPECT_EQ(seen, (std::set<std::string>{"from", "to"}));
}

TEST(power_loss, directories_are_synced_one_by_one) {
  const auto disk = crash_target();
  ASSERT_TRUE(disk->make_directories("/a/below").is_ok());
  for (const char* path : {"/a/x", "/a/below/x"}) ASSERT_TRUE(disk->open(path, OpenMode::create).is_ok());
  ASSERT_TRUE(disk->sync_directory_of("/a/other").is_ok());
  const auto left = disk->crash({Writes::dropped, Entries::lost}, 1);
  EXPECT_TRUE(*left->exists("/a/x"));
  EXPECT_FALSE(*left->exists("/a/below/x"));
  EXPECT_TRUE(*left->exists("/a/below")) << "a directory is durable once made";
}

TEST(power_loss, takes_back_names_of_directories_that_were_not_synced) {
  const auto disk = crash_target();
  ASSERT_TRUE(disk->make_directories("d/old/inside").is_ok());
  ASSERT_TRUE(disk->make_directories("d/young").is_ok());
  ASSERT_TRUE(put_file(*disk, "d/old/inside/a", "one").is_ok());
  ASSERT_TRUE(put_file(*disk, "d/young/b", "two").is_ok());
  ASSERT_TRUE(disk->rename("d/old", "d/older").is_ok());
  ASSERT_TRUE(disk->rename("d/young", "d/old").is_ok());
  const auto before = disk->crash({Writes::dropped, Entries::lost}, 1);
  EXPECT_EQ(contents_of(*before, "d/old/inside/a"), "one");
  EXPECT_EQ(contents_of(*before, "d/young/b"), "two");
  EXPECT_FALSE(*before->exists("d/older"));
  std::set<int> seen;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const auto left = disk->crash({Writes::dropped, Entries::some}, seed);
    const bool first = *left->exists("d/older/inside/a"), second = *left->exists("d/old/b");
    EXPECT_TRUE(first || !second) << "in their order";
    EXPECT_NE(second, *left->exists("d/young/b"));
    seen.insert(first + second);
  }
  EXPECT_EQ(seen.size(), 3U);
  ASSERT_TRUE(disk->sync_directory_of("d/old").is_ok());
  after_every_crash(*disk, 3, [](CrashTarget& left) {
    EXPECT_EQ(contents_of(left, "d/older/inside/a"), "one");
    EXPECT_EQ(contents_of(left, "d/old/b"), "two");
  });
}

TEST(power_loss, brings_back_a_directory_whose_removal_was_not_synced) {
  const auto disk = crash_target();
  ASSERT_TRUE(disk->make_directories("d/old").is_ok());
  ASSERT_TRUE(put_file(*disk, "d/old/a", "one").is_ok());
  ASSERT_TRUE(disk->remove("d/old/a").is_ok());
  ASSERT_TRUE(disk->remove_directory("d/old").is_ok());
  EXPECT_EQ(contents_of(*disk->crash({Writes::dropped, Entries::lost}, 1), "d/old/a"), "one");
  EXPECT_FALSE(*disk->crash({Writes::dropped, Entries::kept}, 1)->exists("d/old"));
  ASSERT_TRUE(disk->sync_directory_of("d/old").is_ok());
  after_every_crash(*disk, 3, [](CrashTarget& left) { EXPECT_FALSE(*left.exists("d/old")); });
}

TEST(power_loss, frees_locks_and_the_next_run_starts_durable) {
  const auto disk = crash_target();
  const auto lock = disk->lock("lock");
  ASSERT_TRUE(put_file(*disk, "a", "text").is_ok());
  const auto left = disk->crash({}, 1);
  EXPECT_TRUE(left->lock("lock").is_ok());
  EXPECT_EQ(contents_of(*left->crash({}, 1), "a"), "text");
}

TEST(power_loss, is_the_same_for_the_same_seed) {
  const auto disk = crash_target();
  for (int i = 0; i < 5; ++i) {
    const auto file = disk->open("f" + std::to_string(i), OpenMode::create);
    ASSERT_TRUE((*file)->write(bytes_of(std::string(3000, 'x')), 0).is_ok());
  }
  const auto picture = [&](std::uint64_t seed) {
    const auto left = disk->crash({Writes::garbage, Entries::some}, seed);
    const auto names = left->list(".");
    std::string all;
    for (const std::string& name : *names) all += name + contents_of(*left, name);
    return all;
  };
  EXPECT_EQ(picture(3), picture(3));
  EXPECT_NE(picture(3), picture(4));
}

/// Runs a random program, and beside it remembers the bytes on which it may rely: those of "a" that no
/// unsynced call has touched.
TEST(power_loss, never_harms_synced_bytes_of_random_programs) {
  for (std::uint64_t program = 0; program < 30; ++program) {
    std::mt19937_64 random(program);
    const auto disk = crash_target();
    ASSERT_TRUE(put_file(*disk, "a", "").is_ok());
    const auto file = disk->open("a", OpenMode::existing);
    std::string now;
    std::vector<bool> safe;
    for (int i = 0; i < 60; ++i) {
      const std::size_t offset = random() % 5000, size = 1 + random() % 1500;
      if (random() % 5 == 0) {
        ASSERT_TRUE((*file)->sync().is_ok());
        safe.assign(now.size(), true);
        continue;
      }
      const std::string text(size, static_cast<char>('a' + random() % 26));
      ASSERT_TRUE((*file)->write(bytes_of(text), static_cast<Bytes>(offset)).is_ok());
      if (now.size() < offset + size) now.resize(offset + size);
      now.replace(offset, size, text);
      for (std::size_t j = offset; j < std::min(offset + size, safe.size()); ++j) safe[j] = false;
    }
    after_every_crash(*disk, 3, [&](CrashTarget& left) {
      const std::string text = contents_of(left, "a");
      ASSERT_GE(text.size(), safe.size());
      for (std::size_t j = 0; j < safe.size(); ++j) {
        if (safe[j]) ASSERT_EQ(text[j], now[j]) << j;
      }
    });
  }
}

/// The steps of replacing a file, some of which may be left out.
struct Steps {
  bool sync = true, sync_directory = true;
};

Status replace(Target& target, const std::string& path, const std::string& text, Steps steps) {
  auto file = target.open(path + ".tmp", OpenMode::create);
  if (!file.is_ok()) return file.status();
  TR_TRY((*file)->write(bytes_of(text), 0));
  if (steps.sync) TR_TRY((*file)->sync());
  TR_TRY((*file)->close());
  TR_TRY(target.rename(path + ".tmp", path));
  return steps.sync_directory ? target.sync_directory_of(path) : Status();
}

/// Returns true if some loss of power after a successful replacement leaves anything but the new file.
bool is_caught(Steps steps) {
  const std::string old_text(1500, 'o'), new_text(1500, 'n');
  const auto disk = crash_target();
  EXPECT_TRUE(put_file(*disk, "a", old_text).is_ok());
  EXPECT_TRUE(replace(*disk, "a", new_text, steps).is_ok());
  bool caught = false;
  after_every_crash(*disk, 10,
                    [&](CrashTarget& left) { caught = caught || contents_of(left, "a") != new_text; });
  return caught;
}

TEST(power_loss, finds_a_forgotten_sync) {
  EXPECT_FALSE(is_caught({true, true}));
  EXPECT_TRUE(is_caught({false, true})) << "no fsync of the file before its rename";
  EXPECT_TRUE(is_caught({true, false})) << "no fsync of the directory after it";
}

}  // namespace
}  // namespace tailrace::storage
