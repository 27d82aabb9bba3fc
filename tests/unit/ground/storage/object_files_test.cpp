// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// What only files and locks among whole objects do; the rest is in tests/conformance/target_test.cpp.
#include "ground/storage/objects/object_files.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <future>

#include "ground/base/text.hpp"
#include "ground/storage/objects/whole_objects.hpp"
#include "ground/storage/scratch.hpp"
#include "support/bucket_service.hpp"

namespace tailrace::storage {
namespace {

const std::string path = "keyed://d/fc.zarr.trx";

class ObjectFilesTest : public testing::Test {
 protected:
  void SetUp() override { keyed_places(); }
  /// Returns the same files as another process has them.
  [[nodiscard]] std::shared_ptr<Target> other() const {
    return std::make_shared<ObjectFiles>(service, "keyed");
  }
  [[nodiscard]] std::optional<std::string> object(const std::string& name) const {
    const auto all = service->all();
    const auto found = all.find(name);
    if (found == all.end()) return std::nullopt;
    return text_of(found->second);
  }
  void put(const std::string& name, const std::string& text) const {
    const ObjectService::Object one{name, std::as_bytes(std::span(text))};
    ASSERT_TRUE(service->put({&one, 1}).is_ok());
  }

  const std::shared_ptr<BucketService> service = std::make_shared<BucketService>();
  const std::shared_ptr<Target> target = other();
};

TEST_F(ObjectFilesTest, others_find_what_was_synchronised_and_nothing_before) {
  const auto file = *target->open(path, OpenMode::create);
  ASSERT_TRUE(file->write(bytes_of("one"), 0).is_ok());
  EXPECT_FALSE(*other()->exists(path));
  EXPECT_TRUE(*target->exists(path));
  ASSERT_TRUE(file->sync().is_ok());
  EXPECT_EQ(object(path), "one");
  ASSERT_TRUE(file->write(bytes_of("two"), 3).is_ok());
  EXPECT_EQ(contents_of(*other(), path), "one");
  EXPECT_EQ(contents_of(*target, path), "onetwo");
  EXPECT_TRUE(file->close().is_ok());
  EXPECT_EQ(contents_of(*other(), path), "onetwo");
}

TEST_F(ObjectFilesTest, a_file_that_is_not_closed_loses_what_was_not_synchronised) {
  ASSERT_TRUE(put_file(*target, path, "one").is_ok());
  {
    const auto file = *target->open(path, OpenMode::existing);
    ASSERT_TRUE(file->write(bytes_of("two"), 3).is_ok());
  }
  EXPECT_EQ(contents_of(*target, path), "one");
}

TEST_F(ObjectFilesTest, a_change_of_another_process_is_seen_and_built_on_by_whoever_opens_the_file_next) {
  const auto read = *target->open(path, OpenMode::create);
  ASSERT_TRUE(read->write(bytes_of("one"), 0).is_ok() && read->sync().is_ok());
  ASSERT_TRUE(put_file(*other(), path, "other").is_ok());
  EXPECT_EQ(*read->size(), 5);
  const auto file = *target->open(path, OpenMode::existing);
  ASSERT_TRUE(file->write(bytes_of("!"), 5).is_ok() && file->sync().is_ok());
  EXPECT_EQ(object(path), "other!");
}

/// As a run finds that was stopped for a time, while another one has taken its place.
TEST_F(ObjectFilesTest, what_another_process_has_put_or_removed_since_is_never_put_over) {
  for (const std::string theirs : {"two", "longer", ""}) {
    SCOPED_TRACE(theirs);
    auto file = *target->open(path, OpenMode::create);
    ASSERT_TRUE(file->write(bytes_of("one"), 0).is_ok() && file->sync().is_ok());
    ASSERT_TRUE(file->write(bytes_of("!"), 3).is_ok() && file->sync().is_ok());
    if (theirs.empty())
      ASSERT_TRUE(service->remove(path).is_ok());
    else
      put(path, theirs);
    ASSERT_TRUE(file->write(bytes_of("?"), 3).is_ok());
    const Status refused = file->sync();
    EXPECT_EQ(refused.code(), Code::state);
    EXPECT_NE(refused.text().find("another process"), std::string::npos) << refused.text();
    // Nor by taking the change back, as the writer of an index does after a failure.
    const auto fresh = *target->open(path, OpenMode::existing);
    EXPECT_TRUE(fresh->truncate(3).is_ok());
    EXPECT_EQ(fresh->sync().code(), Code::state);
    EXPECT_EQ(object(path).value_or(""), theirs);
    file = nullptr;
  }
}

TEST_F(ObjectFilesTest, what_a_file_puts_goes_over_the_object_that_was_there_when_it_was_opened) {
  ASSERT_TRUE(put_file(*target, path, "one").is_ok());
  const auto file = *target->open(path, OpenMode::existing);
  put(path, "two");
  ASSERT_TRUE(file->write(bytes_of("!"), 3).is_ok());
  EXPECT_EQ(file->sync().code(), Code::state);
  EXPECT_EQ(object(path), "two");
}

TEST_F(ObjectFilesTest, a_file_that_another_process_has_made_meanwhile_stays) {
  const auto file = *target->open(path, OpenMode::create);
  ASSERT_TRUE(file->write(bytes_of("one"), 0).is_ok());
  put(path, "two");
  EXPECT_EQ(file->sync().code(), Code::state);
  EXPECT_EQ(object(path), "two");
}

TEST_F(ObjectFilesTest, a_file_whose_removal_fails_is_the_file_of_its_name_still) {
  const std::string from = path + ".new";
  for (const bool renames : {false, true}) {
    SCOPED_TRACE(renames);
    service->restart({});
    ASSERT_TRUE(put_file(*target, path, "one").is_ok() && put_file(*target, from, "new").is_ok());
    const auto file = *target->open(path, OpenMode::existing);
    ASSERT_TRUE(file->write(bytes_of("two"), 3).is_ok());
    service->restart({1});
    EXPECT_EQ(renames ? target->rename(from, path).code() : target->remove(path).code(), Code::io);
    ASSERT_TRUE(file->sync().is_ok());
    EXPECT_EQ(object(path), "onetwo");
  }
}

TEST_F(ObjectFilesTest, a_failed_put_is_final_for_the_file_and_another_one_goes_on) {
  for (const bool is_made_yet : {false, true}) {
    ASSERT_TRUE(put_file(*target, path, "one").is_ok());
    auto file = *target->open(path, OpenMode::existing);
    ASSERT_TRUE(file->write(bytes_of("two"), 3).is_ok());
    service->restart({1, false, is_made_yet});
    EXPECT_EQ(file->sync().code(), Code::io);
    EXPECT_EQ(file->sync().code(), Code::io);
    // As the writer of an index takes a record back.
    const auto fresh = *target->open(path, OpenMode::existing);
    EXPECT_EQ(*fresh->size(), 6);
    ASSERT_TRUE(fresh->truncate(3).is_ok() && fresh->sync().is_ok());
    file = nullptr;
    EXPECT_EQ(object(path), "one");
  }
}

TEST_F(ObjectFilesTest, a_rename_that_is_killed_leaves_the_new_name_whole) {
  for (std::int64_t nth = 1; nth <= 3; ++nth) {
    service->restart({});
    ASSERT_TRUE(put_file(*target, path, "old").is_ok() && put_file(*target, path + ".new", "new").is_ok());
    service->restart({nth, true});
    const Status renamed = target->rename(path + ".new", path);
    EXPECT_EQ(renamed.is_ok(), nth == 3) << renamed.text();
    service->restart({});
    EXPECT_EQ(contents_of(*other(), path), nth == 1 ? "old" : "new");
    EXPECT_EQ(*other()->exists(path + ".new"), nth < 3);
  }
}

TEST_F(ObjectFilesTest, files_are_small) {
  const auto file = *target->open(path, OpenMode::create);
  const Status refused = file->write(bytes_of("x"), ObjectFiles::most_bytes);
  EXPECT_EQ(refused.code(), Code::unsupported);
  EXPECT_NE(refused.text().find("further files"), std::string::npos) << refused.text();
  EXPECT_EQ(file->truncate(ObjectFiles::most_bytes + 1).code(), Code::unsupported);
  EXPECT_EQ(*file->size(), 0);
}

TEST_F(ObjectFilesTest, directories_are_what_names_begin_with) {
  EXPECT_EQ(*target->kind_of("keyed://d"), Kind::nothing);
  ASSERT_TRUE(target->make_directories("keyed://d").is_ok());
  ASSERT_TRUE(put_file(*target, path, "x").is_ok() && put_file(*target, "keyed://d/e/f", "").is_ok());
  EXPECT_EQ(*target->kind_of("keyed://d"), Kind::directory);
  EXPECT_EQ(*target->kind_of("keyed://"), Kind::directory);
  EXPECT_EQ(*target->kind_of(path), Kind::file);
  EXPECT_EQ(*target->list("keyed://d"), (std::vector<std::string>{"e", "fc.zarr.trx"}));
  EXPECT_EQ(*target->list("keyed://"), std::vector<std::string>{"d"});
  EXPECT_EQ(target->list(path).status().error_number(), ENOTDIR);
  EXPECT_EQ(target->open("keyed://d", OpenMode::create).status().error_number(), EISDIR);
  EXPECT_EQ(target->open("keyed://d", OpenMode::read_regular).status().error_number(), ENOENT);
  EXPECT_EQ(target->remove("keyed://d").error_number(), EISDIR);
  EXPECT_EQ(target->remove_directory("keyed://d").error_number(), ENOTEMPTY);
}

TEST_F(ObjectFilesTest, a_lock_keeps_other_processes_out_and_has_no_shares) {
  const std::string name = "keyed://d/fc.lock";
  auto held = target->lock(name);
  ASSERT_TRUE(held.is_ok()) << held.status().text();
  EXPECT_EQ(other()->lock(name).status().code(), Code::state);
  EXPECT_EQ(target->share_lock(name, *held).status().code(), Code::unsupported);
  // Somebody has removed the object by hand, and taken the lock: it stays theirs.
  ASSERT_TRUE(service->remove(name).is_ok());
  auto theirs = other()->lock(name);
  ASSERT_TRUE(theirs.is_ok());
  held->reset();
  EXPECT_TRUE(object(name).has_value());
  theirs->reset();
  EXPECT_FALSE(object(name).has_value());
}

/// Returns what a process of this machine has in a lock that it has left when it was killed.
/// `asks`: the parent has asked for its end, so that its number is free again.
std::string lock_of_killed_child(BucketService& service, const std::string& name, bool asks = true) {
  int ends[2] = {};
  EXPECT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto own = std::make_shared<BucketService>();  // a copy in this process
    const auto lock = ObjectFiles(own, "keyed").lock(name);
    const auto all = own->all();
    const std::string text = lock.is_ok() ? text_of(all.begin()->second) : "";
    [[maybe_unused]] const auto told = ::write(ends[1], text.data(), text.size());
    ::_exit(0);
  }
  std::array<char, 512> text{};
  const ssize_t got = ::read(ends[0], text.data(), text.size());
  EXPECT_GT(got, 0);
  siginfo_t ended{};
  EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | (asks ? 0 : WNOWAIT)), 0);
  for (const int end : ends) ::close(end);
  std::string whole(text.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  const ObjectService::Object object{name, std::as_bytes(std::span(whole))};
  EXPECT_TRUE(service.put({&object, 1}).is_ok());
  return whole;
}

