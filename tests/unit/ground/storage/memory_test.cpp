// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/storage/memory.hpp"

#include <gtest/gtest.h>

#include <random>

#include "ground/storage/paths.hpp"
#include "ground/storage/scratch.hpp"

namespace tailrace::storage {
namespace {

TEST(sparse_bytes, match_a_plain_string_under_random_operations) {
  std::mt19937_64 random(11);
  SparseBytes sparse;
  std::string plain;
  for (int i = 0; i < 2000; ++i) {
    const std::size_t offset = random() % 300'000, size = random() % 150'000;
    switch (random() % 4) {
      case 0:
        plain.resize(offset);
        sparse.resize(static_cast<Bytes>(offset));
        break;
      case 1: {
        const std::string text(size % 5000, static_cast<char>('a' + random() % 26));
        sparse.write(bytes_of(text), static_cast<Bytes>(offset));
        if (text.empty()) break;
        if (plain.size() < offset + text.size()) plain.resize(offset + text.size());
        plain.replace(offset, text.size(), text);
        break;
      }
      default: {
        ByteVector got(size, std::byte{1});
        got.resize(static_cast<std::size_t>(sparse.read(got, static_cast<Bytes>(offset))));
        ASSERT_TRUE(text_of(got) == (offset < plain.size() ? plain.substr(offset, size) : ""));
      }
    }
    ASSERT_EQ(sparse.size(), static_cast<Bytes>(plain.size()));
  }
}

TEST(sparse_bytes, reach_the_last_offset_without_taking_memory_for_the_way) {
  SparseBytes sparse;
  const Bytes last = std::numeric_limits<Bytes>::max() - 1;
  sparse.write(bytes_of("!"), last);
  EXPECT_EQ(sparse.size(), last + 1);
  ByteVector got(3);
  EXPECT_EQ(sparse.read(got, last - 2), 3);
  EXPECT_EQ(text_of(got), std::string("\0\0!", 3));
  sparse.resize(0);
  EXPECT_EQ(sparse.read(got, 0), 0);
}

TEST(memory_target, each_is_a_world_of_its_own) {
  const auto one = memory_target(), two = memory_target();
  ASSERT_TRUE(put_file(*one, "a", "text").is_ok());
  EXPECT_FALSE(*two->exists("a"));
}

TEST(memory_target, absolute_and_relative_paths_are_told_apart) {
  const auto target = memory_target();
  ASSERT_TRUE(put_file(*target, "/a", "absolute").is_ok());
  EXPECT_FALSE(*target->exists("a"));
  ASSERT_TRUE(put_file(*target, "a", "relative").is_ok());
  EXPECT_EQ(contents_of(*target, "/a"), "absolute");
  EXPECT_EQ(contents_of(*target, "./a"), "relative");
  EXPECT_EQ(*target->list("/"), std::vector<std::string>{"a"});
  EXPECT_EQ(*target->list(""), std::vector<std::string>{"a"});
}

TEST(paths, with_a_prefix_begin_at_its_root_and_not_in_the_current_directory) {
  EXPECT_EQ(path_from_root("memory://a/b"), "memory://a/b");
  EXPECT_EQ(path_from_root("/a"), "/a");
  EXPECT_EQ(path_from_root("a"), std::filesystem::current_path().string() + "/a");
}

TEST(paths, are_tidied_and_split) {
  const std::tuple<const char*, const char*, const char*> cases[] = {
      {"", ".", "."},
      {".", ".", "."},
      {"a", "a", "."},
      {"a/", "a", "."},
      {"/", "/", "/"},
      {"/a", "/a", "/"},
      {"//a//b/", "/a/b", "/a"},
      {"a/./b", "a/b", "a"},
      {"a/x/../b", "a/b", "a"},
      {"/a/b/c", "/a/b/c", "/a/b"},
      {"memory://", "memory://", "memory://"},
      {"memory://a", "memory://a", "memory://"},
      {"memory:///a//b/", "memory://a/b", "memory://a"},
      {"memory://a/./x/../b", "memory://a/b", "memory://a"},
      {"memory://../a", "memory://a", "memory://"},
      {"memory:/a", "memory:/a", "memory:"},  // no prefix
      {"other://a", "other:/a", "other:"},    // the prefix of no target
  };
  for (const auto& [path, tidy, parent] : cases) {
    EXPECT_EQ(tidy_path(path), tidy) << path;
    EXPECT_EQ(parent_of(tidy_path(path)), parent) << path;
  }
}

}  // namespace
}  // namespace tailrace::storage
