// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// The needs of files that go on from checkpoints: knowledge of their growth, a file that stays open, and the
// bytes of their positions.
#include <gtest/gtest.h>

#include "ground/journal/growth.hpp"
#include "ground/journal/lasting_file.hpp"
#include "ground/journal/position.hpp"
#include "ground/storage/faulty.hpp"

using namespace tailrace;
using journal::Growth;
using journal::LastingFile;
using journal::Position;

namespace {

TEST(growth, appending_in_any_pieces_is_no_overwriting) {
  Growth growth("log", 100, 0);
  for (const Bytes bytes : {1, 0, 50, 7}) growth.wrote(growth.end(), bytes);
  EXPECT_EQ(growth.end(), 158);
  growth.wrote(200, 10);  // behind a hole
  growth.wrote(3, 0);     // no bytes
  EXPECT_EQ(growth.end(), 210);
  EXPECT_FALSE(growth.overwritten_at());
}

TEST(growth, the_first_byte_below_the_end_is_told) {
  Growth growth("log", 100, 0);
  growth.wrote(99, 1);
  growth.wrote(0, 50);
  EXPECT_EQ(growth.overwritten_at(), Bytes{99});
  EXPECT_EQ(growth.end(), 100);
}

TEST(growth, a_cut_before_the_end_is_overwriting) {
  Growth growth("log", 100, 0);
  growth.cut(100);
  EXPECT_FALSE(growth.overwritten_at());
  growth.cut(40);
  EXPECT_EQ(growth.overwritten_at(), Bytes{40});
  EXPECT_EQ(growth.end(), 40);
}

TEST(growth, completing_a_record_is_none_and_ends_with_it) {
  Growth growth("log", 100, 0);
  {
    const Growth::Completing completing(growth);
    growth.stream_wrote(10, 4);
  }
  EXPECT_FALSE(growth.overwritten_at());
  growth.stream_wrote(10, 4);
  EXPECT_EQ(growth.overwritten_at(), Bytes{10});
}

TEST(growth, what_was_recorded_is_not_forgotten) {
  Growth growth("log", 100, 0);
  growth.record(60);
  growth.record(50);  // an earlier size does not free what a later save has
  growth.forget(59);
  EXPECT_EQ(growth.end(), 100);
  growth.forget(60);
  EXPECT_EQ(growth.end(), 60);
  growth.wrote(60, 5);
  EXPECT_FALSE(growth.overwritten_at());
}

std::shared_ptr<LastingFile> lasting(storage::Target& target) {
  auto file = target.open("log", storage::OpenMode::create);
  EXPECT_TRUE(file.is_ok());
  return std::make_shared<LastingFile>(std::move(*file));
}

TEST(lasting_file, is_closed_at_once_where_nobody_holds_it) {
  const auto below = storage::memory_target();
  const auto file = lasting(*below);
  file->hold().reset();
  EXPECT_TRUE(file->close().is_ok());
  EXPECT_EQ(file->sync().code(), Code::state);
  EXPECT_EQ(file->close().code(), Code::state);
}

TEST(lasting_file, stays_open_until_the_last_one_lets_go) {
  const auto below = storage::memory_target();
  auto file = lasting(*below);
  auto first = file->hold();
  auto second = first;
  EXPECT_TRUE(file->close().is_ok());
  EXPECT_EQ(file->close().code(), Code::state);
  LastingFile* const seen = file.get();
  std::weak_ptr<LastingFile> life = file;
  file.reset();  // the program has forgotten it
  first.reset();
  EXPECT_TRUE(second->sync().is_ok());
  EXPECT_TRUE(seen->sync().is_ok());
  second.reset();
  EXPECT_TRUE(life.expired());
}

TEST(lasting_file, a_failed_sync_is_remembered_for_all_who_hold_it) {
  const auto target = storage::faulty_target(
      storage::memory_target(), {1, storage::Fault::io_error, storage::set_of(storage::Call::sync), false});
  const auto file = lasting(*target);
  EXPECT_EQ(file->hold()->sync().code(), Code::io);
  EXPECT_EQ(file->hold()->sync().code(), Code::io);
  EXPECT_EQ(file->sync().code(), Code::io);
}

TEST(positions, come_back_and_damaged_ones_do_not) {
  const std::vector<Position> some = {
      {"log.txt", 7, 10, false}, {"dir/other", 0, 0, true, 3}, {"log.txt", 12, 10, false}};
  Packer out;
  journal::put_positions(out, some);
  const ByteVector bytes = out.take();
  EXPECT_EQ(bytes.size(), 8 + 3 * (8 + 8 + 8 + 4 + 8) + 7 + 9 + 7);
  Unpacker in(bytes);
  const auto back = journal::get_positions(in);
  ASSERT_TRUE(back.is_ok());
  EXPECT_EQ(*back, some);
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    Unpacker cut(std::span<const std::byte>(bytes).first(length));
    EXPECT_EQ(journal::get_positions(cut).status().code(), Code::corrupt) << length;
  }
  // The count of files, the first path's length, the signs of the first position and of its generation.
  for (const std::size_t at :
       {std::size_t{7}, std::size_t{8}, std::size_t{8 + 8 + 7 + 7}, std::size_t{8 + 8 + 7 + 35}}) {
    ByteVector changed = bytes;
    changed[at] = at == 8 ? std::byte{0} : std::byte{0xff};
    Unpacker wrong(changed);
    EXPECT_EQ(journal::get_positions(wrong).status().code(), Code::corrupt) << at;
  }
}

TEST(positions, names_that_differ_in_dots_alone_mean_one_file) {
  EXPECT_TRUE(journal::is_same_path("log", "./log"));
  EXPECT_TRUE(journal::is_same_path("a//b/../log", "a/log"));
  EXPECT_FALSE(journal::is_same_path("log", "/log"));
  EXPECT_FALSE(journal::is_same_path("log", "log2"));
}

}  // namespace