/// The words of a lock, behind its mark.
enum class word { host, boot, processes, pid, started, token };

/// Returns the text of a lock with another word.
std::string with_word(const std::string& lock, word which, const std::string& other) {
  std::size_t begin = std::string_view("tailrace lock: ").size();
  for (int i = 0; i < static_cast<int>(which); ++i) begin = lock.find(' ', begin) + 1;
  return std::string(lock).replace(begin, lock.find(' ', begin) - begin, other);
}

TEST_F(ObjectFilesTest, a_lock_that_a_killed_process_has_left_is_taken_over) {
  const std::string name = "keyed://d/fc.lock";
  const std::string left = lock_of_killed_child(*service, name);
  EXPECT_TRUE(left.starts_with("tailrace lock: ")) << left;
  auto held = target->lock(name);
  ASSERT_TRUE(held.is_ok()) << held.status().text();
  EXPECT_NE(object(name), left);
  held->reset();
  EXPECT_FALSE(object(name).has_value());
  lock_of_killed_child(*service, name, false);
  EXPECT_TRUE(target->lock(name).is_ok());
  // The same number, and another process: the start of process 1 is not that of the killed one.
  put(name, with_word(left, word::pid, "1"));
  EXPECT_TRUE(target->lock(name).is_ok());
}

TEST_F(ObjectFilesTest, a_lock_of_another_machine_or_container_with_the_same_name_stays) {
  const std::string name = "keyed://d/fc.lock";
  const std::string left = lock_of_killed_child(*service, name);
  for (const word place : {word::boot, word::processes}) {
    for (const std::string other : {"another", "-"}) {
      put(name, with_word(left, place, other));
      const Status refused = target->lock(name).status();
      EXPECT_EQ(refused.code(), Code::state) << other;
      EXPECT_NE(refused.text().find("remove the object"), std::string::npos) << refused.text();
    }
  }
}

