// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>

#include <cerrno>
#include <fstream>
#include <functional>
#include <thread>

#include "ground/base/text.hpp"
#include "ground/base/uuid.hpp"
#include "ground/storage/memory.hpp"
#include "ground/storage/objects/file_objects.hpp"
#include "ground/storage/objects/places.hpp"
#include "ground/storage/scratch.hpp"
#include "support/bucket_service.hpp"
#include "support/crash.hpp"

namespace tailrace::storage {
namespace {

struct Candidate {
  std::string name;
  /// Returns the places of a storage in which nothing is yet but the directory `root`.
  std::function<ObjectsAt(const std::string& root)> make;
  std::string prefix{};  // of places that a service keeps
};

ObjectsAt in_files(const std::shared_ptr<Target>& target, const std::string& root) {
  EXPECT_TRUE(target->make_directories(root).is_ok());
  return FileObjects::at(target, OpenMode::read);
}

/// The kinds of the table, before tests add theirs.
const std::vector<const PlaceKind*>& kinds_of_the_library() {
  static const std::vector<const PlaceKind*> kinds = place_kinds();
  return kinds;
}

/// Files, and every kind of the table whose service this machine grants.
std::vector<Candidate> candidates() {
  kinds_of_the_library();
  keyed_places();
  std::vector<Candidate> all{
      {"files", [](const std::string& root) { return in_files(posix_target(), root); }},
      {"files_in_memory", [](const std::string& root) { return in_files(memory_target(), root); }},
      {"files_that_may_crash", [](const std::string& root) { return in_files(crash_target(), root); }}};
  for (const PlaceKind* const kind : place_kinds()) {
    if (kind->service && service_of(*kind).is_ok())
      all.push_back({std::string(kind->name), [](const std::string&) { return objects_at(memory_target()); },
                     std::string(kind->prefix)});
  }
  return all;
}

/// Returns a directory that no other test has, also in a service that keeps objects for ever.
std::string root_of(const std::string& prefix, const ScratchDirectory& scratch) {
  if (prefix.empty()) return scratch.path();
  return cat(prefix, scratch.path().substr(1), "-", Uuid::random().text());
}

class ObjectsConformance : public testing::TestWithParam<Candidate> {
 protected:
  void SetUp() override {
    root = root_of(GetParam().prefix, scratch);
    at = GetParam().make(root);
    objects = at(place("a"));
    ASSERT_TRUE(objects->make().is_ok());
  }
  [[nodiscard]] std::string place(const std::string& name) const { return root + "/" + name; }
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
  std::string root;
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
  EXPECT_TRUE(*other->is_made());
  EXPECT_EQ(*other->list(""), std::vector<std::string>());
  const KeyedObjects::Text object{"x", "y"};
  ASSERT_TRUE(other->put({&object, 1}).is_ok());
  EXPECT_TRUE(*other->is_made());
  EXPECT_TRUE(other->sync_keys().is_ok());
  EXPECT_TRUE(*at(place("c"))->exists("x"));
}

INSTANTIATE_TEST_SUITE_P(All, ObjectsConformance, testing::ValuesIn(candidates()),
                         [](const auto& candidate) { return candidate.param.name; });

/// What a class of ObjectService must do.
class ServiceConformance : public testing::TestWithParam<const PlaceKind*> {
 protected:
  [[nodiscard]] std::string at(const std::string& name) const { return root + "/" + name; }
  Status put(const std::vector<std::pair<std::string, std::string>>& all) const {
    std::vector<ObjectService::Object> objects;
    for (const auto& [name, text] : all) objects.push_back({at(name), std::as_bytes(std::span(text))});
    return service->put(objects);
  }
  [[nodiscard]] Result<bool> put_if(const std::string& name, const std::string& text,
                                    const std::string& version) const {
    const auto put = service->put_if({at(name), std::as_bytes(std::span(text))}, version);
    TR_TRY(put.status());
    return put->has_value();
  }
  [[nodiscard]] std::string text(const std::string& name) const {
    const auto whole = service->get(at(name));
    EXPECT_TRUE(whole.is_ok()) << whole.status().text();
    return whole.is_ok() && *whole ? text_of((*whole)->bytes) : "none";
  }

