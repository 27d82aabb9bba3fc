// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/storage/replace.hpp"

#include <gtest/gtest.h>

#include <cerrno>

#include "ground/storage/every_crash.hpp"
#include "ground/storage/faulty.hpp"
#include "ground/storage/scratch.hpp"

namespace tailrace::storage {
namespace {

const std::string old_text(700, 'o');
const std::string new_text(1900, 'n');

/// Calls `replace` on storage that stops at its n-th call, for n = 1, 2, ... until none is left to stop at.
/// After each loss of power the file must have one of the two texts, and the new one if the call succeeded.
template <typename Replace>
void expect_one_of_both(const Replace& replace) {
  for (std::int64_t nth = 1;; ++nth) {
    SCOPED_TRACE(testing::Message() << "call " << nth);
    const auto disk = crash_target();
    ASSERT_TRUE(put_file(*disk, "a", old_text).is_ok());
    const Status status = replace(*faulty_target(disk, {nth, Fault::stopped, changing_calls, true}));
    after_every_crash(*disk, 20, [&](CrashTarget& left) {
      const std::string text = contents_of(left, "a");
      if (status.is_ok())
        EXPECT_EQ(text, new_text);
      else
        EXPECT_TRUE(text == old_text || text == new_text) << text;
    });
    if (status.is_ok()) {
      EXPECT_GT(nth, 5);  // open, write, sync, close, rename, and the directory's sync
      return;
    }
  }
}

TEST(replace, a_loss_of_power_at_any_call_leaves_the_old_file_or_the_new_one) {
  expect_one_of_both([](Target& target) { return replace_file(target, "a", new_text, "a.new"); });
}

TEST(replace, a_file_that_was_written_durably_may_be_renamed_later) {
  expect_one_of_both([](Target& target) -> Status {
    TR_TRY(write_durably(target, "a.new", bytes_of(new_text)));
    return rename_durably(target, "a.new", "a");
  });
}

TEST(replace, a_failed_call_leaves_no_temporary_file) {
  for (const Call call : {Call::open, Call::write, Call::sync, Call::close, Call::rename}) {
    const auto disk = memory_target();
    ASSERT_TRUE(put_file(*disk, "a", old_text).is_ok());
    const auto full = faulty_target(disk, {1, Fault::no_space, set_of(call), false});
    const Status status = replace_file(*full, "a", new_text, "a.new");
    EXPECT_EQ(status.code(), Code::space) << static_cast<int>(call);
    EXPECT_EQ(contents_of(*disk, "a"), old_text);
    EXPECT_EQ(*disk->list("."), std::vector<std::string>{"a"}) << static_cast<int>(call);
  }
}

TEST(replace, a_link_with_the_temporary_name_is_not_followed) {
  const ScratchDirectory directory;
  const auto target = posix_target();
  ASSERT_TRUE(put_file(*target, directory / "other", old_text).is_ok());
  std::filesystem::create_symlink(directory / "other", directory / "a.new");
  ASSERT_TRUE(replace_file(*target, directory / "a", new_text, directory / "a.new").is_ok());
  EXPECT_EQ(contents_of(*target, directory / "other"), old_text);
  EXPECT_EQ(contents_of(*target, directory / "a"), new_text);
}

TEST(cut_back, a_longer_file_is_cut_and_a_shorter_one_gets_no_zeros) {
  const auto disk = memory_target();
  ASSERT_TRUE(put_file(*disk, "a", "0123456789").is_ok());
  EXPECT_EQ(*cut_back(*disk, "a", 6), 4);
  EXPECT_EQ(*cut_back(*disk, "a", 6), 0);
  EXPECT_EQ(*cut_back_durably(*disk, "a", 8), 0);
  EXPECT_EQ(contents_of(*disk, "a"), "012345");
  EXPECT_EQ(*cut_back_durably(*disk, "a", 2), 4);
  EXPECT_EQ(contents_of(*disk, "a"), "01");
  EXPECT_EQ(cut_back(*disk, "b", 0).status().error_number(), ENOENT);
}

TEST(cut_back, what_was_cut_off_durably_does_not_come_back) {
  const auto disk = crash_target();
  ASSERT_TRUE(put_file(*disk, "a", old_text).is_ok());
  ASSERT_EQ(*cut_back_durably(*disk, "a", 9), std::ssize(old_text) - 9);
  after_every_crash(*disk, 20,
                    [](CrashTarget& left) { EXPECT_EQ(contents_of(left, "a"), old_text.substr(0, 9)); });
}

TEST(cut_back, every_failure_is_told) {
  for (const Call call : {Call::open, Call::size, Call::truncate, Call::sync, Call::close}) {
    const auto disk = memory_target();
    ASSERT_TRUE(put_file(*disk, "a", old_text).is_ok());
    const auto faulty = faulty_target(disk, {1, Fault::io_error, set_of(call), false});
    EXPECT_EQ(cut_back_durably(*faulty, "a", 9).status().code(), Code::io) << static_cast<int>(call);
  }
}

TEST(cut_back, a_link_is_followed_only_if_the_caller_says_so) {
  const ScratchDirectory directory;
  const auto target = posix_target();
  ASSERT_TRUE(put_file(*target, directory / "other", old_text).is_ok());
  std::filesystem::create_symlink(directory / "other", directory / "a");
  EXPECT_EQ(cut_back(*target, directory / "a", 9).status().error_number(), ELOOP);
  EXPECT_EQ(cut_back_durably(*target, directory / "a", 9).status().error_number(), ELOOP);
  EXPECT_EQ(contents_of(*target, directory / "other"), old_text);
  EXPECT_TRUE(cut_back(*target, directory / "a", 9, OpenMode::existing).is_ok());
  EXPECT_EQ(contents_of(*target, directory / "other"), old_text.substr(0, 9));
}

TEST(sync_file, what_another_descriptor_has_written_is_durable) {
  const auto disk = crash_target();
  ASSERT_TRUE(put_file(*disk, "a", old_text).is_ok());
  auto file = disk->open("a", OpenMode::existing);
  ASSERT_TRUE((*file)->write(bytes_of(new_text), 0).is_ok());
  ASSERT_TRUE(sync_file(*disk, "a", OpenMode::read).is_ok());
  after_every_crash(*disk, 20, [](CrashTarget& left) { EXPECT_EQ(contents_of(left, "a"), new_text); });
  EXPECT_EQ(sync_file(*disk, "b").error_number(), ENOENT);
}

}  // namespace
}  // namespace tailrace::storage
