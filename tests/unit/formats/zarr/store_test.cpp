// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "formats/stores/stores.hpp"
#include "formats/zarr/layout.hpp"
#include "ground/base/text.hpp"
#include "ground/storage/faulty.hpp"
#include "ground/storage/memory.hpp"
#include "ground/storage/objects/file_objects.hpp"
#include "sample.hpp"
#include "support/crash.hpp"

namespace tailrace::stores {
namespace {

using storage::File;
using storage::OpenMode;
using storage::Target;

const std::string path = "d/fc.zarr";

std::unique_ptr<File> open(Target& target, OpenMode mode, const std::string& name = path) {
  Result<std::unique_ptr<File>> file = target.open(name, mode);
  EXPECT_TRUE(file.is_ok()) << file.status().text();
  return file.is_ok() ? std::move(*file) : nullptr;
}

Status tell(File& file, std::int64_t steps) {
  const codec::Patch count = *formats::step_count("zarr", steps);
  return file.write(count.bytes, count.offset);
}

/// Writes a store of so many steps as a stream does it: head, then each step, its sync and its number.
Status write_store(Target& target, const std::string& name, int steps, const std::string& field = "t") {
  TR_TRY(target.make_directories("d"));
  TR_TRY(storage::create_empty(target, name));
  const auto codec = zarr::sample_codec(field);
  Result<std::unique_ptr<File>> root = target.open(name, OpenMode::existing);
  TR_TRY(root.status());
  TR_TRY((*root)->write(codec->head(), 0));
  TR_TRY((*root)->sync());
  Result<std::unique_ptr<File>> file = target.open(name, OpenMode::existing);
  TR_TRY(file.status());
  for (int step = 0; step < steps; ++step) {
    for (const codec::Patch& each : zarr::sample_step(*codec, step))
      TR_TRY((*file)->write(each.bytes, each.offset));
    TR_TRY((*file)->sync());
    TR_TRY(tell(**root, step + 1));
  }
  return (*root)->sync();
}

ByteVector all_of(Target& target, const std::string& name = path) {
  const auto file = open(target, OpenMode::read, name);
  if (file == nullptr) return {};
  ByteVector bytes(static_cast<std::size_t>(*file->size()));
  EXPECT_TRUE(file->read(bytes, 0).is_ok());
  return bytes;
}

Bytes end_of(int steps) {
  const auto codec = zarr::sample_codec();
  return std::ssize(codec->head()) + steps * codec->fixed_places()->step;
}

TEST(zarr, fields_name_other_fields_as_their_coordinates) {
  const auto codec = zarr::sample_codec(), before = zarr::sample_codec();
  codec::FieldDefinition field;
  field.name = "s";
  field.shape = {2, 3};
  field.levels = {"isobaricInPa", {3, 2}, {}, {}};
  field.attributes = {{"coordinates", "ps t"}};
  EXPECT_EQ(codec->define(field).code(), Code::argument) << "t has other levels";
  EXPECT_EQ(codec->head(), before->head()) << "a field that is refused leaves nothing";
  field.attributes = {{"coordinates", "ps"}};
  ASSERT_TRUE(codec->define(field).is_ok());
  const ByteVector head = codec->head();
  const std::string text(reinterpret_cast<const char*>(head.data()), head.size());
  EXPECT_NE(text.find("coordinates"), std::string::npos);
}

TEST(stores, names_tell_what_is_a_store) {
  for (const char* const name : {"fc.zarr", "a/b.zarr", "fc.zarr.again"}) EXPECT_TRUE(is_store(name)) << name;
  for (const char* const name : {"fc.nc", "fc.zarr.trx", "fc.zarr/time", ".fc.zarr.replaced"})
    EXPECT_FALSE(is_store(name)) << name;
}

TEST(stores, are_of_a_format_that_this_library_knows) {
  for (const formats::Format& format : formats::all()) {
    if (format.store == nullptr) continue;
    EXPECT_EQ(format.store->opener != nullptr, format.make != nullptr) << format.name;
    ASSERT_EQ(format.endings.size(), 1U);
    EXPECT_EQ(format_of(cat("fc", format.endings.front())), &format);
  }
}

TEST(stores, show_that_a_stream_has_begun_them) {
  const auto below = storage::memory_target();
  ASSERT_TRUE(below->make_directories("d/other.zarr").is_ok());
  ASSERT_TRUE(write_store(*with_stores(below), path, 0).is_ok());
  EXPECT_TRUE(*has_begun(below, path));
  for (const std::string other : {"d", "d/other.zarr", "d/none.zarr"}) EXPECT_FALSE(*has_begun(below, other));
}

TEST(stores, hold_the_objects_of_their_steps) {
  const auto below = storage::memory_target();
  const auto target = with_stores(below);
  ASSERT_TRUE(write_store(*target, path, 2).is_ok());
  EXPECT_EQ(*below->list("d"), (std::vector<std::string>{"fc.zarr"}));
  EXPECT_EQ(*below->list(path),
            (std::vector<std::string>{".tailrace.json", "plev", "ps", "t", "time", "zarr.json"}));
  EXPECT_EQ(*below->list(path + "/t"), (std::vector<std::string>{"c.0.0.0.0", "c.1.0.0.0", "zarr.json"}));
  EXPECT_EQ(*below->list(path + "/time"), (std::vector<std::string>{"c.0", "zarr.json"}));
  EXPECT_EQ(*storage::size_if_there(*below, path + "/time/c.0"), 8 * 1024);
  EXPECT_EQ(*storage::size_if_there(*below, path + "/t/c.1.0.0.0"), 2 * 24 + 36);
}

TEST(stores, are_files_of_the_bytes_that_were_written) {
  const auto target = with_stores(storage::memory_target());
  ASSERT_TRUE(write_store(*target, path, 3).is_ok());
  const auto codec = zarr::sample_codec();
  ByteVector expected = codec->head();
  expected.resize(static_cast<std::size_t>(end_of(3)));
  const auto put = [&](const codec::Patch& each) {
    std::copy(each.bytes.begin(), each.bytes.end(), expected.begin() + each.offset);
  };
  for (int step = 0; step < 3; ++step) {
    for (const codec::Patch& each : zarr::sample_step(*codec, step)) put(each);
  }
  put(*formats::step_count("zarr", 3));
  EXPECT_TRUE(all_of(*target) == expected);
  EXPECT_TRUE(*open(*target, OpenMode::read)->holds(end_of(3), {}));
  EXPECT_FALSE(*open(*target, OpenMode::read)->holds(end_of(3) + 1, {}));
}

TEST(stores, are_cut_at_a_step) {
  const auto below = storage::memory_target();
  const auto target = with_stores(below);
  ASSERT_TRUE(write_store(*target, path, 3).is_ok());
  const auto file = open(*target, OpenMode::existing);
  ASSERT_TRUE(file->truncate(end_of(1)).is_ok());
  ASSERT_TRUE(file->sync().is_ok());
  EXPECT_EQ(*file->size(), end_of(1));
  const auto other = with_stores(storage::memory_target());
  ASSERT_TRUE(write_store(*other, path, 1).is_ok());
  EXPECT_TRUE(all_of(*target) == all_of(*other));
  EXPECT_EQ(*below->list(path + "/ps"), (std::vector<std::string>{"c.0.0.0", "zarr.json"}));
  ASSERT_TRUE(target->remove(path).is_ok());
  EXPECT_FALSE(*below->exists(path));
}

TEST(stores, are_copied_up_to_a_step) {
  const auto target = with_stores(storage::memory_target());
  ASSERT_TRUE(write_store(*target, path, 3).is_ok());
  ASSERT_TRUE(target->copy(path, end_of(2), path + ".again").is_ok());
  ASSERT_TRUE(tell(*open(*target, OpenMode::existing, path + ".again"), 2).is_ok());
  const auto other = with_stores(storage::memory_target());
  ASSERT_TRUE(write_store(*other, path, 2).is_ok());
  EXPECT_TRUE(all_of(*target, path + ".again") == all_of(*other));
  EXPECT_EQ(target->copy(path, end_of(4), path + ".again").code(), Code::corrupt);
}

TEST(stores, leave_what_no_stream_has_written) {
  const auto below = storage::memory_target();
  const auto target = with_stores(below);
  ASSERT_TRUE(below->make_directories(path + "/mine").is_ok());
  for (const OpenMode mode : {OpenMode::read, OpenMode::existing, OpenMode::keep, OpenMode::create})
    EXPECT_EQ(target->open(path, mode).status().code(), Code::state);
  EXPECT_EQ(target->remove(path).code(), Code::state);
  ASSERT_TRUE(below->remove_directory(path + "/mine").is_ok());
  ASSERT_TRUE(write_store(*target, path, 1).is_ok());
  const ByteVector before = all_of(*target);
  for (const std::string notes : {path + "/notes", path + "/t/notes"}) {
    ASSERT_TRUE(storage::create_empty(*below, notes).is_ok());
    EXPECT_EQ(target->check_removable(path).code(), Code::state);
    EXPECT_EQ(target->open(path, OpenMode::create).status().code(), Code::state);
    EXPECT_TRUE(all_of(*target) == before) << notes;
    ASSERT_TRUE(below->remove(notes).is_ok());
  }
  EXPECT_TRUE(target->check_removable(path).is_ok());
  ASSERT_TRUE(storage::create_empty(*below, "d/file.zarr").is_ok());
  const Status refused = target->open("d/file.zarr", OpenMode::create).status();
  EXPECT_NE(refused.text().find("is a file"), std::string::npos) << refused.text();
}

/// zarr-python sorts the arrays when it changes an attribute. Where the steps lie must not depend on it.
TEST(stores, are_the_same_file_whatever_other_programs_make_of_their_metadata) {
  const auto below = storage::memory_target();
  const auto target = with_stores(below);
  ASSERT_TRUE(write_store(*target, path, 3).is_ok());
  const ByteVector before = all_of(*target);
  const std::string changed =
      R"({"zarr_format":3,"consolidated_metadata":{"metadata":{"plev":{"shape":[2]},"time":{"shape":[3]}}}})";
  ASSERT_TRUE(open(*below, OpenMode::create, path + "/zarr.json")
                  ->write(std::as_bytes(std::span(changed)), 0)
                  .is_ok());
  EXPECT_TRUE(all_of(*target) == before);
  ASSERT_TRUE(open(*target, OpenMode::existing)->truncate(end_of(2)).is_ok());
  EXPECT_EQ(*open(*target, OpenMode::read)->size(), end_of(2));
}

TEST(stores, that_are_cut_within_their_head_are_empty) {
  const auto below = storage::memory_target();
  const auto target = with_stores(below);
  ASSERT_TRUE(write_store(*target, path, 2).is_ok());
  const auto file = open(*target, OpenMode::existing);
  const Status cut = file->truncate(end_of(0) - 1);
  ASSERT_TRUE(cut.is_ok()) << cut.text();
  EXPECT_EQ(*file->size(), 0);
  EXPECT_TRUE(below->list(path)->empty());
  EXPECT_EQ(file->truncate(5).code(), Code::state);
  ASSERT_TRUE(file->write(zarr::sample_codec("t")->head(), 0).is_ok());
  EXPECT_EQ(*file->size(), end_of(0));
}

TEST(stores, tell_which_objects_of_a_step_are_missing_or_of_another_size) {
  const auto below = storage::memory_target();
  const auto target = with_stores(below);
  ASSERT_TRUE(write_store(*target, path, 2).is_ok());
  const auto codec = zarr::sample_codec();
  const std::vector<codec::Patch> step = zarr::sample_step(*codec, 1);
  std::vector<storage::Range> records;
  for (std::size_t i = 0; i < 3; ++i) records.push_back({step[i].offset, std::ssize(step[i].bytes)});
  const auto holds = [&] { return *open(*target, OpenMode::read)->holds(end_of(2), records); };
  EXPECT_TRUE(holds());
  ASSERT_TRUE(open(*below, OpenMode::existing, path + "/t/c.1.0.0.0")->truncate(2 * 24 + 35).is_ok());
  EXPECT_FALSE(holds()) << "the index of the shard is cut";
  EXPECT_TRUE(storage::check_holds(*target, path, end_of(2)).is_ok());
  EXPECT_EQ(storage::check_holds(*target, path, end_of(2), records).code(), Code::corrupt);
  ASSERT_TRUE(open(*below, OpenMode::existing, path + "/t/c.1.0.0.0")->truncate(2 * 24 + 36).is_ok());
  EXPECT_TRUE(holds());
  const ByteVector before = all_of(*target);
  ASSERT_TRUE(open(*below, OpenMode::existing, path + "/t/c.1.0.0.0")->truncate(2 * 24 + 37).is_ok());
  EXPECT_FALSE(holds()) << "readers find the index of the shard at its end";
  EXPECT_TRUE(all_of(*target) == before) << "the digest cannot tell";
  ASSERT_TRUE(open(*below, OpenMode::existing, path + "/t/c.1.0.0.0")->truncate(2 * 24 + 36).is_ok());
  EXPECT_TRUE(holds());
  ASSERT_TRUE(below->remove(path + "/ps/c.1.0.0").is_ok());
  EXPECT_FALSE(holds());
}

/// The head of another stream comes over a store that was not emptied: a run was killed in between.
TEST(stores, that_begin_anew_keep_no_object_of_the_old_one) {
  const auto target = with_stores(storage::memory_target());
  ASSERT_TRUE(write_store(*target, path, 3).is_ok());
  ASSERT_TRUE(open(*target, OpenMode::existing)->write(zarr::sample_codec("q")->head(), 0).is_ok());
  const auto other = with_stores(storage::memory_target());
  ASSERT_TRUE(write_store(*other, path, 0, "q").is_ok());
  EXPECT_TRUE(all_of(*target) == all_of(*other));
  EXPECT_FALSE(*target->exists(path + "/t"));
}

/// While a store is emptied, its readers find no steps rather than missing ones.
TEST(stores, that_are_emptied_tell_no_steps_whose_objects_are_gone) {
  for (std::int64_t nth = 1;; ++nth) {
    const auto memory = storage::memory_target();
    ASSERT_TRUE(write_store(*with_stores(memory), path, 2).is_ok());
    const auto faulty =
        storage::faulty_target(memory, {nth, storage::Fault::stopped, storage::all_calls, true});
    const Status emptied = with_stores(faulty)->open(path, OpenMode::create).status();
    const auto seen = with_stores(memory);
    const bool all_there = *memory->exists(path + "/t/c.1.0.0.0") && *memory->exists(path + "/plev/c.0");
    if (!all_there && *memory->exists(path + "/zarr.json")) {
      ByteVector count(8);
      EXPECT_TRUE(open(*seen, OpenMode::read)->read(count, zarr::steps_offset).is_ok());
      EXPECT_TRUE(count == ByteVector(8)) << "call " << nth;
    }
    // The next run can empty it.
    EXPECT_TRUE(seen->open(path, OpenMode::create).is_ok()) << "call " << nth;
    EXPECT_EQ(*memory->list(path), std::vector<std::string>()) << "call " << nth;
    if (emptied.is_ok()) return;
  }
}

/// Two servers have the store open. One of them cuts the step that the other has begun, and writes it again.
TEST(stores, of_a_step_that_another_server_has_cut_hold_what_is_written_behind_the_cut) {
  const auto target = with_stores(storage::memory_target());
  ASSERT_TRUE(write_store(*target, path, 1).is_ok());
  const auto codec = zarr::sample_codec();
  const auto mine = open(*target, OpenMode::existing);
  const std::vector<codec::Patch> step = zarr::sample_step(*codec, 1);
  ASSERT_TRUE(mine->write(step[0].bytes, step[0].offset).is_ok());
  ASSERT_TRUE(open(*target, OpenMode::existing)->truncate(end_of(1)).is_ok());
  for (const codec::Patch& each : step) ASSERT_TRUE(mine->write(each.bytes, each.offset).is_ok());
  ASSERT_TRUE(mine->sync().is_ok());
  const auto other = with_stores(storage::memory_target());
  ASSERT_TRUE(write_store(*other, path, 2).is_ok());
  ASSERT_TRUE(tell(*mine, 2).is_ok());
  EXPECT_TRUE(all_of(*target) == all_of(*other));
}

constexpr storage::CrashPolicy lost{storage::CrashPolicy::Writes::dropped,
                                    storage::CrashPolicy::Entries::lost};

TEST(stores, keep_their_synchronised_steps_when_power_is_lost) {
  const auto disk = storage::crash_target();
  ASSERT_TRUE(write_store(*with_stores(disk), path, 2).is_ok());
  const ByteVector before = all_of(*with_stores(disk));
  // A third step is written, and not synchronised.
  const auto file = open(*with_stores(disk), OpenMode::existing);
  for (const codec::Patch& each : zarr::sample_step(*zarr::sample_codec(), 2))
    ASSERT_TRUE(file->write(each.bytes, each.offset).is_ok());
  EXPECT_TRUE(all_of(*with_stores(disk->crash(lost, 1))) == before);
}

/// A store keeps few descriptors open, and synchronises the objects of the others while it is written.
/// Whoever goes on with a store cuts it behind its last step, tells its steps anew, and begins it if it has
/// none.
TEST(stores, that_a_killed_process_was_beginning_or_emptying_are_begun_by_the_next_one) {
  for (const bool emptied : {false, true}) {
    bool fired = true;
    for (std::int64_t nth = 1; fired; ++nth) {
      const auto below = storage::memory_target();
      if (emptied) ASSERT_TRUE(write_store(*with_stores(below), path, 2).is_ok());
      const auto killed =
          storage::faulty_target(below, {nth, storage::Fault::stopped, storage::changing_calls, true});
      const Status first = write_store(*with_stores(killed), path, 0);
      fired = killed->fired();
      const std::string where = cat(emptied ? "emptied" : "begun", ", killed at call ", nth);
      EXPECT_EQ(first.is_ok(), !fired) << where;
      const auto target = with_stores(below);
      if (!*target->exists(path)) continue;
      const auto file = open(*target, OpenMode::existing);
      ASSERT_NE(file, nullptr) << where;
      const Bytes begin = end_of(0);
      if (*file->size() >= begin) {
        const Status told = tell(*file, 0);
        EXPECT_TRUE(told.is_ok()) << where << ": " << told.text();
        const Status synced = file->sync();
        EXPECT_TRUE(synced.is_ok()) << where << ": " << synced.text();
      }
      if (*file->size() > begin) {
        const Status cut = file->truncate(begin);
        EXPECT_TRUE(cut.is_ok()) << where << ": " << cut.text();
      }
      const Status head = file->write(zarr::sample_codec("t")->head(), 0);
      EXPECT_TRUE(head.is_ok()) << where << ": " << head.text();
      EXPECT_TRUE(file->close().is_ok()) << where;
      EXPECT_EQ(*open(*target, OpenMode::read)->size(), begin) << where;
    }
  }
}

TEST(stores, tell_a_failed_sync_of_many_objects_once_and_are_written_again) {
  const auto memory = storage::memory_target();
  ASSERT_TRUE(write_store(*with_stores(memory), path, 0).is_ok());
  const auto codec = zarr::sample_codec();
  const auto faulty =
      storage::faulty_target(memory, {1, storage::Fault::io_error, storage::set_of(storage::Call::sync)});
  const auto target = with_stores(faulty);
  constexpr int steps = storage::FileObjects::most_open / 2 + 10;  // of two objects, and a time
  const auto write_all = [&](File& file) {
    for (int step = 0; step < steps; ++step) {
      for (const codec::Patch& each : zarr::sample_step(*codec, step))
        ASSERT_TRUE(file.write(each.bytes, each.offset).is_ok()) << "step " << step;
    }
  };
  const auto file = open(*target, OpenMode::existing);
  write_all(*file);
  ASSERT_TRUE(faulty->fired()) << "all objects were kept open";
  EXPECT_EQ(file->sync().code(), Code::io);
  const auto again = open(*target, OpenMode::existing);
  write_all(*again);
  EXPECT_TRUE(again->sync().is_ok());
  EXPECT_EQ(*again->size(), end_of(steps));
}

TEST(stores, together_keep_no_more_objects_open_than_one) {
  const auto memory = storage::memory_target();
  const std::string other = "d/other.zarr";
  for (const std::string& name : {path, other})
    ASSERT_TRUE(write_store(*with_stores(memory), name, 0).is_ok());
  const auto counted =
      storage::faulty_target(memory, {0, storage::Fault::io_error, storage::set_of(storage::Call::sync)});
  const auto target = with_stores(counted);
  const auto one = open(*target, OpenMode::existing), two = open(*target, OpenMode::existing, other);
  const auto write_half = [](File& file) {
    for (int step = 0; step < storage::FileObjects::most_open / 4 + 10; ++step) {
      for (const codec::Patch& each : zarr::sample_step(*zarr::sample_codec(), step))
        ASSERT_TRUE(file.write(each.bytes, each.offset).is_ok()) << "step " << step;
    }
  };
  write_half(*one);
  EXPECT_EQ(counted->calls(), 0) << "one store has not reached the bound";
  write_half(*two);
  EXPECT_GT(counted->calls(), 0) << "each store had a bound of its own";
  EXPECT_TRUE(one->sync().is_ok());
  const std::int64_t before = counted->calls();
  write_half(*two);
  EXPECT_TRUE(two->sync().is_ok());
  EXPECT_GT(counted->calls(), before);
}

/// A file system that does not tell upper from lower case.
class OneCase final : public storage::MemoryTarget {
 public:
  OneCase() : MemoryTarget(false) {}
  using MemoryTarget::open;
  Result<std::unique_ptr<File>> open(const std::string& name, OpenMode mode, unsigned permissions) override {
    return MemoryTarget::open(lower_case(name), mode, permissions);
  }
  Status rename(const std::string& from, const std::string& to) override {
    return MemoryTarget::rename(lower_case(from), lower_case(to));
  }
  Result<bool> exists(const std::string& name) override { return MemoryTarget::exists(lower_case(name)); }
  Status make_directories(const std::string& name) override {
    return MemoryTarget::make_directories(lower_case(name));
  }
  Status sync_directory_of(const std::string& name) override {
    return MemoryTarget::sync_directory_of(lower_case(name));
  }
};

TEST(stores, whose_arrays_are_links_are_left_alone) {
  std::string name = (std::filesystem::temp_directory_path() / "tailrace-store-XXXXXX").string();
  const std::filesystem::path directory = ::mkdtemp(name.data());
  const std::string store = directory / "fc.zarr", other = directory / "other.zarr";
  const std::shared_ptr<Target> target = with_stores(storage::posix_target());
  const auto refuses = [&](const Status& status) {
    EXPECT_EQ(status.code(), Code::state) << status.text();
    EXPECT_NE(status.text().find("/t: is a link"), std::string::npos) << status.text();
  };
  // The other store's array has the same objects.
  ASSERT_TRUE(write_store(*target, store, 2).is_ok() && write_store(*target, other, 2).is_ok());
  const ByteVector before = all_of(*target, other);
  std::filesystem::remove_all(store + "/t");
  std::filesystem::create_directory_symlink(other + "/t", store + "/t");
  for (const OpenMode mode : {OpenMode::existing, OpenMode::keep, OpenMode::create})
    refuses(target->open(store, mode).status());
  refuses(target->check_removable(store));
  refuses(target->remove(store));
  EXPECT_TRUE(all_of(*target, store) == before) << "readers may follow it";
  // A link in a store that is begun.
  std::filesystem::remove_all(store);
  std::filesystem::create_directory(store);
  const auto file = open(*target, OpenMode::existing, store);
  std::filesystem::create_directory_symlink(other + "/t", store + "/t");
  EXPECT_EQ(file->write(zarr::sample_codec()->head(), 0).code(), Code::state);
  EXPECT_TRUE(all_of(*target, other) == before);
  // The store itself may be one.
  const std::string link = directory / "link.zarr";
  std::filesystem::create_directory_symlink(other, link);
  EXPECT_TRUE(write_store(*target, link, 1).is_ok());
  EXPECT_EQ(*open(*target, OpenMode::read, other)->size(), end_of(1));
  std::filesystem::remove_all(directory);
}

TEST(stores, are_refused_where_two_arrays_would_be_one_directory) {
  EXPECT_TRUE(write_store(*with_stores(storage::memory_target()), path, 1, "PS").is_ok());
  const Status refused = write_store(*with_stores(std::make_shared<OneCase>()), path, 1, "PS");
  EXPECT_EQ(refused.code(), Code::state);
  EXPECT_NE(refused.text().find("another name"), std::string::npos) << refused.text();
}

/// Whoever looks finds one of the two stores under the name, however far the rename has come.
TEST(stores, are_replaced_as_by_one_rename) {
  const auto disk = with_stores(storage::memory_target());
  ASSERT_TRUE(write_store(*disk, path, 2).is_ok());
  const ByteVector old = all_of(*disk);
  ASSERT_TRUE(write_store(*disk, path, 2, "q").is_ok());
  const ByteVector young = all_of(*disk);
  int between = 0;
  for (std::int64_t nth = 1;; ++nth) {
    for (const bool power : {false, true}) {
      const auto memory = storage::crash_target();
      ASSERT_TRUE(write_store(*with_stores(memory), path, 2).is_ok());
      ASSERT_TRUE(write_store(*with_stores(memory), path + ".again", 2, "q").is_ok());
      const auto faulty =
          storage::faulty_target(memory, {nth, storage::Fault::stopped, storage::all_calls, true});
      const Status renamed = with_stores(faulty)->rename(path + ".again", path);
      const std::shared_ptr<Target> left = power ? memory->crash(lost, 1) : memory;
      const auto seen = with_stores(left);
      const ByteVector found = all_of(*seen);
      ASSERT_TRUE(found == old || found == young) << "call " << nth;
      const bool again = *seen->exists(path + ".again");
      EXPECT_EQ(again, found == old) << "call " << nth;
      if (*left->exists("d/.fc.zarr.replaced")) ++between;
      // Each of these calls ends a rename that was interrupted.
      if (again || (power && !renamed.is_ok())) {
        const Status retried = seen->rename(path + ".again", path);
        EXPECT_TRUE(again ? retried.is_ok() : retried.is_ok() || retried.error_number() == ENOENT)
            << "call " << nth << ": " << retried.text();
        EXPECT_TRUE(all_of(*seen) == young) << "call " << nth;
        continue;
      }
      if (!renamed.is_ok()) {
        EXPECT_TRUE(seen->copy(path, end_of(2), path + ".again").is_ok()) << "call " << nth;
        EXPECT_TRUE(all_of(*seen) == young) << "call " << nth;
        EXPECT_TRUE(seen->remove(path + ".again").is_ok());
      }
      EXPECT_NE(open(*seen, OpenMode::existing), nullptr);
      EXPECT_FALSE(*left->exists("d/.fc.zarr.replaced")) << "call " << nth;
      EXPECT_TRUE(all_of(*seen) == found);
      if (renamed.is_ok()) {
        EXPECT_TRUE(found == young);
        EXPECT_GT(between, 5);
        return;
      }
    }
  }
}

}  // namespace
}  // namespace tailrace::stores
