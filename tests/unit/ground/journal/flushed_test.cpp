// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// FILE.undo: its bytes, and what is done with one that is none.
#include "ground/journal/flushed.hpp"

#include <gtest/gtest.h>

#include "ground/base/checksum.hpp"
#include "ground/storage/memory.hpp"
#include "support/small_files.hpp"

namespace tailrace::journal {
namespace {

/// docs/formats/undo-files.md#of-shared-files
TEST(flushed, the_bytes_are_those_of_the_format) {
  const auto target = storage::memory_target();
  ASSERT_TRUE(prepare_flushed(*target, "f", {4, 0x1234, 0x56, 0x78}).is_ok());
  EXPECT_FALSE(read_flushed(*target, "f")->has_value());
  ASSERT_TRUE(commit_flushed(*target, "f").is_ok());
  EXPECT_EQ(*read_flushed(*target, "f"), (Flushed{4, 0x1234, 0x56, 0x78}));
  ByteVector expected;
  for (const char each : std::string_view("TRFLUSH2")) expected.push_back(static_cast<std::byte>(each));
  expected.resize(40);
  expected[8] = std::byte{4};
  expected[16] = std::byte{0x34};
  expected[17] = std::byte{0x12};
  expected[24] = std::byte{0x56};
  expected[32] = std::byte{0x78};
  const auto add_sum = [&expected] {
    const std::uint64_t sum = checksum(expected);
    for (unsigned i = 0; i < 8; ++i) expected.push_back(static_cast<std::byte>(sum >> 8 * i & 0xff));
  };
  add_sum();
  EXPECT_TRUE(bytes_in(*target, "f.undo") == expected);
  // That of an early version, which has neither the sample nor the open.
  expected.resize(24);
  expected[7] = std::byte{'1'};
  add_sum();
  EXPECT_TRUE(target->remove("f.undo").is_ok());
  put_in(*target, "f.undo", expected);
  EXPECT_EQ(*read_flushed(*target, "f"), (Flushed{4, 0x1234}));
}

TEST(flushed, one_that_is_damaged_changes_nothing) {
  const auto target = storage::memory_target();
  const ByteVector content(100, std::byte{7});
  put_in(*target, "f", content);
  ASSERT_TRUE(prepare_flushed(*target, "f", {1, 10}).is_ok() && commit_flushed(*target, "f").is_ok());
  const ByteVector good = bytes_in(*target, "f.undo");
  for (std::size_t at = 0; at <= good.size(); ++at) {
    ByteVector bad = good;
    if (at < good.size())
      bad[at] ^= std::byte{1};
    else
      bad.push_back(std::byte{0});
    put_in(*target, "f.undo", bad);
    EXPECT_EQ(bring_back_flushed(*target, "f").status().code(), Code::corrupt) << at;
    EXPECT_TRUE(bytes_in(*target, "f.undo") == bad && bytes_in(*target, "f") == content);
  }
  put_in(*target, "f.undo", good);
  const Result<bool> brought = bring_back_flushed(*target, "f");
  EXPECT_TRUE(brought.is_ok() && *brought);
  EXPECT_EQ(bytes_in(*target, "f"), ByteVector(10, std::byte{7}));
  EXPECT_FALSE(*bring_back_flushed(*target, "f"));
}

/// Somebody has renamed the file and all that lies beside it. Undo files know it by the old name: without
/// them it would be cut to its flushed size, and hold what was written over.
TEST(flushed, a_file_of_another_name_than_its_undo_files_is_not_brought_back) {
  const auto target = storage::memory_target();
  const ByteVector content(100, std::byte{7});
  put_in(*target, "g", content);
  const auto undo = *UndoWriter::create(*target, "g.undo", 3, "f");
  ASSERT_TRUE(undo->add(UndoRecord::What::bytes, 0, ByteVector(5)).is_ok() && undo->seal().is_ok());
  ASSERT_TRUE(prepare_flushed(*target, "g", {3, 10}).is_ok() && commit_flushed(*target, "g").is_ok());
  const Status refused = bring_back_flushed(*target, "g").status();
  EXPECT_EQ(refused.code(), Code::corrupt);
  EXPECT_NE(refused.text().find("another name"), std::string::npos) << refused.text();
  EXPECT_TRUE(bytes_in(*target, "g") == content);
  EXPECT_TRUE(*target->exists("g.undo") && *target->exists(undo->own_path()));
  // Those of other generations count neither for this name nor for another.
  ASSERT_TRUE(prepare_flushed(*target, "g", {4, 10}).is_ok() && commit_flushed(*target, "g").is_ok());
  EXPECT_TRUE(*bring_back_flushed(*target, "g"));
  EXPECT_EQ(std::ssize(bytes_in(*target, "g")), 10);
}

/// Somebody has removed the file alone: there is nothing to bring back.
TEST(flushed, without_the_file_what_lies_beside_it_goes) {
  const auto target = storage::memory_target();
  const auto undo = *UndoWriter::create(*target, "f.undo", 3, "f", {2, 5}, {});
  ASSERT_TRUE(undo->add(UndoRecord::What::bytes, 0, ByteVector(5)).is_ok() && undo->seal().is_ok());
  EXPECT_TRUE(undo->own_path().ends_with(".2"));
  EXPECT_TRUE((*UndoWriter::create(*target, "f.undo", 3, "f", {2, 5}, {}))->own_path().ends_with(".7"));
  ASSERT_TRUE(prepare_flushed(*target, "f", {3, 10}).is_ok() && commit_flushed(*target, "f").is_ok());
  const Result<bool> brought = bring_back_flushed(*target, "f");
  EXPECT_TRUE(brought.is_ok() && !*brought);
  EXPECT_TRUE(target->list(".")->empty());
}

/// Lists its directory as it was, until the program has changed it: so does a client of NFS for a minute.
class OldListing final : public storage::MemoryTarget {
 public:
  OldListing() : MemoryTarget(false) {}
  void show(const std::vector<std::string>& names) { shown_ = names; }
  Result<std::vector<std::string>> list(const std::string& directory) override {
    return shown_ ? Result<std::vector<std::string>>(*shown_) : MemoryTarget::list(directory);
  }
  using storage::Target::open;
  Result<std::unique_ptr<storage::File>> open(const std::string& path, storage::OpenMode mode,
                                              unsigned permissions) override {
    if (storage::empties(mode)) shown_.reset();
    return MemoryTarget::open(path, mode, permissions);
  }