/// /proc hides the processes of others on some machines. Here the test has no descriptor left to look.
TEST_F(ObjectFilesTest, a_lock_of_a_live_process_of_which_the_system_tells_nothing_stays) {
  const std::string name = "keyed://d/fc.lock";
  const std::string mine = lock_of_killed_child(*service, name);
  ASSERT_TRUE(target->lock(name).is_ok());  // what this process is, is known now
  // The parent of the test lives, and began at another time than the lock says.
  put(name, with_word(mine, word::pid, std::to_string(::getppid())));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const Status hidden = target->lock(name).status();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(hidden.code(), Code::state) << hidden.text();
  EXPECT_TRUE(target->lock(name).is_ok());
  // Nothing is known of a holder that could not look itself, while its number belongs to a process.
  put(name, with_word(with_word(mine, word::pid, std::to_string(::getppid())), word::started, "-"));
  EXPECT_EQ(target->lock(name).status().code(), Code::state);
}

TEST_F(ObjectFilesTest, the_removal_of_a_lock_is_tried_again) {
  const std::string name = "keyed://d/fc.lock";
  auto held = *target->lock(name);
  service->restart({1});
  held.reset();
  EXPECT_TRUE(service->has_failed());
  EXPECT_FALSE(object(name).has_value());
}

TEST_F(ObjectFilesTest, a_lock_of_another_machine_stays_and_the_text_says_what_to_do) {
  const std::string name = "keyed://d/fc.lock";
  const std::string theirs = "tailrace lock: no-such-host boot pid:[1] 1 1 6f1c0d2e\n";
  put(name, theirs);
  const Status refused = target->lock(name).status();
  EXPECT_EQ(refused.code(), Code::state);
  EXPECT_NE(refused.text().find("host no-such-host pid 1"), std::string::npos) << refused.text();
  EXPECT_NE(refused.text().find("remove the object"), std::string::npos) << refused.text();
  EXPECT_EQ(object(name), theirs);
}

