// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <thread>

#include "ground/base/text.hpp"
#include "ground/storage/faulty.hpp"
#include "ground/storage/objects/object_files.hpp"
#include "ground/storage/routing/routing.hpp"
#include "ground/storage/scratch.hpp"
#include "support/bucket_service.hpp"
#include "support/crash.hpp"

namespace tailrace::storage {
namespace {

struct Candidate {
  std::string name;
  std::function<std::shared_ptr<Target>()> make;
  bool on_disk = false;                    // names are real paths, shared with the rest of the machine
  bool lock_leaves_file = false;           // a lock is a file while it is held
  std::string root = "/conformance/root";  // if names are no real paths
  bool has_small_files_alone = false;      // no large ones, no shares of locks, no empty directories
};

/// Every kind of the registry that this machine grants, and what wraps one.
std::vector<Candidate> candidates() {
  std::vector<Candidate> all;
  for (const TargetKind& kind : target_kinds()) {
    if (!kind.make().is_ok()) continue;
    all.push_back(
        {std::string(kind.name), [&kind] { return *kind.make(); }, kind.for_programs, kind.for_programs});
  }
  all.push_back({"throttled", [] { return throttled_target(memory_target(), {4e9, 1e-6}); }});
  all.push_back({"faulty", [] { return faulty_target(memory_target(), {}); }});
  all.push_back({"crash", [] { return crash_target(); }});
  all.push_back({"faulty_posix", [] { return faulty_target(posix_target(), {}); }, true, true});
  const auto routing = [] {
    return routing_target(posix_target(), {{"memory://", [memory = memory_target()] { return memory; }}});
  };
  all.push_back({"routing_by_prefix", routing, false, false, "memory://conformance/root"});
  all.push_back({"routing_the_others", routing, true, true});
  all.push_back({"object_files",
                 [] {
                   keyed_places().clear();
                   return with_object_files(memory_target());
                 },
                 false, true, "keyed://conformance/root", true});
  return all;
}

class TargetConformance : public testing::TestWithParam<Candidate> {
 protected:
  void SetUp() override {
    target = GetParam().make();
    ASSERT_NE(target, nullptr);
    root = GetParam().on_disk ? scratch.path() : GetParam().root;
    ASSERT_TRUE(target->make_directories(root).is_ok());
  }
  [[nodiscard]] std::string at(std::string_view name) const { return root + "/" + std::string(name); }
  std::unique_ptr<File> open(std::string_view name, OpenMode mode) {
    auto file = target->open(at(name), mode);
    EXPECT_TRUE(file.is_ok()) << file.status().text();
    return file.is_ok() ? *std::move(file) : nullptr;
  }