 private:
  std::optional<std::vector<std::string>> shown_;
};

TEST(flushed, undo_files_that_another_machine_has_just_made_are_found) {
  OldListing target;
  const ByteVector flushed(1000, std::byte{1}), after(1000, std::byte{2});
  put_in(target, "f", flushed);
  ASSERT_TRUE(prepare_flushed(target, "f", {1, 1000}).is_ok() && commit_flushed(target, "f").is_ok());
  const std::vector<std::string> before = *target.list(".");
  const auto writer = *UndoWriter::create(target, flushed_path("f"), 1, name_beside("f"));
  ASSERT_TRUE(writer->add(UndoRecord::What::bytes, 0, flushed).is_ok() && writer->seal().is_ok());
  put_in(target, "f", after);
  target.show(before);
  const auto lock = lock_flushed(target, "f");
  ASSERT_TRUE(lock.is_ok()) << lock.status().text();
  EXPECT_TRUE(*bring_back_flushed(target, "f"));
  EXPECT_TRUE(bytes_in(target, "f") == flushed);
  EXPECT_EQ(target.list(".")->size(), 1u);
}

TEST(flushed, what_was_prepared_by_a_killed_program_goes) {
  const auto target = storage::memory_target();
  put_in(*target, "f", ByteVector(10));
  ASSERT_TRUE(prepare_flushed(*target, "f", {1, 10}).is_ok());
  EXPECT_TRUE(*is_left_open(*target, "f"));
  ASSERT_TRUE(lock_flushed(*target, "f").is_ok());
  EXPECT_FALSE(*is_left_open(*target, "f"));
  EXPECT_EQ(*target->list("."), (std::vector<std::string>{"f"}));
}

}  // namespace
}  // namespace tailrace::journal