TEST_F(ObjectFilesTest, a_lock_whose_put_failed_and_was_made_is_not_in_the_way_of_the_next) {
  const std::string name = "keyed://d/fc.lock";
  service->restart({1, true, true});
  EXPECT_EQ(target->lock(name).status().code(), Code::io);
  service->restart({});
  EXPECT_TRUE(object(name).has_value());
  EXPECT_TRUE(target->lock(name).is_ok());
}

class ForwardingService : public ObjectService {
 public:
  explicit ForwardingService(std::shared_ptr<BucketService> below) : below_(std::move(below)) {}
  Result<std::optional<Bytes>> size_of(const std::string& name) override { return below_->size_of(name); }
  Result<std::optional<Bytes>> read(const std::string& name, Bytes offset,
                                    std::span<std::byte> data) override {
    return below_->read(name, offset, data);
  }
  Result<std::optional<Whole>> get(const std::string& name) override { return below_->get(name); }
  Status put(std::span<const Object> objects) override { return below_->put(objects); }
  Result<std::optional<std::string>> put_if(const Object& object, const std::string& version) override {
    return below_->put_if(object, version);
  }
  Status remove(const std::string& name) override { return below_->remove(name); }
  Result<std::vector<std::string>> list(const std::string& prefix, std::size_t most) override {
    return below_->list(prefix, most);
  }

