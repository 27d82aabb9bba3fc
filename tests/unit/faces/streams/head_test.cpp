// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/index/head.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <memory>
#include <thread>
#include <utility>

#include "faces/streams/definition/parse.hpp"
#include "faces/streams/files/file_ledger.hpp"
#include "formats/index/ending.hpp"
#include "formats/index/index.hpp"
#include "formats/registry/registry.hpp"
#include "ground/base/text.hpp"
#include "ground/storage/faulty.hpp"
#include "ground/storage/memory.hpp"
#include "support/crash.hpp"

// Ledgers of a format with a head, beside what the simulated world runs: definitions that change between two
// jobs, and jobs that are killed around files without steps.
namespace tailrace::streams {
namespace {

constexpr const char* file_name = "fc.nc";

/// A job that goes on with the file of another, or begins it.
class Job {
 public:
  Job(std::shared_ptr<storage::Target> target, const std::string& options,
      const std::string& statistic = "instant")
      : target_(std::move(target)) {
    const std::string all = cat("base=2026-03-01 manifest=off ", options);
    opening_.definition = parse_stream(file_name, all)->definition;
    codec::FieldDefinition field;
    field.name = "t";
    field.shape = {2, 3};
    if (statistic != "instant") field.statistic.process = codec::Process::accum;
    codec_ = *formats::make_codec(opening_.definition);
    EXPECT_TRUE(codec_->define(field).is_ok());
    opening_.fields = {field};
    opening_.prepared = {codec_->prepared(0)};
    opening_.ledger = pack_ledger(file_name, all, Uuid::random(), {});
    Result<std::unique_ptr<pipeline::Ledger>> ledger = make_ledger(opening_, *codec_, target_);
    EXPECT_TRUE(ledger.is_ok()) << ledger.status().text();
    ledger_ = std::move(*ledger);
  }

  Result<pipeline::Begun> begin(std::int64_t lead = 0) { return ledger_->begin_file(file_name, lead, 1); }
  /// Writes a step of the field where the file ends, and commits it.
  Status add_step(std::int64_t lead) {
    if (path_.empty()) {
      const Result<pipeline::Begun> begun = begin(lead);
      TR_TRY(begun.status());
      path_ = begun->path;
      end_ = begun->end;
    }
    const std::optional<codec::FixedPlaces> places = codec_->fixed_places();
    const Result<std::unique_ptr<storage::File>> file = target_->open(path_, storage::OpenMode::existing);
    TR_TRY(file.status());
    ByteVector step;
    if (places) {
      step.assign(static_cast<std::size_t>(places->step), std::byte{7});
    } else {
      std::vector<float> values(6, 1.5F);
      TR_TRY(
          codec_->encoder()->encode({0, 0, lead, 0}, reinterpret_cast<std::byte*>(values.data()), 6, step));
    }
    TR_TRY((*file)->write(step, end_));
    TR_TRY((*file)->sync());
    const Bytes at = end_ + (places ? places->places[0][0] : 0);
    const Bytes length = places ? 24 : std::ssize(step);
    const Bytes begin = std::exchange(end_, end_ + std::ssize(step));
    return ledger_->commit({step_++, lead, file_name, begin, end_, {{0, 0, at, length}}});
  }
  Status finish() {
    TR_TRY(ledger_->finish_file(file_name));
    return ledger_->announce(file_name);
  }
  [[nodiscard]] ByteVector head() const { return codec_->head(); }