  ScratchDirectory scratch;
  std::shared_ptr<Target> target;
  std::string root;
};

TEST_P(TargetConformance, room_that_is_taken_changes_nothing) {
  const auto file = open("a", OpenMode::create);
  ASSERT_TRUE(file->write(bytes_of("hello"), 0).is_ok());
  EXPECT_TRUE(file->reserve(std::vector<Range>{{5, 100'000}, {150'000, 7}}).is_ok());
  EXPECT_TRUE(file->reserve(std::vector<Range>{{200'000, 0}}).is_ok());
  EXPECT_TRUE(file->reserve({}).is_ok());
  EXPECT_EQ(*file->size(), 5);
  file->give_back_room();
  EXPECT_EQ(*file->size(), 5);
  EXPECT_TRUE(file->write(bytes_of("!"), 5).is_ok());
  EXPECT_TRUE(file->close().is_ok());
  EXPECT_EQ(contents_of(*target, at("a")), "hello!");
}

TEST_P(TargetConformance, the_system_knows_files_on_disk_by_the_same_name) {
  ASSERT_TRUE(put_file(*target, at("a"), "hello").is_ok());
  EXPECT_TRUE(target->count_write(at("a"), 5).is_ok());
  const std::optional<std::string> name = target->system_name(at("a"));
  ASSERT_EQ(name.has_value(), GetParam().on_disk);
  if (!name) return;
  std::ifstream file(*name);
  std::string text;
  file >> text;
  EXPECT_EQ(text, "hello");
}

TEST_P(TargetConformance, what_is_written_is_read) {
  const auto file = open("a", OpenMode::create);
  ASSERT_TRUE(file->write(bytes_of("hello"), 0).is_ok());
  ASSERT_TRUE(file->write(bytes_of("HE"), 0).is_ok());
  EXPECT_EQ(*file->size(), 5);
  ByteVector buffer(5);
  EXPECT_EQ(*file->read(buffer, 0), 5);
  EXPECT_EQ(text_of(buffer), "HEllo");
  EXPECT_TRUE(file->sync().is_ok());
  EXPECT_TRUE(file->close().is_ok());
  EXPECT_EQ(contents_of(*target, at("a")), "HEllo");
}

TEST_P(TargetConformance, reading_ends_at_the_end) {
  const auto file = open("a", OpenMode::create);
  ASSERT_TRUE(file->write(bytes_of("hello"), 0).is_ok());
  ByteVector buffer(10);
  EXPECT_EQ(*file->read(buffer, 3), 2);
  EXPECT_EQ(*file->read(buffer, 5), 0);
  EXPECT_EQ(*file->read(buffer, 1000), 0);
  EXPECT_EQ(*file->read({}, 0), 0);
}

TEST_P(TargetConformance, keep_makes_a_file_or_leaves_what_is_in_it) {
  const auto made = open("a", OpenMode::keep);
  ASSERT_TRUE(made->write(bytes_of("hello"), 0).is_ok());
  const auto kept = open("a", OpenMode::keep);
  EXPECT_EQ(*kept->size(), 5);
  ASSERT_TRUE(kept->write(bytes_of("J"), 0).is_ok());
  kept->begin_write_back();
  EXPECT_EQ(contents_of(*target, at("a")), "Jello");
  const auto cut = open("a", OpenMode::create);
  EXPECT_EQ(*cut->size(), 0);
}

TEST_P(TargetConformance, gaps_read_as_zeros) {
  const auto file = open("a", OpenMode::create);
  ASSERT_TRUE(file->write(bytes_of("x"), 100'000).is_ok());
  ByteVector buffer(100'001, std::byte{7});
  EXPECT_EQ(*file->read(buffer, 0), 100'001);
  EXPECT_TRUE(std::all_of(buffer.begin(), buffer.end() - 1, [](std::byte b) { return b == std::byte{0}; }));
  EXPECT_EQ(buffer.back(), std::byte{'x'});
}

TEST_P(TargetConformance, gathered_parts_follow_one_another) {
  const auto file = open("a", OpenMode::create);
  const ByteVector one = bytes_of("one"), none, two = bytes_of("two!");
  const std::span<const std::byte> parts[] = {none, one, none, none, two, none};
  ASSERT_TRUE(file->write_gathered(parts, 2).is_ok());
  EXPECT_EQ(contents_of(*target, at("a")), std::string("\0\0onetwo!", 9));
}

TEST_P(TargetConformance, more_parts_than_one_call_takes_are_written) {
  const auto file = open("a", OpenMode::create);
  std::vector<ByteVector> pieces;
  std::string expected;
  for (int i = 0; i < 5000; ++i) {
    const std::string text(static_cast<std::size_t>(i % 7), static_cast<char>('a' + i % 26));
    pieces.push_back(bytes_of(text));
    expected += text;
  }
  const std::vector<std::span<const std::byte>> parts(pieces.begin(), pieces.end());
  ASSERT_TRUE(file->write_gathered(parts, 0).is_ok());
  EXPECT_EQ(contents_of(*target, at("a")), expected);
}

TEST_P(TargetConformance, writing_nothing_changes_nothing) {
  const auto file = open("a", OpenMode::create);
  EXPECT_TRUE(file->write({}, 50).is_ok());
  EXPECT_TRUE(file->write_gathered({}, 50).is_ok());
  EXPECT_EQ(*file->size(), 0);
}

TEST_P(TargetConformance, offsets_beyond_4_gib_are_exact) {
  if (GetParam().has_small_files_alone) return;
  const auto file = open("a", OpenMode::create);
  const Bytes far = (Bytes{5} << 30) + 3;
  ASSERT_TRUE(file->write(bytes_of("near"), 3).is_ok());
  ASSERT_TRUE(file->write(bytes_of("far"), far).is_ok());
  EXPECT_EQ(*file->size(), far + 3);
  ByteVector buffer(4);
  EXPECT_EQ(*file->read(buffer, far), 3);
  EXPECT_EQ(text_of(buffer).substr(0, 3), "far");
  EXPECT_EQ(*file->read(buffer, 3), 4);
  EXPECT_EQ(text_of(buffer), "near");
  ASSERT_TRUE(file->truncate(far + 1).is_ok());
  EXPECT_EQ(*file->read(buffer, far), 1);
}

TEST_P(TargetConformance, impossible_offsets_are_refused) {
  const auto file = open("a", OpenMode::create);
  ByteVector data(16);
  for (const Bytes offset :
       {Bytes{-1}, std::numeric_limits<Bytes>::min(), std::numeric_limits<Bytes>::max() - 3}) {
    EXPECT_EQ(file->write(data, offset).code(), Code::argument) << offset;
    EXPECT_EQ(file->read(data, offset).status().code(), Code::argument) << offset;
  }
  EXPECT_EQ(file->truncate(-1).code(), Code::argument);
  const std::string text = file->write(data, -1).text();
  EXPECT_NE(text.find(at("a")), std::string::npos) << text;
  EXPECT_NE(text.find("-1"), std::string::npos) << text;
}

TEST_P(TargetConformance, truncation_cuts_and_extends_with_zeros) {
  const auto file = open("a", OpenMode::create);
  ASSERT_TRUE(file->write(bytes_of("abcdef"), 0).is_ok());
  ASSERT_TRUE(file->truncate(3).is_ok());
  EXPECT_EQ(contents_of(*target, at("a")), "abc");
  ASSERT_TRUE(file->truncate(5).is_ok());
  EXPECT_EQ(contents_of(*target, at("a")), std::string("abc\0\0", 5));
  ASSERT_TRUE(file->truncate(0).is_ok());
  EXPECT_EQ(contents_of(*target, at("a")), "");
}

TEST_P(TargetConformance, random_operations_match_a_plain_string) {
  std::mt19937_64 random(20260301);
  const auto file = open("a", OpenMode::create);
  std::string expected;
  for (int i = 0; i < 400; ++i) {
    const std::size_t offset = random() % 200'000, size = random() % 3000;
    if (random() % 8 == 0) {
      expected.resize(offset);
      ASSERT_TRUE(file->truncate(static_cast<Bytes>(offset)).is_ok());
      continue;
    }
    const std::string text(size, static_cast<char>('a' + random() % 26));
    ASSERT_TRUE(file->write(bytes_of(text), static_cast<Bytes>(offset)).is_ok());
    if (size > 0) {
      if (expected.size() < offset + size) expected.resize(offset + size);
      expected.replace(offset, size, text);
    }
  }
  EXPECT_EQ(*file->size(), static_cast<Bytes>(expected.size()));
  EXPECT_TRUE(contents_of(*target, at("a")) == expected);
}

TEST_P(TargetConformance, create_empties_a_file_and_existing_keeps_it) {
  ASSERT_TRUE(put_file(*target, at("a"), "old").is_ok());
  const auto kept = open("a", OpenMode::existing);
  EXPECT_EQ(*kept->size(), 3);
  ASSERT_TRUE(kept->write(bytes_of("O"), 0).is_ok());
  EXPECT_EQ(contents_of(*target, at("a")), "Old");
  const auto emptied = open("a", OpenMode::create);
  EXPECT_EQ(*emptied->size(), 0);
  EXPECT_EQ(*kept->size(), 0);
}

TEST_P(TargetConformance, missing_files_are_ENOENT_and_named) {
  for (const OpenMode mode : {OpenMode::read, OpenMode::existing}) {
    const Status status = target->open(at("missing"), mode).status();
    EXPECT_EQ(status.code(), Code::io);
    EXPECT_EQ(status.error_number(), ENOENT);
    EXPECT_NE(status.text().find(at("missing")), std::string::npos) << status.text();
    EXPECT_NE(status.text().find("open"), std::string::npos) << status.text();
  }
  EXPECT_EQ(target->remove(at("missing")).error_number(), ENOENT);
  EXPECT_EQ(target->rename(at("missing"), at("b")).error_number(), ENOENT);
  EXPECT_EQ(target->list(at("missing")).status().error_number(), ENOENT);
}

TEST_P(TargetConformance, nothing_makes_a_directory_by_the_way) {
  if (GetParam().has_small_files_alone) return;
  const std::string inside = at("no/such/a");
  EXPECT_EQ(target->open(inside, OpenMode::create).status().error_number(), ENOENT);
  EXPECT_EQ(target->sync_directory_of(inside).error_number(), ENOENT);
  EXPECT_EQ(target->lock(inside).status().error_number(), ENOENT);
  EXPECT_FALSE(*target->exists(at("no")));
}

TEST_P(TargetConformance, a_directory_is_no_file) {
  ASSERT_TRUE(target->make_directories(at("d")).is_ok());
  ASSERT_TRUE(put_file(*target, at("d/inside"), "").is_ok());
  for (const OpenMode mode : {OpenMode::read, OpenMode::existing, OpenMode::create}) {
    EXPECT_EQ(target->open(at("d"), mode).status().error_number(), EISDIR);
  }
  EXPECT_EQ(target->remove(at("d")).error_number(), EISDIR);
}

TEST_P(TargetConformance, an_empty_directory_is_removed_and_another_gets_a_new_name) {
  if (GetParam().has_small_files_alone) return;
  ASSERT_TRUE(target->make_directories(at("d/e")).is_ok());
  ASSERT_TRUE(create_empty(*target, at("d/e/f")).is_ok());
  EXPECT_EQ(target->remove_directory(at("d/e")).error_number(), ENOTEMPTY);
  EXPECT_EQ(target->remove_directory(at("none")).error_number(), ENOENT);
  ASSERT_TRUE(target->rename(at("d"), at("moved")).is_ok());
  EXPECT_FALSE(*target->exists(at("d")));
  EXPECT_TRUE(*target->exists(at("moved/e/f")));
  ASSERT_TRUE(target->make_directories(at("other")).is_ok());
  ASSERT_TRUE(create_empty(*target, at("other/g")).is_ok());
  EXPECT_EQ(target->rename(at("moved"), at("other")).error_number(), ENOTEMPTY);
  EXPECT_TRUE(target->remove(at("moved/e/f")).is_ok());
  EXPECT_TRUE(target->remove_directory(at("moved/e")).is_ok());
  EXPECT_FALSE(*target->exists(at("moved/e")));
}

TEST_P(TargetConformance, a_copy_has_the_first_bytes) {
  ASSERT_TRUE(put_file(*target, at("a"), "abcdef").is_ok());
  ASSERT_TRUE(target->copy(at("a"), 4, at("b")).is_ok());
  const auto copy = open("b", OpenMode::read);
  EXPECT_EQ(*copy->size(), 4);
  EXPECT_TRUE(*copy->holds(4, {}));
  EXPECT_FALSE(*copy->holds(5, {}));
  EXPECT_EQ(target->copy(at("a"), 7, at("b")).code(), Code::corrupt);
}

TEST_P(TargetConformance, a_regular_file_is_read_and_a_directory_is_none) {
  if (GetParam().has_small_files_alone) return;
  ASSERT_TRUE(put_file(*target, at("a"), "text").is_ok());
  ASSERT_TRUE(target->make_directories(at("d")).is_ok());
  const auto file = open("a", OpenMode::read_regular);
  ByteVector buffer(4);
  EXPECT_EQ(*file->read(buffer, 0), 4);
  EXPECT_EQ(text_of(buffer), "text");
  EXPECT_EQ(file->write(bytes_of("x"), 0).code(), Code::io);
  EXPECT_TRUE(file->sync().is_ok());
  for (const char* name : {"d", "none"})
    EXPECT_EQ(target->open(at(name), OpenMode::read_regular).status().error_number(), ENOENT);
}

TEST_P(TargetConformance, a_file_is_no_directory) {
  if (GetParam().has_small_files_alone) return;
  ASSERT_TRUE(put_file(*target, at("f"), "x").is_ok());
  EXPECT_EQ(target->make_directories(at("f")).error_number(), ENOTDIR);
  EXPECT_EQ(target->make_directories(at("f/d")).error_number(), ENOTDIR);
  EXPECT_EQ(target->open(at("f/a"), OpenMode::create).status().error_number(), ENOTDIR);
  EXPECT_EQ(target->list(at("f")).status().error_number(), ENOTDIR);
  EXPECT_FALSE(*target->exists(at("f/a")));
}

TEST_P(TargetConformance, a_file_open_for_reading_refuses_writes) {
  ASSERT_TRUE(put_file(*target, at("a"), "text").is_ok());
  const auto file = open("a", OpenMode::read);
  EXPECT_EQ(file->write(bytes_of("x"), 0).code(), Code::io);
  EXPECT_EQ(file->truncate(0).code(), Code::io);
  EXPECT_EQ(contents_of(*target, at("a")), "text");
}

TEST_P(TargetConformance, rename_replaces_and_open_files_follow) {
  ASSERT_TRUE(put_file(*target, at("old"), "old").is_ok());
  ASSERT_TRUE(put_file(*target, at("new"), "new").is_ok());
  const auto replaced = open("old", OpenMode::existing);
  const auto renamed = open("new", OpenMode::existing);
  ASSERT_TRUE(target->rename(at("new"), at("old")).is_ok());
  EXPECT_FALSE(*target->exists(at("new")));
  EXPECT_EQ(contents_of(*target, at("old")), "new");
  ASSERT_TRUE(renamed->write(bytes_of("N"), 0).is_ok());
  ASSERT_TRUE(replaced->write(bytes_of("O"), 0).is_ok());
  EXPECT_EQ(contents_of(*target, at("old")), "New");
  EXPECT_TRUE(target->sync_directory_of(at("old")).is_ok());
}

TEST_P(TargetConformance, renaming_to_the_same_name_changes_nothing) {
  ASSERT_TRUE(put_file(*target, at("a"), "a").is_ok());
  EXPECT_TRUE(target->rename(at("a"), at("./a")).is_ok());
  EXPECT_EQ(contents_of(*target, at("a")), "a");
}

TEST_P(TargetConformance, rename_between_directories_is_refused) {
  ASSERT_TRUE(target->make_directories(at("d")).is_ok());
  ASSERT_TRUE(put_file(*target, at("a"), "a").is_ok());
  const Status status = target->rename(at("a"), at("d/a"));
  EXPECT_EQ(status.code(), Code::argument) << status.text();
  EXPECT_TRUE(*target->exists(at("a")));
}

TEST_P(TargetConformance, a_removed_file_is_gone_but_serves_who_has_it_open) {
  ASSERT_TRUE(put_file(*target, at("a"), "text").is_ok());
  const auto file = open("a", OpenMode::existing);
  ASSERT_TRUE(target->remove(at("a")).is_ok());
  EXPECT_FALSE(*target->exists(at("a")));
  ByteVector buffer(4);
  EXPECT_EQ(*file->read(buffer, 0), 4);
  EXPECT_TRUE(target->sync_directory_of(at("a")).is_ok());
}

TEST_P(TargetConformance, directories_are_made_with_those_above_and_again_without_error) {
  if (GetParam().has_small_files_alone) return;
  ASSERT_TRUE(target->make_directories(at("x//y/./z/")).is_ok());
  ASSERT_TRUE(target->make_directories(at("x/y/z")).is_ok());
  EXPECT_TRUE(*target->exists(at("x/y/z")));
  ASSERT_TRUE(put_file(*target, at("x/y/z/a"), "deep").is_ok());
  EXPECT_EQ(contents_of(*target, at("x/y/../y/z/a")), "deep");
}

TEST_P(TargetConformance, list_is_sorted_and_holds_names_of_files_and_directories) {
  for (const char* name : {"b", "a", "c.grib2", ".hidden"})
    ASSERT_TRUE(put_file(*target, at(name), "").is_ok());
  ASSERT_TRUE(target->make_directories(at("d/below")).is_ok());
  if (!GetParam().has_small_files_alone) {
    EXPECT_EQ(*target->list(root), (std::vector<std::string>{".hidden", "a", "b", "c.grib2", "d"}));
    EXPECT_EQ(*target->list(at("d/below")), std::vector<std::string>{});
  }
  ASSERT_TRUE(put_file(*target, at("d/below/inside"), "").is_ok());
  EXPECT_EQ(*target->list(root), (std::vector<std::string>{".hidden", "a", "b", "c.grib2", "d"}));
  EXPECT_EQ(*target->list(at("d/below")), std::vector<std::string>{"inside"});
}

TEST_P(TargetConformance, space_is_told_for_files_that_do_not_exist_yet) {
  const auto space = target->space(at("not/yet"));
  ASSERT_TRUE(space.is_ok()) << space.status().text();
  EXPECT_GT(space->free, 0);
  EXPECT_GT(space->block, 0);
}

TEST_P(TargetConformance, a_closed_file_refuses_every_call) {
  const auto file = open("a", OpenMode::create);
  ASSERT_TRUE(file->close().is_ok());
  ByteVector buffer(1);
  EXPECT_EQ(file->write(buffer, 0).code(), Code::state);
  EXPECT_EQ(file->read(buffer, 0).status().code(), Code::state);
  EXPECT_EQ(file->sync().code(), Code::state);
  EXPECT_EQ(file->truncate(0).code(), Code::state);
  EXPECT_EQ(file->size().status().code(), Code::state);
  const Status again = file->close();
  EXPECT_EQ(again.code(), Code::state);
  EXPECT_NE(again.text().find(at("a")), std::string::npos) << again.text();
}

TEST_P(TargetConformance, many_files_and_directories_are_synchronised_and_the_first_failure_is_told) {
  if (GetParam().has_small_files_alone) return;
  std::vector<std::unique_ptr<File>> files;
  std::vector<File*> all;
  std::vector<std::string> paths;
  for (int i = 0; i < 30; ++i) {
    const std::string directory = cat("many", i % 10);
    ASSERT_TRUE(target->make_directories(at(directory)).is_ok());
    files.push_back(open(cat(directory, "/file", i), OpenMode::create));
    ASSERT_TRUE(files.back()->write(bytes_of("x"), 0).is_ok());
    all.push_back(files.back().get());
    paths.push_back(at(cat(directory, "/file", i)));
  }
  EXPECT_TRUE(target->sync_files(all).is_ok());
  EXPECT_TRUE(target->sync_directories_of(paths).is_ok());
  EXPECT_TRUE(target->sync_files({}).is_ok() && target->sync_directories_of({}).is_ok());
  if (const auto* const disk = dynamic_cast<CrashTarget*>(target.get()); disk != nullptr) {
    for (const std::string& path : paths) EXPECT_TRUE(*disk->crash({}, 1)->exists(path)) << path;
  }
  ASSERT_TRUE(files[7]->close().is_ok() && files[20]->close().is_ok());
  const Status failed = target->sync_files(all);
  EXPECT_EQ(failed.code(), Code::state);
  EXPECT_NE(failed.text().find("many7/file7"), std::string::npos) << failed.text();
  paths[3] = at("nowhere/a");
  EXPECT_EQ(target->sync_directories_of(paths).error_number(), ENOENT);
}

TEST_P(TargetConformance, a_name_tells_what_it_leads_to) {
  ASSERT_TRUE(put_file(*target, at("f"), "text").is_ok());
  ASSERT_TRUE(target->make_directories(at("d")).is_ok());
  ASSERT_TRUE(put_file(*target, at("d/inside"), "").is_ok());
  const auto kind_of = [&](std::string_view name) { return *target->kind_of(at(name)); };
  EXPECT_EQ(kind_of("f"), Kind::file);
  EXPECT_EQ(kind_of("d"), Kind::directory);
  EXPECT_EQ(kind_of("no"), Kind::nothing);
  EXPECT_EQ(kind_of("f/below"), Kind::nothing);
  EXPECT_EQ(kind_of("no/below"), Kind::nothing);
  EXPECT_TRUE(is_file(*target, at("f")));
  EXPECT_FALSE(is_file(*target, at("d")) || is_file(*target, at("no")));
  EXPECT_EQ(target->behind_links(at("f")), at("f"));
  if (!GetParam().on_disk) return;
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  EXPECT_EQ(kind_of("pipe"), Kind::other);
  std::filesystem::create_symlink("f", at("to_f"));
  std::filesystem::create_symlink(at("to_f"), at("to_link"));
  std::filesystem::create_symlink("gone", at("to_nothing"));
  EXPECT_EQ(kind_of("to_link"), Kind::file);
  EXPECT_EQ(kind_of("to_nothing"), Kind::nothing);
  EXPECT_EQ(target->behind_links(at("to_link")), at("f"));
  EXPECT_EQ(target->behind_links(at("to_nothing")), at("gone"));
}

TEST_P(TargetConformance, an_identity_changes_with_the_file) {
  ASSERT_TRUE(put_file(*target, at("a"), "text").is_ok());
  ASSERT_TRUE(put_file(*target, at("b"), "text").is_ok());
  const Result<Identity> first = target->identity_of(at("a"));
  EXPECT_EQ(first.is_ok(), GetParam().on_disk) << first.status().text();
  if (!first.is_ok()) return;
  EXPECT_EQ(*target->identity_of(at("a")), *first);
  ASSERT_TRUE(target->rename(at("b"), at("a")).is_ok());
  EXPECT_NE(*target->identity_of(at("a")), *first);
  EXPECT_EQ(target->identity_of(at("b")).status().error_number(), ENOENT);
}

TEST_P(TargetConformance, an_open_file_tells_its_descriptors) {
  const auto open_now = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return static_cast<int>(std::distance(begin(all), end(all)));
  };
  const int before = open_now();
  const auto file = open("a", OpenMode::create);
  const int taken = open_now() - before;
  if (GetParam().on_disk)
    EXPECT_EQ(file->descriptors(), taken);
  else
    EXPECT_GE(file->descriptors(), taken);
}

TEST_P(TargetConformance, a_file_outlives_its_target) {
  const auto file = open("a", OpenMode::create);
  target.reset();
  EXPECT_TRUE(file->write(bytes_of("x"), 0).is_ok());
  EXPECT_TRUE(file->sync().is_ok());
  EXPECT_TRUE(file->close().is_ok());
}

TEST_P(TargetConformance, threads_write_one_file_and_many_side_by_side) {
  constexpr int threads = 4, pieces = 50, size = 1000;
  const auto shared = open("shared", OpenMode::create);
  std::vector<std::thread> running;
  std::atomic<int> failures = 0;
  for (int t = 0; t < threads; ++t) {
    running.emplace_back([&, t] {
      const std::string text(size, static_cast<char>('a' + t));
      auto own = target->open(at("own" + std::to_string(t)), OpenMode::create);
      if (!own.is_ok()) ++failures;
      for (int i = 0; i < pieces; ++i) {
        if (!shared->write(bytes_of(text), Bytes{size} * (i * threads + t)).is_ok()) ++failures;
        if (own.is_ok() && !(*own)->write(bytes_of(text), Bytes{size} * i).is_ok()) ++failures;
        if (i % 10 == 0 && !shared->sync().is_ok()) ++failures;
      }
      if (own.is_ok() && !(*own)->close().is_ok()) ++failures;
    });
  }
  for (std::thread& thread : running) thread.join();
  EXPECT_EQ(failures, 0);
  std::string expected;
  for (int i = 0; i < pieces * threads; ++i)
    expected += std::string(size, static_cast<char>('a' + i % threads));
  EXPECT_TRUE(contents_of(*target, at("shared")) == expected);
  EXPECT_TRUE(contents_of(*target, at("own2")) == std::string(size * pieces, 'c'));
}

TEST_P(TargetConformance, a_lock_is_exclusive_and_names_its_holder) {
  auto held = target->lock(at("run.lock"));
  ASSERT_TRUE(held.is_ok()) << held.status().text();
  ASSERT_NE(*held, nullptr);
  EXPECT_EQ(*target->exists(at("run.lock")), GetParam().lock_leaves_file);
  const Status refused = target->lock(at("./run.lock")).status();
  EXPECT_EQ(refused.code(), Code::state);
  EXPECT_NE(refused.text().find("pid " + std::to_string(::getpid())), std::string::npos) << refused.text();
  EXPECT_NE(refused.text().find("run.lock"), std::string::npos) << refused.text();
  EXPECT_NE(refused.text().find("held by this process"), std::string::npos) << refused.text();
  EXPECT_TRUE(target->lock(at("other.lock")).is_ok());
}

TEST_P(TargetConformance, a_lock_ends_with_its_last_holder_and_leaves_nothing) {
  {
    auto held = target->lock(at("run.lock"));
    ASSERT_TRUE(held.is_ok());
    const std::shared_ptr<void> second = *held;
    held = Status(Code::state, "let go of the first");
    EXPECT_FALSE(target->lock(at("run.lock")).is_ok());
  }
  EXPECT_FALSE(*target->exists(at("run.lock")));
  EXPECT_TRUE(target->lock(at("run.lock")).is_ok());
  EXPECT_TRUE(target->lock(at("run.lock")).is_ok());
}

TEST_P(TargetConformance, a_lock_that_is_shared_keeps_others_out_until_the_last_share_ends) {
  if (GetParam().has_small_files_alone) return;
  auto own = target->lock(at("run.lock"));
  ASSERT_TRUE(own.is_ok());
  EXPECT_EQ(target->share_lock(at("run.lock"), nullptr).status().code(), Code::state);
  auto first = target->share_lock(at("run.lock"), std::exchange(*own, nullptr));
  ASSERT_TRUE(first.is_ok()) << first.status().text();
  auto second = target->share_lock(at("./run.lock"), nullptr);
  ASSERT_TRUE(second.is_ok()) << second.status().text();
  EXPECT_EQ(target->lock(at("run.lock")).status().code(), Code::state);
  first->reset();
  EXPECT_EQ(target->lock(at("run.lock")).status().code(), Code::state);
  second->reset();
  EXPECT_TRUE(target->lock(at("run.lock")).is_ok());
  EXPECT_FALSE(*target->exists(at("run.lock")));
}

TEST_P(TargetConformance, the_first_share_removes_the_lock_file_if_it_is_the_last) {
  if (GetParam().has_small_files_alone) return;
  auto own = target->lock(at("run.lock"));
  ASSERT_TRUE(own.is_ok());
  auto first = target->share_lock(at("run.lock"), std::exchange(*own, nullptr));
  auto second = target->share_lock(at("run.lock"), nullptr);
  ASSERT_TRUE(first.is_ok() && second.is_ok());
  second->reset();
  first->reset();
  EXPECT_FALSE(*target->exists(at("run.lock")));
}

TEST_P(TargetConformance, a_data_file_is_never_taken_for_a_lock) {
  ASSERT_TRUE(put_file(*target, at("data"), "precious").is_ok());
  EXPECT_EQ(target->lock(at("data")).status().code(), Code::argument);
  EXPECT_EQ(contents_of(*target, at("data")), "precious");
}

INSTANTIATE_TEST_SUITE_P(every_target, TargetConformance, testing::ValuesIn(candidates()),
                         [](const auto& instance) { return instance.param.name; });

TEST(registry, every_name_makes_a_target_or_says_why_not) {
  for (const TargetKind& kind : target_kinds()) {
    const auto made = make_target(kind.name);
    if (made.is_ok()) continue;
    EXPECT_NE(kind.name, target_kinds().front().name) << "the default: " << made.status().text();
    EXPECT_EQ(made.status().code(), Code::unsupported);
    EXPECT_NE(made.status().text().find("use \"posix\""), std::string::npos) << made.status().text();
  }
}

TEST(registry, an_unknown_name_is_refused_with_the_nearest) {
  const auto made = make_target("possix");
  ASSERT_FALSE(made.is_ok());
  EXPECT_EQ(made.status().code(), Code::settings);
  EXPECT_NE(made.status().text().find("did you mean \"posix\""), std::string::npos) << made.status().text();
}

TEST(registry, the_default_is_the_first_kind_and_programs_may_name_it) {
  EXPECT_TRUE(target_kinds().front().for_programs);
  const ScratchDirectory scratch;
  ASSERT_TRUE(put_file(*default_target(), scratch / "a", "text").is_ok());
  const auto same = make_target(target_kinds().front().name);
  ASSERT_TRUE(same.is_ok());
  EXPECT_EQ(contents_of(**same, scratch / "a"), "text");
}

TEST(registry, prefixes_end_in_a_root_and_none_begins_with_another) {
  for (const TargetKind& kind : target_kinds()) {
    if (kind.prefix.empty()) continue;
    EXPECT_TRUE(kind.prefix.ends_with("://") && kind.prefix.size() > 3) << kind.name;
    for (const TargetKind& other : target_kinds())
      EXPECT_TRUE(&other == &kind || other.prefix.empty() || !other.prefix.starts_with(kind.prefix))
          << kind.name << " and " << other.name;
  }
}

TEST(registry, the_page_on_storage_lists_every_kind_in_order_with_its_use_and_its_page) {
  std::ifstream page(TAILRACE_STORAGE_PAGES "/README.md");
  std::vector<std::string> rows;  // whose second column is a name in backticks
  for (std::string line; std::getline(page, line);)
    if (line.starts_with("| ") && line.find(" | `") != std::string::npos) rows.push_back(line);
  ASSERT_EQ(rows.size(), target_kinds().size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const TargetKind& kind = target_kinds()[i];
    const std::string name_of_page = cat(kind.name, ".md");
    for (const std::string& part :
         {cat(" | `", kind.name, "` | ", kind.use), cat(" | [", name_of_page, "](", name_of_page, ") |")})
      EXPECT_NE(rows[i].find(part), std::string::npos) << rows[i] << "\nlacks: " << part;
    EXPECT_TRUE(std::filesystem::exists(cat(TAILRACE_STORAGE_PAGES "/", name_of_page))) << name_of_page;
  }
}

}  // namespace
}  // namespace tailrace::storage
