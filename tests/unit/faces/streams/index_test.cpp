// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/index/index.hpp"

#include <gtest/gtest.h>

#include "ground/storage/faulty.hpp"
#include "index_samples.hpp"
#include "support/crash.hpp"

namespace tailrace::streams {
namespace {

using storage::CrashPolicy;
using storage::CrashTarget;
using storage::FaultPlan;
using storage::Target;

const std::string kData = "out/fc.grib2";
const std::string kIndex = index_path(kData);

class IndexFile : public ::testing::Test {
 protected:
  IndexFile() { EXPECT_TRUE(target_->make_directories("out").is_ok()); }

  // Makes data and index with `steps` committed steps, and `loose` bytes of data behind them.
  void make(int steps, Bytes loose = 0, bool closed = false) {
    Result<IndexWriter> writer = IndexWriter::create(*target_, kIndex, sample_header());
    ASSERT_TRUE(writer.is_ok()) << writer.status().text();
    put_bytes(*target_, kData,
              ByteVector(static_cast<std::size_t>(steps * kSampleStepBytes + loose), std::byte{7}));
    for (const IndexStep& step : sample_steps(steps)) ASSERT_TRUE(writer->append(step).is_ok());
    if (closed) ASSERT_TRUE(writer->append_closed().is_ok());
    ASSERT_TRUE(writer->sync().is_ok());
    ASSERT_TRUE(writer->close().is_ok());
  }
  std::size_t steps_in_file() {
    const Result<IndexContents> contents = load_index(*target_, kIndex);
    EXPECT_TRUE(contents.is_ok()) << contents.status().text();
    return contents.is_ok() ? contents->steps.size() : 999;
  }
  void add_to_index(std::string_view text) {
    ByteVector bytes = get_bytes(*target_, kIndex);
    for (const char c : text) bytes.push_back(static_cast<std::byte>(c));
    put_bytes(*target_, kIndex, bytes);
  }
  void harm_index(Bytes at) {
    ByteVector bytes = get_bytes(*target_, kIndex);
    bytes[static_cast<std::size_t>(at)] ^= std::byte{1};
    put_bytes(*target_, kIndex, bytes);
  }

