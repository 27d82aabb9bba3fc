// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/zarr/store/objects.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <functional>
#include <set>
#include <utility>

#include "formats/stores/stores.hpp"
#include "ground/base/text.hpp"
#include "ground/storage/memory.hpp"
#include "ground/storage/objects/file_objects.hpp"
#include "sample.hpp"

namespace tailrace::zarr {
namespace {

using storage::File;
using storage::FileObjects;
using storage::OpenMode;
using zarr::Layout;

const std::string store = "d/fc.zarr";

/// What a file of the target below does otherwise.
struct Watch {
  int descriptors = 1;
  std::vector<std::string> synced{};
  int waits = 0;  // for one file that is synchronised, or for several side by side
  /// Called before each call that reads, synchronises or closes. An error number in place of 0 fails it.
  std::function<int(std::string_view call, const std::string& path)> before{};
  std::function<void()> before_list{};  // called before the next list
};

class WatchedFile final : public File {
 public:
  WatchedFile(std::unique_ptr<File> below, std::string path, Watch& watch)
      : below_(std::move(below)), path_(std::move(path)), watch_(watch) {}
  Status write_gathered(storage::Parts parts, Bytes offset) override {
    return below_->write_gathered(parts, offset);
  }
  Result<Bytes> read(std::span<std::byte> data, Bytes offset) override {
    TR_TRY(look("read"));
    return below_->read(data, offset);
  }
  Status sync() override {
    TR_TRY(look("sync"));
    watch_.synced.push_back(path_);
    ++watch_.waits;
    return below_->sync();
  }
  Status truncate(Bytes size) override { return below_->truncate(size); }
  Result<Bytes> size() override { return below_->size(); }
  [[nodiscard]] int descriptors() const override { return watch_.descriptors; }
  Status close() override {
    TR_TRY(look("close"));
    return below_->close();
  }

 private:
  Status look(std::string_view call) {
    const int error = watch_.before ? watch_.before(call, path_) : 0;
    return error == 0 ? Status() : io_error(call, path_, error);
  }

  const std::unique_ptr<File> below_;
  const std::string path_;
  Watch& watch_;
};

class WatchedTarget final : public storage::MemoryTarget {
 public:
  WatchedTarget() : MemoryTarget(false) {}
  using MemoryTarget::open;
  Result<std::unique_ptr<File>> open(const std::string& path, OpenMode mode, unsigned permissions) override {
    Result<std::unique_ptr<File>> file = MemoryTarget::open(path, mode, permissions);
    TR_TRY(file.status());
    return std::unique_ptr<File>(std::make_unique<WatchedFile>(std::move(*file), path, watch));
  }
  Status sync_files(std::span<File* const> files) override {
    const int waits = watch.waits;
    const Status synced = MemoryTarget::sync_files(files);
    watch.waits = waits + (files.empty() ? 0 : 1);
    return synced;
  }
  Result<std::vector<std::string>> list(const std::string& directory) override {
    if (watch.before_list) std::exchange(watch.before_list, {})();
    return MemoryTarget::list(directory);
  }
  Watch watch;
};

class StoreObjects : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(below->make_directories(store).is_ok());
    const ByteVector head = codec->head();
    ASSERT_TRUE(objects.begin(layout, head).is_ok());
    ASSERT_TRUE(objects.settle().is_ok());
    below->watch.synced.clear();
  }
  Status write(std::int64_t number, Objects& to) {
    const std::span<const std::byte> bytes = value;
    return to.write(layout.array("ps"), number, 0, {&bytes, 1});
  }
  [[nodiscard]] std::string path_of(std::int64_t number) const {
    return cat(store, "/", layout.array("ps").object(number));
  }
  Objects objects_in(const std::string& directory) {
    return {std::make_unique<FileObjects>(below, descriptors, directory), std::make_shared<Known>()};
  }
  Layout layout_of_sample() {
    const ByteVector head = codec->head();
    std::int64_t length = 0;
    for (std::size_t i = 0; i < 8; ++i) length = length << 8 | static_cast<std::int64_t>(head[i]);
    return *Layout::of(std::string(reinterpret_cast<const char*>(head.data()) + zarr::frame_bytes,
                                   static_cast<std::size_t>(length)));
  }

