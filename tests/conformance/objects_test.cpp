// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>

#include <cerrno>
#include <functional>

#include "ground/storage/memory.hpp"
#include "ground/storage/objects/file_objects.hpp"
#include "ground/storage/scratch.hpp"
#include "support/bucket_objects.hpp"
#include "support/crash.hpp"

namespace tailrace::storage {
namespace {

struct Candidate {
  std::string name;
  /// Returns the places of a storage in which nothing is yet but the directory `root`.
  std::function<ObjectsAt(const std::string& root)> make;
  bool has_places = true;  // a place is there once it is made, also without objects
};

ObjectsAt in_files(const std::shared_ptr<Target>& target, const std::string& root) {
  EXPECT_TRUE(target->make_directories(root).is_ok());
  return FileObjects::at(target, OpenMode::read);
}

std::vector<Candidate> candidates() {
  return {{"files", [](const std::string& root) { return in_files(posix_target(), root); }},
          {"files_in_memory", [](const std::string& root) { return in_files(memory_target(), root); }},
          {"files_that_may_crash", [](const std::string& root) { return in_files(crash_target(), root); }},
          {"bucket",
           [](const std::string&) -> ObjectsAt {
             return [bucket = std::make_shared<Bucket>()](std::string place) {
               return std::make_unique<BucketObjects>(bucket, std::move(place));
             };
           },
           false}};
}

class ObjectsConformance : public testing::TestWithParam<Candidate> {
 protected:
  void SetUp() override {
    at = GetParam().make(scratch.path());
    objects = at(place("a"));
    ASSERT_TRUE(objects->make().is_ok());
  }
  [[nodiscard]] std::string place(const std::string& name) const { return scratch.path() + "/" + name; }
  void put(const std::string& key, const std::string& text) {
    const KeyedObjects::Text object{key, text};
    const Status status = objects->put({&object, 1});
    EXPECT_TRUE(status.is_ok()) << status.text();
  }
  Status write(const std::string& key, Bytes offset, std::string_view text, std::string_view begin = "") {
    const auto part = std::as_bytes(std::span(text));
    return objects->write(key, offset, {&part, 1}, std::as_bytes(std::span(begin)));
  }
  [[nodiscard]] std::optional<std::string> text(const std::string& key) const {
    const Result<std::optional<std::string>> found = objects->text_of(key, 1000);
    EXPECT_TRUE(found.is_ok()) << found.status().text();
    return found.is_ok() ? *found : std::nullopt;
  }
  [[nodiscard]] std::vector<std::string> names(const std::string& group) const {
    const Result<std::vector<std::string>> listed = objects->list(group);
    EXPECT_TRUE(listed.is_ok()) << listed.status().text();
    return listed.is_ok() ? *listed : std::vector<std::string>();
  }

