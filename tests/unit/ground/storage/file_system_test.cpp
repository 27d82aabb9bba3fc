// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/storage/systems/file_system.hpp"

#include <gtest/gtest.h>
#include <sys/statfs.h>

namespace tailrace::storage {
namespace {

using Writers = FileSystem::Writers;

TEST(FileSystem, is_known_by_its_number) {
  EXPECT_EQ(file_system_of_type(0xEF53).name, "ext4");
  EXPECT_EQ(file_system_of_type(0xEF53).writers, Writers::many);
  EXPECT_EQ(file_system_of_type(0x0BD00BD0).writers, Writers::many);
  EXPECT_EQ(file_system_of_type(0x6969).name, "NFS");
  EXPECT_EQ(file_system_of_type(0x6969).writers, Writers::on_one_node);
  EXPECT_EQ(file_system_of_type(0x65735546).name, "FUSE");
  EXPECT_EQ(file_system_of_type(0x65735546).writers, Writers::one);
  EXPECT_EQ(file_system_of_type(0x12345678).writers, Writers::unknown);
  EXPECT_EQ(file_system_of_type(0x12345678).name, "");
  // A number with its highest bit set comes with its sign.
  EXPECT_EQ(file_system_of_type(static_cast<unsigned long>(-1 - 0x6EDC97C1L)).name, "btrfs");
}

TEST(FileSystem, of_a_path_is_that_of_the_nearest_directory_that_is_there) {
  struct statfs system {};
  ASSERT_EQ(::statfs("/", &system), 0);
  const FileSystem root = file_system_of_type(static_cast<unsigned long>(system.f_type));
  EXPECT_EQ(file_system_of("/").name, root.name);
  EXPECT_EQ(file_system_of("/no_such_directory/in/it/fc_").name, root.name);
  ASSERT_EQ(::statfs(".", &system), 0);
  const FileSystem here = file_system_of_type(static_cast<unsigned long>(system.f_type));
  EXPECT_EQ(file_system_of("no_such_file").name, here.name);
  EXPECT_EQ(file_system_of("").name, here.name);
  EXPECT_EQ(file_system_of("/proc/self/no_such_file").writers, Writers::unknown);
}

}  // namespace
}  // namespace tailrace::storage