  const std::unique_ptr<codec::Codec> codec = zarr::sample_codec();
  const Layout layout = layout_of_sample();
  const ByteVector value{std::byte{1}, std::byte{2}, std::byte{3}};
  const std::shared_ptr<WatchedTarget> below = std::make_shared<WatchedTarget>();
  const std::shared_ptr<storage::OpenDescriptors> descriptors = std::make_shared<storage::OpenDescriptors>(0);
  Objects objects = objects_in(store);
};

// An object that is synchronised while its step is still written into would be synchronised once more for
// each further write.
TEST_F(StoreObjects, that_were_written_the_longest_ago_are_the_first_that_do_not_stay_open) {
  constexpr std::int64_t first = 2000;  // their names descend
  for (int i = 0; i < FileObjects::most_open; ++i) ASSERT_TRUE(write(first - i, objects).is_ok());
  ASSERT_TRUE(write(first, objects).is_ok()) << "the first is written once more";
  EXPECT_EQ(below->watch.synced, std::vector<std::string>());
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(write(first - FileObjects::most_open - i, objects).is_ok());
  std::vector<std::string> oldest;
  for (std::size_t i = 1; i <= FileObjects::most_at_once; ++i)
    oldest.push_back(path_of(first - static_cast<std::int64_t>(i)));
  EXPECT_EQ(std::set(below->watch.synced.begin(), below->watch.synced.end()),
            std::set(oldest.begin(), oldest.end()));
  EXPECT_EQ(below->watch.synced.size(), FileObjects::most_at_once);
  EXPECT_TRUE(objects.settle().is_ok());
}

/// io_uring has a ring for each file, which is a descriptor too.
TEST_F(StoreObjects, count_all_descriptors_that_they_keep_open) {
  below->watch.descriptors = 2;
  for (int i = 0; i < FileObjects::most_open / 2; ++i) ASSERT_TRUE(write(i, objects).is_ok());
  EXPECT_EQ(*descriptors, FileObjects::most_open);
  EXPECT_EQ(below->watch.synced.size(), 0U);
  ASSERT_TRUE(write(FileObjects::most_open, objects).is_ok());
  EXPECT_LE(*descriptors, FileObjects::most_open);
  EXPECT_EQ(below->watch.synced.size(), FileObjects::most_at_once);
  EXPECT_EQ(*descriptors, 2 * (FileObjects::most_open / 2 + 1 - static_cast<int>(FileObjects::most_at_once)));
  EXPECT_TRUE(objects.settle().is_ok());
  EXPECT_EQ(*descriptors, 0);
}

// One after the other 40,000 of them took minutes on a disk.
TEST_F(StoreObjects, of_many_fields_are_made_durable_side_by_side) {
  constexpr int fields = 1000;
  const auto many = zarr::sample_codec();
  codec::FieldDefinition field;
  field.shape = {2, 3};
  for (int i = 0; i < fields; ++i) {
    field.name = cat("field_", i);
    ASSERT_TRUE(many->define(field).is_ok());
  }
  const ByteVector head = many->head();
  const auto target = stores::with_stores(below);
  const std::string other = "d/many.zarr";
  ASSERT_TRUE(storage::create_empty(*target, other).is_ok());
  Result<std::unique_ptr<File>> file = target->open(other, OpenMode::existing);
  ASSERT_TRUE(file.is_ok());
  constexpr int most_waits = fields / static_cast<int>(FileObjects::most_at_once) + 10;
  below->watch.waits = 0;
  ASSERT_TRUE((*file)->write(head, 0).is_ok());
  EXPECT_LE(below->watch.waits, most_waits) << "the metadata of each array";
  below->watch.waits = 0;
  const codec::FixedPlaces places = *many->fixed_places();
  for (int i = 2; i < fields; ++i)
    ASSERT_TRUE(
        (*file)->write(value, std::ssize(head) + places.places[static_cast<std::size_t>(i)].front()).is_ok());
  ASSERT_TRUE((*file)->sync().is_ok());
  EXPECT_LE(below->watch.waits, most_waits) << "the objects of a step";
  below->watch.waits = 0;
  ASSERT_TRUE((*file)->write(formats::step_count("zarr", 1)->bytes, zarr::steps_offset).is_ok());
  ASSERT_TRUE((*file)->sync().is_ok());
  EXPECT_LE(below->watch.waits, most_waits) << "the metadata of each array with one step more";
}

