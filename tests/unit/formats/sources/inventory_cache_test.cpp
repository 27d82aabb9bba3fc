// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/sources/inventory_cache.hpp"
#include "formats/opening/open.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "../../ground/storage/scratch.hpp"
#include "ground/base/text.hpp"
#include "ground/storage/faulty.hpp"
#include "messages.hpp"
#include "samples.hpp"

namespace tailrace::sources {
namespace {

using test::message;
using test::same_inventory;
using test::small_points;
using test::wave;
using test::with;

/// After this time a change of a file shows in its identity.
void settle() { std::this_thread::sleep_for(std::chrono::milliseconds(60)); }

ByteVector file_with(const std::string& name, double level) {
  return message(2, with({{"shortName", name}, {"typeOfLevel", "isobaricInhPa"}, {"level", cat(level)}}),
                 wave(small_points));
}

class kept : public ::testing::Test {
 protected:
  void put(const ByteVector& bytes) {
    const auto file = target_->open(path_, storage::OpenMode::create);
    ASSERT_TRUE(file.is_ok() && (*file)->write(bytes, 0).is_ok() && (*file)->close().is_ok());
  }
  Inventory opened() {
    const auto source = open(faulty_, path_, cache_);
    EXPECT_TRUE(source.is_ok()) << source.status().text();
    return source.is_ok() ? (*source)->inventory() : Inventory();
  }
  /// Returns how many bytes were read from storage, in calls.
  std::int64_t reads_of_open() {
    faulty_->restart({.nth = 0, .calls = set_of(storage::Call::read)});
    opened();
    return faulty_->calls();
  }
  std::vector<std::string> files_in_cache() {
    const auto names = target_->list(cache_);
    return names.is_ok() ? *names : std::vector<std::string>();
  }