 protected:
  const std::shared_ptr<BucketService> below_;
};

/// Wins every race: puts its own lock between the look at a lock and the put.
class OvertakenService final : public ForwardingService {
 public:
  using ForwardingService::ForwardingService;
  Result<std::optional<Whole>> get(const std::string& name) override {
    auto found = below_->get(name);
    const std::string text = "tailrace lock: no-such-host boot pid:[1] 1 1 6f1c0d2e\n";
    const Object theirs{name, std::as_bytes(std::span(text))};
    EXPECT_TRUE(below_->put({&theirs, 1}).is_ok());
    return found;
  }
};

class CountingService final : public ForwardingService {
 public:
  CountingService() : ForwardingService(std::make_shared<BucketService>()) {}
  Result<std::optional<Whole>> get(const std::string& name) override {
    ++gets;
    return below_->get(name);
  }
  Status copy(const std::string& from, const std::string& to) override {
    ++copies;
    return below_->copy(from, to);
  }
  [[nodiscard]] auto all() const { return below_->all(); }
  int gets = 0, copies = 0;
};

TEST_F(ObjectFilesTest, of_two_that_take_a_lock_over_one_gets_it) {
  const std::string name = "keyed://d/fc.lock";
  lock_of_killed_child(*service, name);
  ObjectFiles overtaken(std::make_shared<OvertakenService>(service), "keyed");
  const Status refused = overtaken.lock(name).status();
  EXPECT_EQ(refused.code(), Code::state);
  EXPECT_NE(refused.text().find("no-such-host"), std::string::npos) << refused.text();
}

TEST(whole_objects, put_what_was_written_in_parts_with_sync_and_in_order) {
  const auto service = std::make_shared<BucketService>();
  const ObjectsAt at = WholeObjects::at(service);
  const auto objects = at("keyed://d/fc.zarr");
  ASSERT_TRUE(objects->make().is_ok());
  const auto write = [&](const std::string& key, Bytes offset, std::string_view text) {
    const auto part = std::as_bytes(std::span(text));
    return objects->write(key, offset, {&part, 1}).is_ok();
  };
  EXPECT_TRUE(write("t/c.0", 2, "cd") && write("s/c.0", 0, "x") && write("t/c.0", 0, "ab"));
  EXPECT_EQ(service->all().size(), 1U);
  // Users of the place in this process see them, as those of files do.
  EXPECT_EQ(*at("keyed://d/fc.zarr")->text_of("t/c.0", 10), "abcd");
  EXPECT_EQ(*objects->list(""), (std::vector<std::string>{"s", "t"}));
  EXPECT_FALSE(*WholeObjects::at(service)("keyed://d/fc.zarr")->exists("t/c.0"));
  service->restart({2});
  EXPECT_FALSE(objects->sync().is_ok());
  EXPECT_TRUE(service->all().contains("keyed://d/fc.zarr/t/c.0"));  // what was written first
  EXPECT_FALSE(service->all().contains("keyed://d/fc.zarr/s/c.0"));
  EXPECT_TRUE(objects->sync().is_ok());
  EXPECT_EQ(service->all().size(), 3U);
  const std::int64_t before = service->changes();
  EXPECT_TRUE(objects->sync().is_ok());
  EXPECT_EQ(service->changes(), before);  // nothing is put twice
  EXPECT_TRUE(write("s/c.0", 1, "y"));
  objects->give_up_writes();
  EXPECT_TRUE(objects->sync().is_ok());
  EXPECT_EQ(*objects->text_of("s/c.0", 10), "x");
}

