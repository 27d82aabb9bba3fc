// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/journal/closed_files.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "ground/base/text.hpp"
#include "ground/storage/faulty.hpp"
#include "ground/storage/scratch.hpp"

namespace tailrace::journal {
namespace {

using storage::Call;
using storage::FaultPlan;
using storage::set_of;

constexpr std::size_t most_waiting = 32;

/// Files that a program writes and closes, over storage that counts and fails calls.
class ClosingProgram {
 public:
  explicit ClosingProgram(storage::CallSet calls, std::int64_t nth = 0)
      : target(storage::faulty_target(storage::posix_target(), {.nth = nth, .calls = calls})) {}

  /// The latest names come first in their order.
  [[nodiscard]] std::string name(int number) const { return scratch / cat("f", 1000 - number); }
  void close(int count) {
    for (int i = 0; i < count; ++i) {
      std::ofstream(name(closed)) << "text";
      files.note(*target, name(closed++));
    }
  }
  Status save() { return files.due().sync(*target); }

  storage::ScratchDirectory scratch;
  std::shared_ptr<storage::FaultyTarget> target;
  ClosedFiles files{most_waiting};
  int closed = 0;
};

bool mentions_of(const Status& status, const std::string& what) {
  return status.text().find(what) != std::string::npos;
}

TEST(ClosedFiles, wait_for_the_next_save_and_no_longer) {
  ClosingProgram program(set_of(Call::sync));
  program.close(static_cast<int>(most_waiting));
  EXPECT_EQ(program.target->calls(), 0);
  EXPECT_TRUE(program.save().is_ok());
  EXPECT_EQ(program.target->calls(), static_cast<int>(most_waiting));
  EXPECT_TRUE(program.files.due().is_empty());
}

TEST(ClosedFiles, that_wait_are_never_more_than_the_most_and_each_is_synchronised_once) {
  ClosingProgram program(set_of(Call::sync));
  for (int i = 0; i < 200; ++i) {
    program.close(1);
    EXPECT_LE(program.files.count(), most_waiting);
  }
  EXPECT_TRUE(program.save().is_ok());
  EXPECT_EQ(program.target->calls(), 200);
}

TEST(ClosedFiles, that_fail_before_the_save_fail_it_by_name_and_once) {
  ClosingProgram program(set_of(Call::sync), 1);
  program.close(static_cast<int>(most_waiting) + 1);
  EXPECT_TRUE(program.target->fired());
  for (int copies = 0; copies < 2; ++copies) {
    const Status status = program.files.due().sync(*program.target);
    EXPECT_EQ(status.is_ok(), copies == 1);
    if (copies == 0) EXPECT_TRUE(mentions_of(status, program.name(0))) << status.text();
  }
}

TEST(ClosedFiles, of_which_several_fail_are_counted) {
  ClosingProgram program(set_of(Call::sync), 1);
  program.target->restart({.nth = 1, .calls = set_of(Call::sync), .for_good = true});
  program.close(static_cast<int>(most_waiting) + 1);
  program.target->restart({});
  const Status status = program.save();
  EXPECT_TRUE(mentions_of(status, program.name(0)) && mentions_of(status, "2 more of the closed files"))
      << status.text();
}

/// A save that never comes to the files has told nothing.
TEST(ClosedFiles, whose_failure_no_save_has_told_fail_the_one_after) {
  ClosingProgram program(set_of(Call::sync), 1);
  program.close(static_cast<int>(most_waiting) + 1);
  EXPECT_FALSE(program.files.due().is_empty());
  EXPECT_FALSE(program.save().is_ok());
}

/// Fails the n-th storage call, for each n until none fires.
TEST(ClosedFiles, lose_no_error_of_any_call) {
  const storage::CallSet calls = set_of(Call::open, Call::sync, Call::close, Call::sync_directory);
  for (std::int64_t n = 1;; ++n) {
    ClosingProgram program(calls, n);
    program.close(50);
    const Status first = program.save();
    EXPECT_EQ(first.is_ok(), !program.target->fired()) << n;
    if (!program.target->fired()) {
      EXPECT_GT(n, 150);
      return;
    }
    EXPECT_EQ(first.code(), Code::io);
    EXPECT_TRUE(program.save().is_ok()) << n;
    EXPECT_TRUE(program.files.due().is_empty());
  }
}

TEST(ClosedFiles, that_are_gone_or_replaced_by_directories_fail_nothing) {
  ClosingProgram program(set_of(Call::sync));
  program.close(static_cast<int>(most_waiting));
  std::filesystem::remove(program.name(0));
  std::filesystem::remove(program.name(1));
  std::filesystem::create_directory(program.name(1));
  program.close(10);
  EXPECT_TRUE(program.save().is_ok());
  EXPECT_EQ(program.target->calls(), static_cast<int>(most_waiting) + 8);
}

/// A file that was synchronised early may still be renamed. Its new name has to be durable, too.
TEST(ClosedFiles, that_are_renamed_are_durable_under_their_new_names_whenever_they_were_synchronised) {
  constexpr int early = 3;  // of one more than the most_waiting
  for (const int renamed : {0, static_cast<int>(most_waiting)}) {
    ClosingProgram program(set_of(Call::sync));
    program.close(static_cast<int>(most_waiting) + 1);
    EXPECT_EQ(program.target->calls(), early);
    std::filesystem::rename(program.name(renamed), program.scratch / "new");
    program.files.note_renamed(*program.target, program.name(renamed), program.scratch / "new");
    EXPECT_TRUE(program.save().is_ok());
    EXPECT_EQ(program.target->calls(), static_cast<int>(most_waiting) + 1 + (renamed < early ? 1 : 0));
  }
}

TEST(ClosedFiles, take_a_new_name_only_if_it_leads_to_a_file_of_their_target) {
  for (const bool leads_to_directory : {false, true}) {
    const auto target = storage::memory_target();
    const std::string name = "/a/new";
    ASSERT_TRUE(target->make_directories("/a").is_ok());
    ASSERT_TRUE(
        (leads_to_directory ? target->make_directories(name) : put_file(*target, name, "text")).is_ok());
    ClosedFiles files(most_waiting);
    files.note(*target, "/a/old");
    files.note_renamed(*target, "/a/old", name);
    EXPECT_EQ(files.count(), leads_to_directory ? 0U : 1U);
  }
}

}  // namespace
}  // namespace tailrace::journal