  ScratchDirectory scratch;
  const std::string root = root_of(std::string(GetParam()->prefix), scratch);
  const std::shared_ptr<ObjectService> service = *service_of(*GetParam());
};

TEST_P(ServiceConformance, objects_are_put_whole_read_in_parts_and_removed) {
  ASSERT_TRUE(put({{"a", "hello"}, {"d/b", ""}}).is_ok());
  EXPECT_EQ(text("a"), "hello");
  EXPECT_EQ(*service->size_of(at("a")), Bytes{5});
  EXPECT_EQ(*service->size_of(at("d/b")), Bytes{0});
  ByteVector buffer(3);
  EXPECT_EQ(*service->read(at("a"), 1, buffer), Bytes{3});
  EXPECT_EQ(text_of(buffer), "ell");
  EXPECT_EQ(*service->read(at("a"), 4, buffer), Bytes{1});
  EXPECT_EQ(*service->read(at("a"), 50, buffer), Bytes{0});
  ASSERT_TRUE(put({{"a", "hi"}}).is_ok());
  EXPECT_EQ(text("a"), "hi");
  ASSERT_TRUE(service->copy(at("a"), at("d/c")).is_ok());
  EXPECT_EQ(text("d/c"), "hi");
  EXPECT_EQ(service->copy(at("none"), at("e")).error_number(), ENOENT);
  EXPECT_TRUE(service->remove(at("a")).is_ok());
  EXPECT_TRUE(service->remove(at("a")).is_ok());
  EXPECT_EQ(text("a"), "none");
  EXPECT_EQ(*service->size_of(at("a")), std::nullopt);
  EXPECT_EQ(*service->read(at("a"), 0, buffer), std::nullopt);
}

TEST_P(ServiceConformance, a_put_with_a_condition_is_made_by_the_first_alone) {
  EXPECT_FALSE(*put_if("a", "x", "not-a-version"));
  ASSERT_TRUE(*put_if("a", "one", ""));
  EXPECT_FALSE(*put_if("a", "two", ""));
  const std::string first = (**service->get(at("a"))).version;
  ASSERT_FALSE(first.empty());
  EXPECT_TRUE(*put_if("a", "two", first));
  EXPECT_FALSE(*put_if("a", "six", first));
  EXPECT_EQ(text("a"), "two");
  const std::string three = "three";
  const auto third =
      service->put_if({at("a"), std::as_bytes(std::span(three))}, (**service->get(at("a"))).version);
  ASSERT_TRUE(third.is_ok() && third->has_value());
  EXPECT_EQ(**third, (**service->get(at("a"))).version);
  ASSERT_TRUE(put({{"a", "one"}}).is_ok());
  EXPECT_FALSE(*put_if("a", "six", first));  // the same bytes, and another version
  ASSERT_TRUE(service->remove(at("a")).is_ok());
  EXPECT_TRUE(*put_if("a", "new", ""));
}

TEST_P(ServiceConformance, of_many_that_put_with_the_same_version_one_gets_it) {
  constexpr int threads = 8;
  for (const std::string& version : {std::string(), std::string("that of the object")}) {
    const std::string expected = version.empty() ? version : (**service->get(at("lock"))).version;
    std::atomic<int> won = 0;
    std::vector<std::thread> running;
    for (int t = 0; t < threads; ++t)
      running.emplace_back([&, t] { won += *put_if("lock", std::to_string(t), expected) ? 1 : 0; });
    for (std::thread& thread : running) thread.join();
    EXPECT_EQ(won, 1);
  }
}

TEST_P(ServiceConformance, names_are_listed_sorted_once_and_not_more_than_asked) {
  ASSERT_TRUE(put({{"b/y", ""}, {"b/x", ""}, {"a.c", ""}, {"a", ""}, {"c/d/e", ""}}).is_ok());
  EXPECT_EQ(*service->list(root + "/", all_names), (std::vector<std::string>{"a", "a.c", "b", "c"}));
  EXPECT_EQ(service->list(root + "/", 2)->size(), 2U);
  EXPECT_EQ(*service->list(at("b/"), all_names), (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(*service->list(at("none/"), all_names), std::vector<std::string>());
  EXPECT_EQ(*service->list(at("a/"), all_names), std::vector<std::string>());
}

std::vector<const PlaceKind*> kinds_of_services() {
  std::vector<const PlaceKind*> kinds;
  for (const PlaceKind* const kind : place_kinds()) {
    if (kind->service && service_of(*kind).is_ok()) kinds.push_back(kind);
  }
  return kinds;
}

INSTANTIATE_TEST_SUITE_P(every_service, ServiceConformance, testing::ValuesIn(kinds_of_services()),
                         [](const auto& kind) { return std::string(kind.param->name); });

TEST(places, are_listed_on_the_page_on_storage_in_order_with_their_use) {
  std::ifstream page(TAILRACE_STORAGE_PAGES "/README.md");
  std::vector<std::string> rows;  // whose first column is a name in backticks
  for (std::string line; std::getline(page, line);)
    if (line.starts_with("| `")) rows.push_back(line);
  const auto& kinds = kinds_of_the_library();
  ASSERT_EQ(rows.size(), kinds.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_TRUE(rows[i].starts_with(cat("| `", kinds[i]->name, "` | "))) << rows[i];
    EXPECT_NE(rows[i].find(cat(" | ", kinds[i]->use, " | ")), std::string::npos) << rows[i];
    EXPECT_EQ(kinds[i]->prefix.empty(), i == 0);
    EXPECT_EQ(static_cast<bool>(kinds[i]->service), i > 0);
    EXPECT_TRUE(i == 0 || kinds[i]->prefix.ends_with("://")) << kinds[i]->name;
  }
}

}  // namespace
}  // namespace tailrace::storage