// Over NFS a descriptor is stale once another machine has replaced or removed the file.
TEST_F(StoreObjects, that_another_machine_replaces_are_read_by_their_names_again) {
  ASSERT_TRUE(objects.tell(layout, 3).is_ok());
  ASSERT_TRUE(write(0, objects).is_ok());
  ASSERT_TRUE(objects.settle().is_ok());
  int stale = 0;
  below->watch.before = [&](std::string_view call, const std::string&) {
    return call == "read" && stale-- > 0 ? ESTALE : 0;
  };
  stale = 1;
  EXPECT_EQ(**objects.told(layout), 3);
  stale = 2;
  ByteVector data(3);
  EXPECT_EQ(*objects.read(layout.array("ps"), 0, 0, data), 3);
  EXPECT_TRUE(data == value);
  // The object goes while it is read: there is none then.
  below->watch.before = [&](std::string_view call, const std::string& path) {
    if (call != "read") return 0;
    EXPECT_TRUE(below->remove(path).is_ok());
    return ESTALE;
  };
  EXPECT_EQ(*objects.read(layout.array("ps"), 0, 0, data), 0);
  EXPECT_TRUE(data == ByteVector(3));
  // Storage that fails for good is told of.
  below->watch.before = [](std::string_view call, const std::string&) { return call == "read" ? ESTALE : 0; };
  EXPECT_EQ(objects.told(layout).status().error_number(), ESTALE);
}

TEST_F(StoreObjects, that_another_server_has_cut_need_not_become_durable) {
  for (const std::string_view failing : {"sync", "close"}) {
    below->watch.before = {};
    Objects mine = objects_in(store);
    ASSERT_TRUE(write(0, mine).is_ok());
    ASSERT_TRUE(write(1, mine).is_ok());
    ASSERT_TRUE(below->remove(path_of(1)).is_ok());
    below->watch.before = [&](std::string_view call, const std::string& path) {
      return call == failing && path == path_of(1) ? ESTALE : 0;
    };
    EXPECT_TRUE(mine.settle().is_ok()) << failing;
    // The object is there, and its bytes are lost.
    ASSERT_TRUE(write(1, mine).is_ok());
    EXPECT_EQ(mine.settle().error_number(), ESTALE) << failing;
  }
}

TEST_F(StoreObjects, that_are_written_anew_behind_a_cut_leave_the_stale_ones_alone) {
  ASSERT_TRUE(write(0, objects).is_ok());
  ASSERT_TRUE(below->remove(path_of(0)).is_ok());
  int closed = 0;
  below->watch.before = [&](std::string_view call, const std::string&) {
    return call == "close" && closed++ == 0 ? ESTALE : 0;
  };
  ASSERT_TRUE(write(0, objects).is_ok());
  EXPECT_TRUE(objects.settle().is_ok());
  EXPECT_EQ(closed, 2);
}

TEST_F(StoreObjects, that_a_stream_begins_while_somebody_looks_belong_to_it) {
  const std::string other = "d/other.zarr";
  ASSERT_TRUE(below->make_directories(other).is_ok());
  below->watch.before_list = [&] {
    const ByteVector head = codec->head();
    EXPECT_TRUE(objects_in(other).begin(layout, head).is_ok());
  };
  const auto loaded = objects_in(other).load();
  ASSERT_TRUE(loaded.is_ok()) << loaded.status().text();
  EXPECT_NE(*loaded, nullptr);
}

}  // namespace
}  // namespace tailrace::zarr