  std::shared_ptr<Target> target_ = storage::memory_target();
};

TEST_F(IndexFile, what_is_appended_is_read) {
  make(3);
  const Result<IndexContents> contents = load_index(*target_, kIndex);
  ASSERT_TRUE(contents.is_ok());
  EXPECT_EQ(contents->header, sample_header());
  EXPECT_EQ(contents->steps, sample_steps(3));
  EXPECT_FALSE(contents->closed);
}

TEST_F(IndexFile, the_writer_knows_where_it_stands) {
  Result<IndexWriter> writer = IndexWriter::create(*target_, kIndex, sample_header());
  ASSERT_TRUE(writer.is_ok());
  EXPECT_EQ(writer->last(), nullptr);
  EXPECT_EQ(writer->data_end(), 0);
  ASSERT_TRUE(writer->append(sample_step(0, 0)).is_ok());
  ASSERT_NE(writer->last(), nullptr);
  EXPECT_EQ(writer->last()->step, 0);
  EXPECT_EQ(writer->data_end(), kSampleStepBytes);
  EXPECT_EQ(writer->steps(), 1);
}

TEST_F(IndexFile, a_step_that_cannot_follow_is_refused_and_changes_nothing) {
  make(2);
  Result<IndexWriter> writer = IndexWriter::open_existing(*target_, kIndex);
  ASSERT_TRUE(writer.is_ok());
  const ByteVector before = get_bytes(*target_, kIndex);
  const Status status = writer->append(sample_step(1, 2 * kSampleStepBytes));
  EXPECT_EQ(status.code(), Code::argument);
  EXPECT_TRUE(mentions(status.text(), kIndex)) << status.text();
  EXPECT_EQ(get_bytes(*target_, kIndex), before);
  EXPECT_TRUE(writer->append(sample_step(2, 2 * kSampleStepBytes)).is_ok());
  EXPECT_EQ(steps_in_file(), 3U);
}

TEST_F(IndexFile, opening_continues_the_chain) {
  make(2);
  for (int step = 2; step < 6; ++step) {
    Result<IndexWriter> writer = IndexWriter::open_existing(*target_, kIndex);
    ASSERT_TRUE(writer.is_ok()) << writer.status().text();
    EXPECT_EQ(writer->steps(), step);
    ASSERT_TRUE(writer->append(sample_step(step, step * kSampleStepBytes)).is_ok());
  }
  EXPECT_EQ(load_index(*target_, kIndex)->steps, sample_steps(6));
}

TEST_F(IndexFile, the_bytes_do_not_tell_how_often_it_was_opened) {
  make(6);
  const ByteVector whole = get_bytes(*target_, kIndex);
  make(3, 0, true);
  Result<IndexWriter> writer = IndexWriter::open_existing(*target_, kIndex);
  for (int step = 3; step < 6; ++step)
    ASSERT_TRUE(writer->append(sample_step(step, step * kSampleStepBytes)).is_ok());
  EXPECT_EQ(get_bytes(*target_, kIndex), whole);
}

TEST_F(IndexFile, closing_is_seen_once_and_nothing_follows_it) {
  Result<IndexWriter> writer = IndexWriter::create(*target_, kIndex, sample_header());
  ASSERT_TRUE(writer->append(sample_step(0, 0)).is_ok());
  ASSERT_TRUE(writer->append_closed().is_ok());
  ASSERT_TRUE(writer->append_closed().is_ok());
  EXPECT_EQ(writer->append(sample_step(1, kSampleStepBytes)).code(), Code::state);
  const Result<IndexContents> contents = load_index(*target_, kIndex);
  EXPECT_TRUE(contents->closed);
  EXPECT_EQ(contents->tail, IndexTail::none);
  EXPECT_EQ(contents->steps.size(), 1U);
}

TEST_F(IndexFile, opening_cuts_a_torn_tail) {
  make(2);
  const ByteVector whole = get_bytes(*target_, kIndex);
  add_to_index("STEP, but not to the end");
  ASSERT_TRUE(IndexWriter::open_existing(*target_, kIndex).is_ok());
  EXPECT_EQ(get_bytes(*target_, kIndex), whole);
}

TEST_F(IndexFile, opening_refuses_damage_unless_forced) {
  make(4);
  harm_index(load_index(*target_, kIndex)->marks[1].position + 40);
  const ByteVector harmed = get_bytes(*target_, kIndex);
  const Status status = IndexWriter::open_existing(*target_, kIndex).status();
  EXPECT_EQ(status.code(), Code::corrupt);
  EXPECT_TRUE(mentions(status.text(), "1 whole steps")) << status.text();
  EXPECT_TRUE(mentions(status.text(), "repair --force")) << status.text();
  EXPECT_EQ(get_bytes(*target_, kIndex), harmed);
  EXPECT_EQ(recover(*target_, kData).status().code(), Code::corrupt);
  EXPECT_EQ(get_bytes(*target_, kIndex), harmed);
  EXPECT_EQ(recover(*target_, kData, {{}, true})->contents.steps, sample_steps(1));
}

TEST_F(IndexFile, a_stale_writer_is_stopped_by_a_newer_run) {
  Result<IndexWriter> stale = IndexWriter::create(*target_, kIndex, sample_header());
  ASSERT_TRUE(stale->append(sample_step(0, 0)).is_ok());
  IndexHeader newer = sample_header();
  newer.run = Uuid::random();
  Result<IndexWriter> now = IndexWriter::create(*target_, kIndex, newer);
  ASSERT_TRUE(now.is_ok());
  const Status status = stale->append(sample_step(1, kSampleStepBytes));
  EXPECT_EQ(status.code(), Code::state);
  EXPECT_TRUE(mentions(status.text(), newer.run.text())) << status.text();
  EXPECT_TRUE(now->append(sample_step(0, 0)).is_ok());
  EXPECT_EQ(steps_in_file(), 1U);
  // It stays stopped, whatever the file is later.
  EXPECT_EQ(stale->lost().code(), Code::state);
  ASSERT_TRUE(IndexWriter::create(*target_, kIndex, sample_header()).is_ok());
  EXPECT_EQ(stale->check_owner().code(), Code::state);
  EXPECT_EQ(stale->append_closed().code(), Code::state);
}

TEST_F(IndexFile, two_writers_of_one_run_are_told_apart_by_what_they_wrote) {
  make(1);
  Result<IndexWriter> first = IndexWriter::open_existing(*target_, kIndex);
  Result<IndexWriter> second = IndexWriter::open_existing(*target_, kIndex);
  ASSERT_TRUE(first->append(sample_step(1, kSampleStepBytes)).is_ok());
  const Status status = second->append(sample_step(1, kSampleStepBytes));
  EXPECT_EQ(status.code(), Code::state);
  EXPECT_TRUE(mentions(status.text(), "another job")) << status.text();
}

TEST_F(IndexFile, a_missing_index_and_a_foreign_file_are_clear_errors) {
  EXPECT_EQ(load_index(*target_, kIndex).status().code(), Code::io);
  EXPECT_EQ(IndexWriter::open_existing(*target_, kIndex).status().code(), Code::io);
  put_bytes(*target_, kIndex,
            std::as_bytes(std::span(std::string_view("something that a user wrote, 40 bytes.."))));
  EXPECT_EQ(load_index(*target_, kIndex).status().code(), Code::corrupt);
  EXPECT_TRUE(mentions(load_index(*target_, kIndex).status().text(), kIndex));
  EXPECT_EQ(recover(*target_, kData).status().code(), Code::corrupt);
}

TEST_F(IndexFile, recovery_cuts_data_and_index_to_the_last_step) {
  make(3, 1000);
  add_to_index("STEP unfinished");
  const Result<Recovered> recovered = recover(*target_, kData);
  ASSERT_TRUE(recovered.is_ok()) << recovered.status().text();
  EXPECT_EQ(recovered->contents.steps, sample_steps(3));
  EXPECT_EQ(recovered->steps_cut, 0U);
  EXPECT_EQ(recovered->data_bytes_cut, 1000);
  EXPECT_EQ(recovered->index_bytes_cut, 15);
  EXPECT_EQ(size_of_file(*target_, kData), 3 * kSampleStepBytes);
  const Result<Recovered> again = recover(*target_, kData);
  EXPECT_EQ(again->data_bytes_cut, 0);
  EXPECT_EQ(again->index_bytes_cut, 0);
}

TEST_F(IndexFile, recovery_goes_back_to_the_lead_of_a_restart) {
  make(4, 5, true);
  const Result<Recovered> recovered = recover(*target_, kData, {.through_lead = 10800 + 1});
  ASSERT_TRUE(recovered.is_ok()) << recovered.status().text();
  EXPECT_EQ(recovered->contents.steps, sample_steps(2));
  EXPECT_FALSE(recovered->contents.closed);
  EXPECT_EQ(recovered->steps_cut, 2U);
  EXPECT_EQ(size_of_file(*target_, kData), 2 * kSampleStepBytes);
  EXPECT_EQ(load_index(*target_, kIndex)->steps, sample_steps(2));
  EXPECT_TRUE(recover(*target_, kData, {.through_lead = -1})->contents.steps.empty());
  EXPECT_EQ(size_of_file(*target_, kData), 0);
}

TEST_F(IndexFile, recovery_never_gives_up_committed_steps_unasked) {
  make(3);
  put_bytes(*target_, kData, ByteVector(static_cast<std::size_t>(2 * kSampleStepBytes + 1)));
  const ByteVector before = get_bytes(*target_, kIndex);
  const Status status = recover(*target_, kData).status();
  EXPECT_EQ(status.code(), Code::corrupt);
  EXPECT_TRUE(mentions(status.text(), "2 of 3 steps are whole")) << status.text();
  EXPECT_EQ(get_bytes(*target_, kIndex), before);
  const Result<Recovered> forced = recover(*target_, kData, {{}, true});
  ASSERT_TRUE(forced.is_ok());
  EXPECT_EQ(forced->contents.steps, sample_steps(2));
  EXPECT_EQ(forced->steps_cut, 1U);
  EXPECT_EQ(size_of_file(*target_, kData), 2 * kSampleStepBytes);
}

TEST_F(IndexFile, recovery_without_the_data_file_is_fine_only_if_nothing_was_committed) {
  make(0);
  ASSERT_TRUE(target_->remove(kData).is_ok());
  EXPECT_TRUE(recover(*target_, kData).is_ok());
  make(1);
  ASSERT_TRUE(target_->remove(kData).is_ok());
  EXPECT_EQ(recover(*target_, kData).status().code(), Code::corrupt);
}

TEST_F(IndexFile, removing_it_takes_everything_in_it_back) {
  EXPECT_TRUE(remove_index(*target_, kData).is_ok());
  make(2);
  EXPECT_TRUE(remove_index(*target_, kData).is_ok());
  EXPECT_FALSE(*target_->exists(kIndex));
}

const std::string kOldIndex = old_index_path(kData);
constexpr std::string_view kInventory = "1:0:d=2026030100:TMP:2 m above ground:6 hour fcst:\n";

TEST_F(IndexFile, an_index_under_its_old_name_is_found_and_given_todays_by_whoever_writes) {
  EXPECT_EQ(kIndex, "out/fc.grib2.trx");
  EXPECT_EQ(*find_index(*target_, kData), kIndex);
  make(3, 1000);
  ASSERT_TRUE(target_->rename(kIndex, kOldIndex).is_ok());
  ASSERT_EQ(*find_index(*target_, kData), kOldIndex);
  EXPECT_EQ(load_index(*target_, kOldIndex)->steps, sample_steps(3));
  const Result<Recovered> recovered = recover(*target_, kData);
  ASSERT_TRUE(recovered.is_ok()) << recovered.status().text();
  EXPECT_EQ(recovered->contents.steps, sample_steps(3));
  EXPECT_EQ(*find_index(*target_, kData), kIndex);
  EXPECT_FALSE(*target_->exists(kOldIndex));
}

TEST_F(IndexFile, what_others_keep_under_the_old_name_is_never_touched) {
  for (const std::string_view other : {kInventory, std::string_view("TRLINDE"), std::string_view()}) {
    put_bytes(*target_, kOldIndex, std::as_bytes(std::span(other)));
    const ByteVector before = get_bytes(*target_, kOldIndex);
    EXPECT_EQ(*find_index(*target_, kData), kIndex);
    EXPECT_TRUE(rename_old_index(*target_, kData).is_ok());
    EXPECT_FALSE(*target_->exists(kIndex));
    make(2, 5);
    EXPECT_EQ(*find_index(*target_, kData), kIndex);
    EXPECT_TRUE(recover(*target_, kData).is_ok());
    EXPECT_TRUE(remove_index(*target_, kData).is_ok());
    EXPECT_EQ(get_bytes(*target_, kOldIndex), before);
  }
}

TEST_F(IndexFile, a_directory_under_the_old_name_keeps_nobody_from_the_index) {
  ASSERT_TRUE(target_->make_directories(kOldIndex).is_ok());
  make(2);
  EXPECT_EQ(*find_index(*target_, kData), kIndex);
}

TEST_F(IndexFile, two_indexes_of_one_file_are_refused_and_stay) {
  make(2);
  const ByteVector bytes = get_bytes(*target_, kIndex);
  put_bytes(*target_, kOldIndex, bytes);
  for (const Status& status : {find_index(*target_, kData).status(), rename_old_index(*target_, kData),
                               recover(*target_, kData).status()}) {
    EXPECT_EQ(status.code(), Code::state);
    EXPECT_TRUE(mentions(status.text(), kIndex) && mentions(status.text(), kOldIndex)) << status.text();
  }
  EXPECT_EQ(get_bytes(*target_, kIndex), bytes);
  EXPECT_EQ(get_bytes(*target_, kOldIndex), bytes);
}

// Creates, appends and syncs three steps. Returns the number of steps whose sync succeeded.
struct Written {
  Status status;
  int durable = 0;
};

Written write_three_steps(Target& target) {
  Written run;
  const auto body = [&]() -> Status {
    Result<IndexWriter> writer = IndexWriter::create(target, kIndex, sample_header());
    TR_TRY(writer.status());
    for (int step = 0; step < 3; ++step) {
      TR_TRY(writer->append(sample_step(step, step * kSampleStepBytes)));
      TR_TRY(writer->sync());
      run.durable = step + 1;
    }
    return writer->close();
  };
  run.status = body();
  return run;
}

TEST_F(IndexFile, a_failed_call_leaves_whole_steps_only) {
  for (const storage::Fault fault :
       {storage::Fault::io_error, storage::Fault::no_space, storage::Fault::short_write}) {
    for (std::int64_t n = 1;; ++n) {
      auto below = storage::memory_target();
      ASSERT_TRUE(below->make_directories("out").is_ok());
      const auto faulty = storage::faulty_target(below, FaultPlan{n, fault, storage::all_calls, false});
      const Written run = write_three_steps(*faulty);
      const bool hidden = fault == storage::Fault::short_write;
      ASSERT_EQ(run.status.is_ok(), hidden || !faulty->fired()) << n << ": " << run.status.text();
      if (*below->exists(kIndex)) {
        const Result<IndexContents> contents = load_index(*below, kIndex);
        ASSERT_TRUE(contents.is_ok()) << n << ": " << contents.status().text();
        ASSERT_GE(static_cast<int>(contents->steps.size()), run.durable) << n;
        for (std::size_t i = 0; i < contents->steps.size(); ++i)
          ASSERT_EQ(contents->steps[i], sample_steps(3)[i]);
        ASSERT_NE(contents->tail, IndexTail::damaged);
      } else {
        ASSERT_EQ(run.durable, 0);
      }
      if (!faulty->fired()) break;
    }
  }
}

TEST_F(IndexFile, after_a_failed_append_the_step_can_be_appended_again) {
  for (const bool truncation_fails : {false, true}) {
    const auto faulty = storage::faulty_target(target_, FaultPlan{});
    Result<IndexWriter> writer = IndexWriter::create(*faulty, kIndex, sample_header());
    ASSERT_TRUE(writer.is_ok());
    IndexStep large = sample_step(0, 0);
    for (int i = 0; i < 100; ++i) large.records.push_back(large.records[0]);
    faulty->restart(FaultPlan{1, storage::Fault::no_space,
                              storage::set_of(storage::Call::write, storage::Call::truncate),
                              truncation_fails});
    EXPECT_EQ(writer->append(large).code(), Code::space);
    faulty->restart(FaultPlan{});
    EXPECT_EQ(writer->steps(), 0);
    ASSERT_TRUE(writer->append(sample_step(0, 0)).is_ok());
    ASSERT_TRUE(writer->append(sample_step(1, kSampleStepBytes)).is_ok());
    const Result<IndexContents> contents = load_index(*target_, kIndex);
    EXPECT_EQ(contents->steps, sample_steps(2));
    EXPECT_EQ(contents->tail, IndexTail::none);
  }
}

TEST_F(IndexFile, recovery_that_fails_at_any_call_can_be_repeated) {
  for (std::int64_t n = 1;; ++n) {
    make(3, 100);
    add_to_index("STEP unfinished");
    const auto faulty =
        storage::faulty_target(target_, FaultPlan{n, storage::Fault::io_error, storage::all_calls, false});
    const bool recovered = recover(*faulty, kData).is_ok();
    ASSERT_EQ(recovered, !faulty->fired()) << n;
    ASSERT_TRUE(recover(*target_, kData).is_ok()) << n;
    ASSERT_EQ(steps_in_file(), 3U);
    ASSERT_EQ(size_of_file(*target_, kData), 3 * kSampleStepBytes);
    if (recovered) break;
  }
}

// The data is synced before its index record, as the stream does it.
Written write_like_a_stream(Target& target) {
  Written run;
  const auto body = [&]() -> Status {
    TR_TRY(target.make_directories("out"));
    Result<std::unique_ptr<storage::File>> data = target.open(kData, storage::OpenMode::create);
    TR_TRY(data.status());
    TR_TRY(target.sync_directory_of(kData));
    Result<IndexWriter> writer = IndexWriter::create(target, kIndex, sample_header());
    TR_TRY(writer.status());
    for (int step = 0; step < 4; ++step) {
      TR_TRY((*data)->write(ByteVector(kSampleStepBytes, static_cast<std::byte>('A' + step)),
                            step * kSampleStepBytes));
      TR_TRY((*data)->sync());
      TR_TRY(writer->append(sample_step(step, step * kSampleStepBytes)));
      TR_TRY(writer->sync());
      run.durable = step + 1;
    }
    return {};
  };
  run.status = body();
  return run;
}

TEST_F(IndexFile, power_lost_at_any_call_keeps_every_durable_step_whole) {
  using Writes = CrashPolicy::Writes;
  using Entries = CrashPolicy::Entries;
  for (std::int64_t n = 1;; ++n) {
    const auto disk = std::make_shared<CrashTarget>();
    const auto faulty =
        storage::faulty_target(disk, FaultPlan{n, storage::Fault::io_error, storage::changing_calls, true});
    const Written run = write_like_a_stream(*faulty);
    for (const Writes writes : {Writes::dropped, Writes::kept, Writes::torn, Writes::garbage}) {
      for (const Entries entries : {Entries::lost, Entries::kept, Entries::some}) {
        for (std::uint64_t seed = 0; seed < 10; ++seed) {
          const auto after = disk->crash(CrashPolicy{writes, entries}, seed);
          if (!*after->exists(kIndex)) {
            ASSERT_EQ(run.durable, 0) << n;
            continue;
          }
          const Result<Recovered> recovered = recover(*after, kData);
          ASSERT_TRUE(recovered.is_ok()) << n << ": " << recovered.status().text();
          const std::size_t steps = recovered->contents.steps.size();
          ASSERT_GE(static_cast<int>(steps), run.durable) << n;
          const ByteVector data = get_bytes(*after, kData);
          ASSERT_EQ(data.size(), steps * kSampleStepBytes);
          for (std::size_t i = 0; i < data.size(); ++i) {
            ASSERT_EQ(data[i], static_cast<std::byte>('A' + i / kSampleStepBytes));
          }
        }
      }
    }
    if (!faulty->fired()) break;
  }
}

}  // namespace
}  // namespace tailrace::streams