  ScratchDirectory scratch;
  ObjectsAt at;
  std::unique_ptr<KeyedObjects> objects;
};

TEST_P(ObjectsConformance, an_object_that_was_put_is_found_whole_and_may_be_put_anew) {
  put("head", "first");
  EXPECT_EQ(text("head"), "first");
  put("head", "2");
  EXPECT_EQ(text("head"), "2");
  EXPECT_TRUE(*objects->exists("head"));
  EXPECT_EQ(*objects->size_of("head"), Bytes{1});
  EXPECT_EQ(objects->text_of("head", 0).status().code(), Code::corrupt);
  EXPECT_EQ(objects->name_of("head"), place("a") + "/head");
}

TEST_P(ObjectsConformance, an_object_that_is_not_there_is_told_from_an_empty_one) {
  put("empty", "");
  EXPECT_EQ(text("empty"), "");
  EXPECT_EQ(text("none"), std::nullopt);
  EXPECT_FALSE(*objects->exists("none"));
  EXPECT_EQ(*objects->find("none"), nullptr);
  EXPECT_EQ(*objects->size_of("none"), std::nullopt);
  EXPECT_FALSE(objects->remove("none").is_ok());
  EXPECT_TRUE(objects->remove_if_there("none").is_ok());
}

TEST_P(ObjectsConformance, parts_are_written_behind_a_beginning_in_any_order) {
  EXPECT_TRUE(*objects->make_group("t"));
  ASSERT_TRUE(write("t/c.0", 6, "789", "012345").is_ok());
  EXPECT_EQ(text("t/c.0"), "012345789");
  ASSERT_TRUE(write("t/c.0", 2, "xy", "012345").is_ok());
  EXPECT_EQ(text("t/c.0"), "01xy45789");
  ByteVector some(4);
  EXPECT_EQ(*objects->read("t/c.0", 7, some), Bytes{2});  // the object ends
  EXPECT_EQ(*objects->read("t/c.1", 0, some), std::nullopt);
  EXPECT_TRUE(objects->sync().is_ok());
}

TEST_P(ObjectsConformance, a_group_lists_its_objects_and_groups_sorted) {
  EXPECT_TRUE(*objects->make_group("u"));
  EXPECT_TRUE(*objects->make_group("t"));
  put("u/zarr.json", "{}");
  put("t/zarr.json", "{}");
  put("t/c.0", "1");
  put("b", "2");
  EXPECT_EQ(names(""), (std::vector<std::string>{"b", "t", "u"}));
  EXPECT_EQ(names("t"), (std::vector<std::string>{"c.0", "zarr.json"}));
  for (const std::string& name : names("t")) EXPECT_EQ(objects->finished_name(name), name);
  EXPECT_EQ(objects->list("v").status().error_number(), ENOENT);
}

TEST_P(ObjectsConformance, a_group_goes_with_its_objects) {
  EXPECT_TRUE(*objects->make_group("t"));
  put("t/zarr.json", "{}");
  EXPECT_FALSE(*objects->make_group("t"));
  put("tt", "stays");
  EXPECT_TRUE(objects->remove_group("t").is_ok());
  EXPECT_TRUE(objects->remove_group("t").is_ok());
  EXPECT_EQ(text("tt"), "stays");
  EXPECT_EQ(names(""), (std::vector<std::string>{"tt"}));
  EXPECT_TRUE(*objects->make_group("t"));
}

TEST_P(ObjectsConformance, the_beginning_of_an_object_is_copied_to_another_place) {
  put("head", "0123456789");
  ASSERT_TRUE(objects->sync().is_ok());
  const auto other = at(place("b"));
  ASSERT_TRUE(other->make().is_ok());
  ASSERT_TRUE(other->copy_from(place("a"), "head", 4).is_ok());
  EXPECT_EQ(*other->text_of("head", 10), "0123");
  EXPECT_EQ(text("head"), "0123456789");
  ASSERT_TRUE(other->remove("head").is_ok());
  EXPECT_TRUE(other->sync().is_ok());
  EXPECT_TRUE(other->unmake().is_ok());
  EXPECT_FALSE(*other->is_made());
}

TEST_P(ObjectsConformance, a_place_that_has_objects_is_made) {
  const auto other = at(place("c"));
  EXPECT_FALSE(*other->is_made());
  ASSERT_TRUE(other->make().is_ok());
  EXPECT_EQ(*other->is_made(), GetParam().has_places);
  const KeyedObjects::Text object{"x", "y"};
  ASSERT_TRUE(other->put({&object, 1}).is_ok());
  EXPECT_TRUE(*other->is_made());
  EXPECT_TRUE(other->sync_keys().is_ok());
  EXPECT_TRUE(*at(place("c"))->exists("x"));
}

INSTANTIATE_TEST_SUITE_P(All, ObjectsConformance, testing::ValuesIn(candidates()),
                         [](const auto& candidate) { return candidate.param.name; });

}  // namespace
}  // namespace tailrace::storage