 private:
  std::shared_ptr<storage::Target> target_;
  pipeline::Opening opening_;
  std::unique_ptr<codec::Codec> codec_;
  std::unique_ptr<pipeline::Ledger> ledger_;
  std::string path_;  // of the file that was begun
  Bytes end_ = 0;
  std::int64_t step_ = 0;
};

ByteVector bytes_of(storage::Target& target, const std::string& path) {
  const auto file = target.open(path, storage::OpenMode::read);
  if (!file.is_ok()) return {};
  ByteVector bytes(static_cast<std::size_t>(*(*file)->size()));
  EXPECT_TRUE((*file)->read(bytes, 0).is_ok());
  return bytes;
}

std::int64_t steps_told(storage::Target& target) {
  return static_cast<std::int64_t>(
      bytes_of(target, file_name).at(11));  // the last byte of a number of 8 bytes at 4
}

TEST(head, of_a_file_without_steps_is_that_of_the_job_that_writes_the_first_one) {
  const auto disk = storage::memory_target();
  ASSERT_TRUE(Job(disk, "attributes=title=short").begin().is_ok());
  Job second(disk, "existing=continue attributes='title=\"a title that makes the head longer\"'");
  const Result<pipeline::Begun> begun = second.begin();
  ASSERT_TRUE(begun.is_ok()) << begun.status().text();
  EXPECT_EQ(begun->end, static_cast<Bytes>(second.head().size()));
  EXPECT_EQ(bytes_of(*disk, file_name), second.head());
  EXPECT_EQ(load_index(*disk, index_path(file_name))->header.data_begin, begun->end);
}

TEST(head, of_a_file_with_steps_stays_and_its_number_of_steps_follows_each_commit) {
  const auto disk = storage::memory_target();
  Job first(disk, "attributes=title=short");
  ASSERT_TRUE(first.add_step(0).is_ok());
  EXPECT_EQ(steps_told(*disk), 1);
  Job second(disk, "existing=continue attributes='title=\"a title that makes the head longer\"'");
  const Status added = Job(disk, "existing=continue attributes=title=other").add_step(3600);
  EXPECT_FALSE(added.is_ok()) << "the first job holds the lock";
  ASSERT_TRUE(first.finish().is_ok());
  ASSERT_TRUE(second.add_step(3600).is_ok());
  EXPECT_EQ(steps_told(*disk), 2);
  ByteVector head = bytes_of(*disk, file_name);
  head.resize(first.head().size());
  head.at(11) = std::byte{0};
  EXPECT_EQ(head, first.head());
}

TEST(head, steps_of_other_variables_are_refused_and_the_file_stays_as_it_is) {
  const auto disk = storage::memory_target();
  Job first(disk, "");
  ASSERT_TRUE(first.add_step(0).is_ok() && first.finish().is_ok());
  const ByteVector data = bytes_of(*disk, file_name), index = bytes_of(*disk, index_path(file_name));
  const Status refused = Job(disk, "existing=continue", "accum").begin(3600).status();
  EXPECT_EQ(refused.code(), Code::state);
  EXPECT_NE(refused.text().find("variables"), std::string::npos) << refused.text();
  EXPECT_EQ(bytes_of(*disk, file_name), data);
  EXPECT_EQ(bytes_of(*disk, index_path(file_name)), index) << "it is still closed";
}

/// A file that is finished can be read, and a stream whose chunks it cannot take must not change that.
TEST(head, a_finished_file_stays_readable_if_steps_with_other_filters_are_refused) {
  if (!formats::check_can_finish("netcdf4").is_ok()) GTEST_SKIP() << "built without HDF5";
  const auto disk = storage::memory_target();
  Job first(disk, "format=netcdf4");
  ASSERT_TRUE(first.add_step(0).is_ok() && first.finish().is_ok());
  const ByteVector data = bytes_of(*disk, file_name), index = bytes_of(*disk, index_path(file_name));
  ASSERT_EQ(static_cast<unsigned char>(data.at(0)), 0x89) << "the signature of HDF5";
  const Status refused = Job(disk, "format=netcdf4 compress=none existing=continue").begin(3600).status();
  EXPECT_EQ(refused.code(), Code::state);
  EXPECT_NE(refused.text().find("filters"), std::string::npos) << refused.text();
  EXPECT_EQ(bytes_of(*disk, file_name), data);
  EXPECT_EQ(bytes_of(*disk, index_path(file_name)), index) << "it is still closed";
  Job second(disk, "format=netcdf4 existing=continue");
  EXPECT_TRUE(second.add_step(3600).is_ok() && second.finish().is_ok());
}

bool has_netcdf4() { return formats::check_can_finish("netcdf4").is_ok(); }

constexpr const char* unfinished_text = "tailrace: NetCDF-4, not finished";

bool is_marked(storage::Target& target) {
  const ByteVector bytes = bytes_of(target, file_name);
  const std::string_view text = unfinished_text;
  return bytes.size() > text.size() &&
         std::equal(text.begin(), text.end(), bytes.begin(),
                    [](char a, std::byte b) { return static_cast<std::byte>(a) == b; });
}

/// Repairs the file as `tailrace repair` does.
Status repair(storage::Target& target, std::optional<std::int64_t> through_lead = {}) {
  const Result<Recovered> kept = recover(target, file_name, {through_lead});
  TR_TRY(kept.status());
  return write_ending(target, file_name, kept->contents);
}

/// Files of jobs that were not disturbed, finished, by number of steps.
const ByteVector& finished_file(std::size_t steps) {
  static std::vector<ByteVector> all(4);
  for (std::size_t n = 1; n < all.size() && all[n].empty(); ++n) {
    const auto disk = storage::memory_target();
    Job job(disk, "format=netcdf4");
    for (std::size_t i = 0; i < n; ++i)
      EXPECT_TRUE(job.add_step(static_cast<std::int64_t>(i) * 3600).is_ok());
    EXPECT_TRUE(job.finish().is_ok());
    all[n] = bytes_of(*disk, file_name);
  }
  return all.at(steps);
}

/// A sync that fails leaves bytes that can be read and never become durable (crash.hpp). The next try must
/// write them again.
TEST(ending, that_was_written_again_after_a_failed_sync_outlives_a_loss_of_power) {
  if (!has_netcdf4()) GTEST_SKIP() << "built without HDF5";
  for (std::int64_t nth = 1;; ++nth) {
    const auto disk = storage::crash_target();
    const auto faulty = storage::faulty_target(disk, {});
    Job job(faulty, "format=netcdf4");
    ASSERT_TRUE(job.add_step(0).is_ok() && job.add_step(3600).is_ok());
    faulty->restart({nth, storage::Fault::io_error, set_of(storage::Call::sync)});
    const Status first = job.finish();
    if (!faulty->fired()) break;
    ASSERT_FALSE(first.is_ok()) << nth;
    disk->fail_write_back(file_name);
    const Status again = job.finish();
    ASSERT_TRUE(again.is_ok()) << nth << ": " << again.text();
    const auto left = disk->crash({}, 1);
    EXPECT_TRUE(load_index(*left, index_path(file_name))->closed) << nth;
    EXPECT_TRUE(bytes_of(*left, file_name) == finished_file(2)) << "sync " << nth;
    ASSERT_LT(nth, 20);
  }
}

TEST(ending, that_was_taken_away_again_after_a_failed_sync_stays_away) {
  if (!has_netcdf4()) GTEST_SKIP() << "built without HDF5";
  for (std::int64_t nth = 1;; ++nth) {
    const auto disk = storage::crash_target();
    const auto faulty = storage::faulty_target(disk, {});
    {
      Job job(faulty, "format=netcdf4");
      ASSERT_TRUE(job.add_step(0).is_ok() && job.finish().is_ok());
    }
    faulty->restart({nth, storage::Fault::io_error, set_of(storage::Call::sync)});
    const Status first = Job(faulty, "format=netcdf4 existing=continue").begin(3600).status();
    if (!faulty->fired()) break;
    disk->fail_write_back(file_name);
    const Result<pipeline::Begun> again = Job(faulty, "format=netcdf4 existing=continue").begin(3600);
    ASSERT_TRUE(again.is_ok()) << nth << ": " << again.status().text();
    const auto left = disk->crash({}, 1);
    EXPECT_TRUE(is_marked(*left)) << "sync " << nth << ", which said " << first.text();
    EXPECT_EQ(std::ssize(bytes_of(*left, file_name)), again->end) << nth;
    ASSERT_LT(nth, 20);
  }
}

TEST(ending, of_another_hdf5_library_is_left_as_it_is_by_repair) {
  if (!has_netcdf4()) GTEST_SKIP() << "built without HDF5";
  const auto disk = storage::memory_target();
  Job job(disk, "format=netcdf4");
  ASSERT_TRUE(job.add_step(0).is_ok() && job.add_step(3600).is_ok() && job.finish().is_ok());
  const ByteVector index = bytes_of(*disk, index_path(file_name));
  const auto faulty =
      storage::faulty_target(disk, {1, storage::Fault::io_error, set_of(storage::Call::write)});
  ASSERT_TRUE(repair(*faulty).is_ok() && repair(*faulty).is_ok());
  EXPECT_FALSE(faulty->fired()) << "nothing is written";
  ByteVector other = bytes_of(*disk, file_name);
  EXPECT_TRUE(other == finished_file(2));
  other.back() ^= std::byte{1};  // in the tail
  const auto put = [&] { return (*disk->open(file_name, storage::OpenMode::existing))->write(other, 0); };
  ASSERT_TRUE(put().is_ok() && repair(*disk).is_ok());
  EXPECT_TRUE(bytes_of(*disk, file_name) == other);
  EXPECT_EQ(bytes_of(*disk, index_path(file_name)), index);
  other.at(44) ^= std::byte{1};  // the checksum of the superblock
  ASSERT_TRUE(put().is_ok() && repair(*disk).is_ok());
  EXPECT_TRUE(bytes_of(*disk, file_name) == finished_file(2)) << "an ending that is damaged is made anew";
}

using Work = std::function<Status(const std::shared_ptr<storage::Target>&)>;

/// Kills the work at each of its storage calls, in every way, and repairs then: the file must be that of a
/// job that was not disturbed, with one of these numbers of steps.
void expect_whole_after_each_kill(const Work& before, const Work& work,
                                  const std::vector<std::size_t>& steps) {
  using Policy = storage::CrashPolicy;
  for (std::int64_t nth = 1;; ++nth) {
    const auto disk = storage::crash_target();
    ASSERT_TRUE(before(disk).is_ok());
    const auto faulty =
        storage::faulty_target(disk, {nth, storage::Fault::stopped, storage::changing_calls, true});
    (void)work(faulty).is_ok();
    if (!faulty->fired()) return;
    const std::vector<std::shared_ptr<storage::Target>> left{
        disk->crash({Policy::Writes::dropped, Policy::Entries::lost}, 1),
        disk->crash({Policy::Writes::torn, Policy::Entries::kept}, static_cast<std::uint64_t>(nth)), disk};
    for (std::size_t i = 0; i < left.size(); ++i) {
      storage::Target& target = *left[i];
      const Status repaired = repair(target);
      ASSERT_TRUE(repaired.is_ok()) << "call " << nth << ", way " << i << ": " << repaired.text();
      const std::size_t there = load_index(target, index_path(file_name))->steps.size();
      EXPECT_EQ(std::ranges::count(steps, there), 1) << "call " << nth << ", way " << i << ": " << there;
      EXPECT_TRUE(bytes_of(target, file_name) == finished_file(there)) << "call " << nth << ", way " << i;
    }
    ASSERT_LT(nth, 100);
  }
}

TEST(ending, is_whole_after_a_kill_at_any_call_and_a_repair) {
  if (!has_netcdf4()) GTEST_SKIP() << "built without HDF5";
  const auto steps = [](const char* options, std::int64_t from, std::int64_t to, bool finish) -> Work {
    return [=](const std::shared_ptr<storage::Target>& target) -> Status {
      Job job(target, options);
      for (std::int64_t i = from; i < to; ++i) TR_TRY(job.add_step(i * 3600));
      return finish ? job.finish() : Status();
    };
  };
  const char *const anew = "format=netcdf4", *const on = "format=netcdf4 existing=continue";
  const Work two = steps(anew, 0, 2, true);
  SCOPED_TRACE("a file is finished");
  expect_whole_after_each_kill(steps(anew, 0, 2, false), steps(on, 2, 3, true), {2, 3});
  SCOPED_TRACE("a finished file goes on");
  expect_whole_after_each_kill(two, steps(on, 2, 3, true), {2, 3});
  SCOPED_TRACE("a file is repaired");
  expect_whole_after_each_kill(steps(anew, 0, 2, false), [](const auto& target) { return repair(*target); },
                               {2});
  SCOPED_TRACE("a finished file is cut");
  expect_whole_after_each_kill(two, [](const auto& target) { return repair(*target, 0); }, {1, 2});
}

TEST(head, of_a_file_that_a_killed_job_was_removing_is_nobodys) {
  for (std::int64_t nth = 1;; ++nth) {
    const auto disk = storage::memory_target();
    const auto faulty = storage::faulty_target(disk, {});
    {
      Job first(faulty, "");
      ASSERT_TRUE(first.begin().is_ok());
      faulty->restart({nth, storage::Fault::stopped, storage::changing_calls, true});
      (void)first.finish().is_ok();
    }
    const Result<pipeline::Begun> begun = Job(disk, "").begin();
    EXPECT_TRUE(begun.is_ok()) << "killed at call " << nth << ": " << begun.status().text();
    if (!faulty->fired()) return;
    ASSERT_LT(nth, 30);
  }
}

/// A disk without space, each look at which takes a second: a file server that hardly answers.
class SlowFullDisk final : public storage::MemoryTarget {
 public:
  SlowFullDisk() : MemoryTarget(false) {}
  Result<storage::Space> space(const std::string&) override {
    ++looks;
    std::this_thread::sleep_for(std::chrono::seconds(1));
    return storage::Space{0, 1};
  }
  int looks = 0;
};

TEST(waiting_for_space, ends_at_its_time_however_long_each_look_at_the_disk_takes) {
  const auto disk = std::make_shared<SlowFullDisk>();
  Job job(disk, "format=raw on_full=wait:1s");
  EXPECT_EQ(job.begin().status().code(), Code::space);
  EXPECT_EQ(disk->looks, 1);
}

TEST(waiting_for_space, may_last_for_more_years_than_nanoseconds_can_count) {
  const pipeline::Policy policy{std::numeric_limits<std::int64_t>::max(), 0};
  EXPECT_GT(policy.patience_for_space(std::chrono::seconds(1)).limit, std::chrono::hours(99 * 365 * 24));
}

}  // namespace
}  // namespace tailrace::streams
