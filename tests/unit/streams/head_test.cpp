// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "streams/head.hpp"

#include <gtest/gtest.h>

#include <memory>

#include "base/text.hpp"
#include "formats/registry.hpp"
#include "storage/faulty.hpp"
#include "streams/index.hpp"
#include "streams/ledger.hpp"
#include "streams/parse.hpp"

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
    const Result<pipeline::Begun> begun = begin(lead);
    TR_TRY(begun.status());
    const std::optional<codec::FixedPlaces> places = codec_->fixed_places();
    const Result<std::unique_ptr<storage::File>> file =
        target_->open(begun->path, storage::OpenMode::existing);
    TR_TRY(file.status());
    ByteVector step;
    if (places) {
      step.assign(static_cast<std::size_t>(places->step), std::byte{7});
    } else {
      std::vector<float> values(6, 1.5F);
      TR_TRY(
          codec_->encoder()->encode({0, 0, lead, 0}, reinterpret_cast<std::byte*>(values.data()), 6, step));
    }
    TR_TRY((*file)->write(step, begun->end));
    TR_TRY((*file)->sync());
    const Bytes at = begun->end + (places ? places->places[0][0] : 0);
    const Bytes length = places ? 24 : std::ssize(step);
    return ledger_->commit(
        {0, lead, file_name, begun->end, begun->end + std::ssize(step), {{0, 0, at, length}}});
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
  if (formats::finishing("netcdf4") == nullptr) GTEST_SKIP() << "built without HDF5";
  const auto disk = storage::memory_target();
  Job first(disk, "format=netcdf4");
  ASSERT_TRUE(first.add_step(0).is_ok() && first.finish().is_ok());
  const ByteVector data = bytes_of(*disk, file_name), index = bytes_of(*disk, index_path(file_name));
  ASSERT_EQ(static_cast<unsigned char>(data.at(0)), 0x89) << "the signature of HDF5";
  const Status refused = Job(disk, "format=netcdf4 deflate=0 existing=continue").begin(3600).status();
  EXPECT_EQ(refused.code(), Code::state);
  EXPECT_NE(refused.text().find("filters"), std::string::npos) << refused.text();
  EXPECT_EQ(bytes_of(*disk, file_name), data);
  EXPECT_EQ(bytes_of(*disk, index_path(file_name)), index) << "it is still closed";
  Job second(disk, "format=netcdf4 existing=continue");
  EXPECT_TRUE(second.add_step(3600).is_ok() && second.finish().is_ok());
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

}  // namespace
}  // namespace tailrace::streams
