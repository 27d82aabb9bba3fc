// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// A store whose objects lie under keys and in no files. What writes and reads stores gets nothing but
// storage::KeyedObjects here, so a store of objects needs no more than a service of whole objects, and a row
// with the prefix of its names.
#include <gtest/gtest.h>

#include <algorithm>

#include "../variables/own_file.hpp"
#include "formats/stores/stores.hpp"
#include "formats/zarr/store/store_file.hpp"
#include "ground/base/text.hpp"
#include "ground/storage/memory.hpp"
#include "ground/storage/objects/places.hpp"
#include "ground/storage/objects/whole_objects.hpp"
#include "ground/storage/paths.hpp"
#include "sample.hpp"
#include "support/bucket_service.hpp"

namespace tailrace::zarr {
namespace {

using storage::BucketService;
using storage::OpenMode;
using stores::has_begun;
using stores::with_stores;

std::unique_ptr<codec::Store> opened(const codec::StoreOpener& opener, const std::string& place,
                                     OpenMode mode) {
  Result<std::unique_ptr<codec::Store>> store = opener(place, mode);
  EXPECT_TRUE(store.is_ok()) << store.status().text();
  return store.is_ok() ? std::move(*store) : nullptr;
}

/// Writes a store of three steps as a stream does it, cuts it behind two, and copies these to another place.
void write_cut_and_copy(const codec::StoreOpener& opener) {
  const auto codec = zarr::sample_codec();
  const auto store = opened(opener, "d/fc.zarr", OpenMode::create);
  ASSERT_NE(store, nullptr);
  ASSERT_TRUE(store->write(codec->head(), 0).is_ok());
  for (int step = 0; step < 3; ++step) {
    for (const codec::Patch& each : zarr::sample_step(*codec, step))
      ASSERT_TRUE(store->write(each.bytes, each.offset).is_ok());
    ASSERT_TRUE(store->write(formats::step_count("zarr", step + 1)->bytes, zarr::steps_offset).is_ok());
    ASSERT_TRUE(store->sync().is_ok());
  }
  const Bytes two = std::ssize(codec->head()) + 2 * codec->fixed_places()->step;
  ASSERT_TRUE(store->truncate(two).is_ok());
  ASSERT_TRUE(store->sync().is_ok());
  EXPECT_TRUE(*store->holds(two, {}));
  EXPECT_TRUE(store->check_own().is_ok());
  const Status copied = store->copy_to("d/again.zarr", two);
  ASSERT_TRUE(copied.is_ok()) << copied.text();
  EXPECT_TRUE(store->close().is_ok());
}

ByteVector all_of(const codec::StoreOpener& opener, const std::string& place) {
  const auto store = opened(opener, place, OpenMode::read);
  ByteVector bytes(static_cast<std::size_t>(*store->size()));
  EXPECT_TRUE(store->read(bytes, 0).is_ok());
  return bytes;
}

TEST(keyed_objects, are_all_that_a_store_needs_of_storage) {
  const auto bucket = std::make_shared<BucketService>();
  const codec::StoreOpener in_bucket = StoreFile::opener(storage::WholeObjects::at(bucket));
  write_cut_and_copy(in_bucket);
  const auto target = storage::memory_target();
  ASSERT_TRUE(target->make_directories("d").is_ok());
  const codec::StoreOpener in_files = StoreFile::opener(storage::objects_at(target));
  write_cut_and_copy(in_files);
  const auto codec = zarr::sample_codec();
  for (const std::string place : {"d/fc.zarr", "d/again.zarr"}) {
    const ByteVector bytes = all_of(in_bucket, place);
    EXPECT_EQ(std::ssize(bytes), std::ssize(codec->head()) + 2 * codec->fixed_places()->step) << place;
    EXPECT_TRUE(bytes == all_of(in_files, place)) << place;
  }
  // The same objects with the same bytes.
  for (const auto& [name, bytes] : bucket->all()) {
    if (name.ends_with("/.tailrace.made")) continue;  // a directory needs none
    Result<std::unique_ptr<storage::File>> file = target->open(name, OpenMode::read_regular);
    ASSERT_TRUE(file.is_ok()) << name;
    ByteVector there(static_cast<std::size_t>(*(*file)->size()));
    EXPECT_TRUE((*file)->read(there, 0).is_ok());
    EXPECT_TRUE(there == bytes) << name;
  }
  EXPECT_TRUE(opened(in_bucket, "d/again.zarr", OpenMode::existing)->remove().is_ok());
  EXPECT_TRUE(opened(in_bucket, "d/fc.zarr", OpenMode::existing)->remove().is_ok());
  EXPECT_TRUE(bucket->all().empty());
}

/// Expects that two sources have the same records with the same values.
void expect_alike(const std::shared_ptr<const sources::Source>& a,
                  const std::shared_ptr<const sources::Source>& b) {
  ASSERT_TRUE(a != nullptr && b != nullptr);
  const auto& records = a->inventory().records;
  ASSERT_EQ(records.size(), b->inventory().records.size());
  ASSERT_FALSE(records.empty());
  for (std::size_t i = 0; i < records.size(); ++i) {
    const sources::Record& other = b->inventory().records[i];
    EXPECT_EQ(records[i].field, other.field);
    EXPECT_EQ(records[i].valid, other.valid);
    const auto values = variables::test::all_of(*a, records[i]);
    EXPECT_TRUE(values.status.is_ok()) << values.status.text();
    EXPECT_EQ(values.values, variables::test::all_of(*b, other).values);
  }
}

TEST(keyed_objects, of_a_row_of_their_own_are_written_and_read_by_the_prefix_of_their_names) {
  using variables::test::opened;
  BucketService& bucket = storage::keyed_places();
  bucket.clear();
  EXPECT_EQ(storage::parent_of(storage::tidy_path("keyed://d//fc.zarr/")), "keyed://d");
  const std::string in_bucket = "keyed://d/fc.zarr", in_files = "d/fc.zarr";
  const std::shared_ptr<storage::Target> below = storage::memory_target();
  ASSERT_TRUE(below->make_directories("d").is_ok());
  const auto target = with_stores(below);
  EXPECT_FALSE(*target->exists(in_bucket));
  EXPECT_FALSE(sources::open(target, in_bucket, "").is_ok());
  variables::test::OwnStream own;
  own.stream.format = "zarr";
  own.stream.base = {2026, 3, 1, 0, 0, 0};
  own.fields = {variables::test::own_field("t", ElementType::f32, {"isobaricInhPa", {1000, 850}, {}, {}}),
                variables::test::own_field("ps", ElementType::f64, {})};
  for (const std::string& path : {in_bucket, in_files}) {
    variables::test::write_own(*target, path, own);
    EXPECT_TRUE(*target->exists(path)) << path;
    EXPECT_TRUE(*has_begun(below, path)) << path;
  }
  EXPECT_EQ(*target->list("keyed://d"), (std::vector<std::string>{"fc.zarr", "fc.zarr.trx"}));
  EXPECT_GT(bucket.all().size(), 10U);
  EXPECT_EQ(*below->list("."), std::vector<std::string>{"d"});
  expect_alike(opened(target, in_bucket), opened(target, in_files));
  // Without the index, as the store of another program.
  for (const std::string& path : {in_bucket, in_files}) ASSERT_TRUE(target->remove(path + ".trx").is_ok());
  expect_alike(opened(target, in_bucket), opened(target, in_files));
  EXPECT_TRUE(target->remove(in_bucket).is_ok());
  EXPECT_TRUE(bucket.all().empty());
  EXPECT_FALSE(*target->exists(in_bucket));
}

/// Puts a store of so many steps under the name.
void write_steps(const std::string& path, int steps) {
  const auto target = with_stores(storage::memory_target());
  const auto codec = zarr::sample_codec();
  Result<std::unique_ptr<storage::File>> store = target->open(path, OpenMode::create);
  ASSERT_TRUE(store.is_ok()) << store.status().text();
  ASSERT_TRUE((*store)->write(codec->head(), 0).is_ok());
  for (int step = 0; step < steps; ++step) {
    for (const codec::Patch& each : zarr::sample_step(*codec, step))
      ASSERT_TRUE((*store)->write(each.bytes, each.offset).is_ok());
  }
  ASSERT_TRUE((*store)->write(formats::step_count("zarr", steps)->bytes, zarr::steps_offset).is_ok());
  ASSERT_TRUE((*store)->sync().is_ok());
  EXPECT_TRUE((*store)->close().is_ok());
}

/// The bytes of the store of this name, as a program sees them that is started now.
ByteVector bytes_at(const std::string& path) {
  const auto target = with_stores(storage::memory_target());
  Result<std::unique_ptr<storage::File>> store = target->open(path, OpenMode::read);
  EXPECT_TRUE(store.is_ok()) << store.status().text();
  if (!store.is_ok()) return {};
  ByteVector bytes(static_cast<std::size_t>(*(*store)->size()));
  EXPECT_TRUE((*store)->read(bytes, 0).is_ok());
  return bytes;
}

/// A service has no rename. Whoever looks finds one of the two stores under the name, however far the copying
/// has come, and whoever opens the store to write ends it.
TEST(keyed_objects, take_the_place_of_others_as_by_one_rename) {
  BucketService& bucket = storage::keyed_places();
  const std::string path = "keyed://d/fc.zarr", again = path + ".again";
  bucket.clear();
  write_steps(path, 3);
  const ByteVector old = bytes_at(path);
  write_steps(path, 2);
  const ByteVector young = bytes_at(path);
  ASSERT_NE(old, young);
  int moving = 0;
  bool fired = true;
  for (std::int64_t nth = 1; fired; ++nth) {
    for (const bool is_made_yet : {false, true}) {
      SCOPED_TRACE(testing::Message() << "change " << nth << (is_made_yet ? ", made" : ", not made"));
      bucket.clear();
      bucket.restart({});
      write_steps(path, 3);
      write_steps(again, 2);
      bucket.restart({nth, true, is_made_yet});
      const Status renamed = with_stores(storage::memory_target())->rename(again, path);
      fired = bucket.has_failed();
      bucket.restart({});
      EXPECT_EQ(renamed.is_ok(), !fired) << renamed.text();
      const ByteVector found = bytes_at(path);
      ASSERT_TRUE(found == old || found == young);
      const auto seen = with_stores(storage::memory_target());
      EXPECT_EQ(*seen->exists(again), found == old);
      if (*seen->exists("keyed://d/fc.zarr.moving")) ++moving;
      if (found == old) {
        EXPECT_TRUE(seen->rename(again, path).is_ok());
      } else {
        Result<std::unique_ptr<storage::File>> store = seen->open(path, OpenMode::existing);
        EXPECT_TRUE(store.is_ok()) << store.status().text();
      }
      EXPECT_TRUE(bytes_at(path) == young);
      EXPECT_EQ(*seen->list("keyed://d"), std::vector<std::string>{"fc.zarr"});
    }
  }
  EXPECT_GT(moving, 20);
}

/// Somebody has put back the note, or removed the new store by hand.
TEST(keyed_objects, stay_if_a_note_tells_of_a_store_that_is_not_there) {
  BucketService& bucket = storage::keyed_places();
  bucket.clear();
  bucket.restart({});
  write_steps("keyed://d/fc.zarr", 3);
  const std::string note = "copying\n";
  const storage::ObjectService::Object object{"keyed://d/fc.zarr.moving", std::as_bytes(std::span(note))};
  ASSERT_TRUE(bucket.put({&object, 1}).is_ok());
  const auto before = bucket.all();
  const Status refused =
      with_stores(storage::memory_target())->open("keyed://d/fc.zarr", OpenMode::existing).status();
  EXPECT_EQ(refused.code(), Code::corrupt);
  EXPECT_NE(refused.text().find("fc.zarr.moving"), std::string::npos) << refused.text();
  EXPECT_TRUE(bucket.all() == before);
}

}  // namespace
}  // namespace tailrace::zarr