  storage::ScratchDirectory scratch_;
  const std::shared_ptr<storage::Target> target_ = storage::posix_target();
  const std::shared_ptr<storage::FaultyTarget> faulty_ = storage::faulty_target(target_, {});
  const std::string path_ = scratch_ / "a.grib", cache_ = scratch_ / "cache/tailrace";
};

TEST_F(kept, inventories_are_found_again_and_fit_only_the_file_that_they_were_made_of) {
  ByteVector messages;
  for (int level = 1; level <= 40; ++level) {
    const ByteVector one = file_with("t", level);
    messages.insert(messages.end(), one.begin(), one.end());
  }
  put(messages);
  settle();
  const std::int64_t first = reads_of_open();
  ASSERT_EQ(files_in_cache().size(), 1U);
  EXPECT_LT(reads_of_open(), first);
  const Inventory known = opened();
  ASSERT_EQ(known.records.size(), 40U);
  EXPECT_TRUE(same_inventory(known, (*open(target_, path_, ""))->inventory()));
  // Another level in the same number of bytes.
  put(file_with("t", 500));
  EXPECT_EQ(opened().records.at(0).level, 500);
  settle();
  EXPECT_EQ(opened().records.at(0).level, 500);
  put(file_with("t", 250));
  EXPECT_EQ(opened().records.at(0).level, 250);
  EXPECT_EQ(files_in_cache().size(), 1U);
}

TEST_F(kept, nothing_of_a_file_that_has_just_changed_or_changes_meanwhile) {
  put(file_with("t", 500));
  settle();
  Result<Opening> opening = look_at(target_, path_);
  opening->is_settled = false;
  EXPECT_EQ(keep_in(cache_, **front_end_of(*opening), *opening, test::sample_inventory()).code(),
            Code::state);
  opening->is_settled = true;
  put(file_with("t", 250));
  settle();
  EXPECT_EQ(keep_in(cache_, **front_end_of(*opening), *opening, test::sample_inventory()).code(),
            Code::state);
  EXPECT_TRUE(files_in_cache().empty());
}

TEST_F(kept, damage_is_built_anew_and_is_no_error) {
  put(file_with("t", 500));
  settle();
  opened();
  const std::string place = *place_in(cache_, path_);
  const std::string whole = storage::contents_of(*target_, place);
  for (std::string damaged : {std::string(), whole.substr(0, 40), whole + "x", std::string(300, 'x')}) {
    ASSERT_TRUE(storage::put_file(*target_, place, damaged).is_ok());
    EXPECT_EQ(opened().records.at(0).level, 500);
    EXPECT_EQ(storage::contents_of(*target_, place), whole);
  }
  std::filesystem::remove(place);
  std::filesystem::create_directory(place);
  EXPECT_EQ(opened().records.at(0).level, 500);
}

TEST_F(kept, an_inventory_beside_the_file_is_used_and_none_is_put_there) {
  put(file_with("t", 500));
  settle();
  const Result<Opening> opening = look_at(target_, path_);
  const Result<Inventory> inventory = (*front_end_of(*opening))->scan(*opening);
  ASSERT_TRUE(keep(**front_end_of(*opening), *opening, *inventory, beside(path_)).is_ok());
  opened();
  EXPECT_TRUE(files_in_cache().empty());
  std::filesystem::remove(beside(path_));
  opened();
  EXPECT_EQ(files_in_cache().size(), 1U);
  EXPECT_FALSE(std::filesystem::exists(beside(path_)));
}

TEST_F(kept, names_of_another_ecCodes_are_built_anew) {
  put(file_with("t", 500));
  settle();
  const Result<Opening> opening = look_at(target_, path_);
  const FrontEnd* const front_end = *front_end_of(*opening);
  EXPECT_FALSE(front_end->maker().empty());
  FrontEnd other = *front_end;
  other.maker = [] { return std::string("ecCodes 1.0.0"); };
  ASSERT_TRUE(keep_in(cache_, other, *opening, test::sample_inventory()).is_ok());
  EXPECT_TRUE(kept_inventory(other, *opening, cache_).has_value());
  EXPECT_FALSE(kept_inventory(*front_end, *opening, cache_).has_value());
  EXPECT_EQ(opened().records.size(), 1U);
  EXPECT_TRUE(kept_inventory(*front_end, *opening, cache_).has_value());
}

// The test holds both ends of the pipe: an open that waits for the other end would not return.
TEST_F(kept, a_pipe_is_no_file_and_nothing_waits_for_it) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  const int ends = ::open(path_.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(ends, 0);
  const auto source = open(target_, path_, "");
  ::close(ends);
  EXPECT_EQ(source.status().code(), Code::io);
  EXPECT_NE(source.status().text().find(cat(path_, ": expected a file or a directory")), std::string::npos)
      << source.status().text();
}

TEST_F(kept, no_failure_of_the_cache_is_an_error) {
  put(file_with("t", 500));
  settle();
  using storage::Call;
  const storage::CallSet changing = storage::changing_calls & ~set_of(Call::open, Call::close);
  for (std::int64_t nth = 1;; ++nth) {
    std::filesystem::remove_all(scratch_ / "cache");
    faulty_->restart({.nth = nth, .calls = changing});
    EXPECT_EQ(opened().records.at(0).level, 500);
    if (!faulty_->fired()) break;
    for (const std::string& name : files_in_cache()) EXPECT_TRUE(name.ends_with(".inventory")) << name;
  }
  EXPECT_EQ(files_in_cache().size(), 1U);
}

TEST_F(kept, a_failure_to_read_the_file_is_the_error_of_open) {
  put(file_with("t", 500));
  settle();
  std::int64_t failed = 0;
  for (std::int64_t nth = 1;; ++nth) {
    faulty_->restart({.nth = nth, .calls = storage::all_calls});
    const auto source = open(faulty_, path_, "");
    if (!faulty_->fired()) {
      EXPECT_TRUE(source.is_ok());
      break;
    }
    if (source.is_ok()) continue;  // the inventory beside the file is not needed
    ++failed;
    EXPECT_EQ(source.status().code(), Code::io) << source.status().text();
    EXPECT_NE(source.status().text().find("a.grib"), std::string::npos) << source.status().text();
  }
  EXPECT_GE(failed, 4);
}

TEST_F(kept, a_file_is_settled_some_time_after_its_last_change) {
  storage::Identity identity{
      .changed = std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count() +
                 3'600'000'000'000};
  EXPECT_FALSE(storage::shows_changes(identity));
  identity.changed -= 7'200'000'000'000;
  EXPECT_TRUE(storage::shows_changes(identity));
  put(file_with("t", 500));
  settle();
  EXPECT_TRUE(look_at(target_, path_)->is_settled);
}

TEST_F(kept, the_oldest_go_when_there_are_too_many) {
  std::filesystem::create_directories(cache_);
  const auto old = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  for (std::size_t i = 0; i < most_kept; ++i) {
    const std::string name = cat(cache_, "/", i, i % 10 == 0 ? ".inventory.tmp-1" : ".inventory");
    ASSERT_TRUE(target_->open(name, storage::OpenMode::create).is_ok());
    std::filesystem::last_write_time(name, old + std::chrono::seconds(i));
  }
  ASSERT_TRUE(target_->open(cache_ + "/other", storage::OpenMode::create).is_ok());
  put(file_with("t", 500));
  settle();
  opened();
  const std::vector<std::string> left = files_in_cache();
  EXPECT_EQ(left.size(), most_kept - most_kept / 10 + 1);
  EXPECT_TRUE(std::filesystem::exists(cache_ + "/other"));
  EXPECT_TRUE(std::filesystem::exists(*place_in(cache_, path_)));
  EXPECT_FALSE(std::filesystem::exists(cache_ + "/0.inventory.tmp-1"));
  EXPECT_FALSE(std::filesystem::exists(cache_ + "/1.inventory"));
  EXPECT_TRUE(std::filesystem::exists(cat(cache_, "/", most_kept - 1, ".inventory")));
}

TEST(cache_directory, follows_the_setting_and_the_environment) {
  EXPECT_EQ(cache_directory("none"), "");
  EXPECT_EQ(cache_directory("/a/b"), "/a/b");
  const char* const home = std::getenv("HOME");
  const std::string before = home == nullptr ? "" : home;
  ::setenv("HOME", "/home/me", 1);
  ::unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(cache_directory("auto"), "/home/me/.cache/tailrace");
  ::setenv("XDG_CACHE_HOME", "/fast", 1);
  EXPECT_EQ(cache_directory("auto"), "/fast/tailrace");
  ::setenv("XDG_CACHE_HOME", "relative", 1);
  EXPECT_EQ(cache_directory("auto"), "/home/me/.cache/tailrace");
  ::unsetenv("XDG_CACHE_HOME");
  ::unsetenv("HOME");
  EXPECT_EQ(cache_directory("auto"), "");
  ::setenv("HOME", before.c_str(), 1);
}

}  // namespace
}  // namespace tailrace::sources