/// The time of a step is put behind its records, also in steps that find its object in memory.
TEST(whole_objects, are_put_in_the_order_of_the_first_writes_since_they_were_put) {
  const auto service = std::make_shared<BucketService>();
  const auto objects = WholeObjects::at(service)("keyed://d/fc.zarr");
  const auto write = [&](const std::string& key, Bytes offset) {
    const auto part = std::as_bytes(std::span("x", 1));
    return objects->write(key, offset, {&part, 1}).is_ok();
  };
  ASSERT_TRUE(write("a/c.0", 0) && write("time/c.0", 0) && objects->sync().is_ok());
  ASSERT_TRUE(write("z/c.1", 0) && write("time/c.0", 1));
  service->restart({2});
  EXPECT_FALSE(objects->sync().is_ok());
  EXPECT_EQ(service->all().at("keyed://d/fc.zarr/time/c.0").size(), 1U);
  EXPECT_TRUE(service->all().contains("keyed://d/fc.zarr/z/c.1"));
}

TEST(whole_objects, leave_memory_behind_their_put_if_they_are_large) {
  const auto service = std::make_shared<CountingService>();
  const auto objects = WholeObjects::at(service)("keyed://d/fc.zarr");
  const ByteVector large(static_cast<std::size_t>(WholePlace::most_kept) + 1, std::byte{1});
  const std::span<const std::byte> all = large;
  const std::span<const std::byte> part = all.first(1);
  ASSERT_TRUE(objects->write("t/c.0", 0, {&all, 1}).is_ok() &&
              objects->write("s/c.0", 0, {&part, 1}).is_ok());
  ASSERT_TRUE(objects->sync().is_ok());
  service->gets = 0;
  // What is in memory is not asked for again.
  ASSERT_TRUE(objects->write("s/c.0", 1, {&part, 1}).is_ok());
  EXPECT_EQ(service->gets, 0);
  ASSERT_TRUE(objects->write("t/c.0", 1, {&part, 1}).is_ok());
  EXPECT_EQ(service->gets, 1);
  ASSERT_TRUE(objects->sync().is_ok());
  EXPECT_EQ(service->all().at("keyed://d/fc.zarr/t/c.0").size(), large.size());
}

