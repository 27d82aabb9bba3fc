// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/storage/routing/routing.hpp"

#include <gtest/gtest.h>

#include "ground/storage/faulty.hpp"
#include "ground/storage/scratch.hpp"

namespace tailrace::storage {
namespace {

using Made = Result<std::shared_ptr<Target>>;

/// Two kinds of storage under one target: files on disk, and files in memory.
class Routing : public testing::Test {
 protected:
  ScratchDirectory scratch;
  int made = 0;
  std::shared_ptr<Target> memory = memory_target();
  std::shared_ptr<FaultyTarget> disk = faulty_target(posix_target(), {});
  std::shared_ptr<Target> both = routing_target(disk, {{"memory://", [this] {
                                                          ++made;
                                                          return Made(memory);
                                                        }}});
};

TEST_F(Routing, the_prefix_of_a_name_chooses_the_target_and_all_other_names_go_to_the_usual_one) {
  ASSERT_TRUE(put_file(*both, scratch / "a", "on disk").is_ok());
  EXPECT_EQ(made, 0) << "nobody has asked for it";
  ASSERT_TRUE(both->make_directories("memory://d").is_ok());
  ASSERT_TRUE(put_file(*both, "memory://d/a", "in memory").is_ok());
  EXPECT_EQ(made, 1);
  EXPECT_EQ(contents_of(*posix_target(), scratch / "a"), "on disk");
  EXPECT_EQ(contents_of(*memory, "memory://d/a"), "in memory");
  EXPECT_EQ(contents_of(*both, "memory:///d//a"), "in memory");
  EXPECT_FALSE(*memory->exists(scratch / "a"));
  EXPECT_EQ(*both->list(scratch.path()), std::vector<std::string>{"a"});
  EXPECT_EQ(*both->list("memory://"), std::vector<std::string>{"d"});
  EXPECT_EQ(*both->list("memory://d"), std::vector<std::string>{"a"});
  EXPECT_EQ(both->remove(scratch / "memory:/d/a").error_number(), ENOENT);
}

TEST_F(Routing, a_file_moves_within_a_target_and_is_copied_between_two) {
  ASSERT_TRUE(put_file(*both, scratch / "a", "text").is_ok());
  const Status moved = both->rename(scratch / "a", "memory://a");
  EXPECT_EQ(moved.code(), Code::argument);
  EXPECT_NE(moved.text().find("must lie in one directory"), std::string::npos) << moved.text();
  ASSERT_TRUE(both->copy(scratch / "a", 4, "memory://a").is_ok());
  ASSERT_TRUE(both->rename("memory://a", "memory://b").is_ok());
  ASSERT_TRUE(both->copy("memory://b", 3, scratch / "c").is_ok());
  EXPECT_EQ(*both->list("memory://"), std::vector<std::string>{"b"});
  EXPECT_EQ(contents_of(*both, scratch / "c"), "tex");
}

TEST_F(Routing, files_and_names_of_both_targets_are_synced_in_one_call) {
  ASSERT_TRUE(put_file(*both, scratch / "a", "text").is_ok());
  ASSERT_TRUE(put_file(*both, "memory://a", "text").is_ok());
  const auto on_disk = *both->open(scratch / "a", OpenMode::existing);
  const auto in_memory = *both->open("memory://a", OpenMode::existing);
  File* const files[] = {on_disk.get(), in_memory.get()};
  EXPECT_TRUE(both->sync_files(files).is_ok());
  const std::string names[] = {"memory://a", scratch / "a"};
  EXPECT_TRUE(both->sync_directories_of(names).is_ok());
  disk->restart({1, Fault::io_error, set_of(Call::sync, Call::sync_directory), true});
  EXPECT_EQ(both->sync_files(files).code(), Code::io);
  EXPECT_EQ(both->sync_directories_of(names).code(), Code::io);
}

TEST_F(Routing, a_target_that_cannot_be_made_fails_the_calls_that_need_it_and_no_others) {
  int asked = 0;
  const auto target = routing_target(disk, {{"memory://", [&asked] {
                                               ++asked;
                                               return Made(Status(Code::unsupported, "no memory here"));
                                             }}});
  EXPECT_TRUE(put_file(*target, scratch / "a", "text").is_ok());
  EXPECT_EQ(asked, 0);
  for (const Status& status :
       {target->open("memory://a", OpenMode::create).status(), target->exists("memory://a").status(),
        target->copy(scratch / "a", 4, "memory://a"), target->lock("memory://a").status()}) {
    EXPECT_EQ(status.code(), Code::unsupported);
    EXPECT_EQ(status.text(), "memory://: no memory here");
  }
  EXPECT_EQ(target->behind_links("memory://a"), "memory://a");
  EXPECT_EQ(asked, 5) << "it may be there at the next call";
}

TEST_F(Routing, a_program_gets_no_target_that_is_for_tests_alone) {
  const auto target = make_target_of_program("posix");
  ASSERT_TRUE(target.is_ok());
  EXPECT_EQ((*target)->open("memory://a", OpenMode::read).status().error_number(), ENOENT);
  EXPECT_EQ(make_target_of_program("possix").status().code(), Code::settings);
}

}  // namespace
}  // namespace tailrace::storage