TEST(whole_objects, are_copied_by_the_service_if_it_has_all_of_their_bytes) {
  const auto service = std::make_shared<CountingService>();
  const ObjectsAt at = WholeObjects::at(service);
  const auto from = at("keyed://d/fc.zarr"), to = at("keyed://d/fc.zarr.again");
  const std::span<const std::byte> part = std::as_bytes(std::span("ab", 2));
  ASSERT_TRUE(from->write("t/c.0", 0, {&part, 1}).is_ok() && from->sync().is_ok());
  ASSERT_TRUE(to->copy_from("keyed://d/fc.zarr", "t/c.0", 2).is_ok());
  EXPECT_EQ(service->copies, 1);
  EXPECT_EQ(*to->text_of("t/c.0", 10), "ab");
  ASSERT_TRUE(to->copy_from("keyed://d/fc.zarr", "t/c.0", 1).is_ok());
  EXPECT_EQ(*to->text_of("t/c.0", 10), "a");
  // The service has not got the rest yet.
  ASSERT_TRUE(from->write("t/c.0", 1, {&part, 1}).is_ok());
  ASSERT_TRUE(to->copy_from("keyed://d/fc.zarr", "t/c.0", 3).is_ok());
  EXPECT_EQ(*to->text_of("t/c.0", 10), "aab");
  EXPECT_EQ(service->copies, 1);
  EXPECT_EQ(to->copy_from("keyed://d/fc.zarr", "t/c.0", 4).code(), Code::corrupt);
  EXPECT_EQ(to->copy_from("keyed://d/fc.zarr", "t/c.1", 1).error_number(), ENOENT);
}

/// Holds a read until it is let go.
class SlowService final : public ForwardingService {
 public:
  using ForwardingService::ForwardingService;
  Result<std::optional<Bytes>> read(const std::string& name, Bytes offset,
                                    std::span<std::byte> data) override {
    begun.set_value();
    let_go.get_future().wait();
    return ForwardingService::read(name, offset, data);
  }
  std::promise<void> begun, let_go;
};

TEST(whole_objects, are_used_by_others_while_the_service_is_slow) {
  const auto service = std::make_shared<SlowService>(std::make_shared<BucketService>());
  const auto objects = WholeObjects::at(service)("keyed://d/fc.zarr");
  const std::span<const std::byte> part = std::as_bytes(std::span("ab", 2));
  ASSERT_TRUE(objects->write("t/c.0", 0, {&part, 1}).is_ok() && objects->sync().is_ok());
  auto slow = std::async(std::launch::async, [&] {
    ByteVector data(2);
    return objects->read("t/c.0", 0, data).is_ok();
  });
  service->begun.get_future().wait();
  auto other = std::async(std::launch::async, [&] { return objects->exists("t/c.0").is_ok(); });
  EXPECT_EQ(other.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  service->let_go.set_value();
  EXPECT_TRUE(slow.get() && other.get());
}

TEST(whole_objects, of_a_service_that_could_not_be_made_are_tried_again) {
  static int tries = 0;
  add_place_kind({.name = "late", .use = "tests", .prefix = "late://", .service = [] {
                    return ++tries < 3 ? Result<std::shared_ptr<ObjectService>>(Status(Code::io, "not yet"))
                                       : std::shared_ptr<ObjectService>(std::make_shared<BucketService>());
                  }});
  const ObjectsAt at = objects_at(memory_target());
  const auto files = with_object_files(memory_target());
  EXPECT_EQ(at("late://a")->make().code(), Code::io);
  EXPECT_EQ(files->exists("late://a/b").status().code(), Code::io);
  EXPECT_TRUE(at("late://a")->make().is_ok());
  EXPECT_TRUE(*files->exists("late://a"));
  EXPECT_EQ(tries, 3);
}

TEST(whole_objects, of_a_service_that_cannot_be_made_say_why_in_every_call) {
  add_place_kind({.name = "lost", .use = "tests", .prefix = "lost://", .service = [] {
                    return Result<std::shared_ptr<ObjectService>>(
                        Status(Code::unsupported, "this build lacks libfar"));
                  }});
  const auto objects = objects_at(memory_target())("lost://a");
  for (const Status& status :
       {objects->make(), objects->exists("k").status(), objects->list("").status(), objects->remove("k"),
        with_object_files(memory_target())->exists("lost://a/b").status()}) {
    EXPECT_EQ(status.code(), Code::unsupported);
    EXPECT_NE(status.text().find("libfar"), std::string::npos) << status.text();
  }
  EXPECT_TRUE(with_object_files(memory_target())->make_directories("d").is_ok());
}

}  // namespace
}  // namespace tailrace::storage
