// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/streams/files/reindex.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>

#include "faces/streams/definition/parse.hpp"
#include "faces/streams/files/file_ledger.hpp"
#include "formats/registry/registry.hpp"
#include "ground/base/text.hpp"
#include "ground/storage/faulty.hpp"
#include "index_samples.hpp"

// A stream finds its own GRIB messages again if the index is gone, and empties nobody else's file.
namespace tailrace::streams {
namespace {

const std::string kPath = "fc.grib2";
const std::string kBase = "base=2026-03-01T00:00Z ";

/// A stream of 2t on one level and t on two, with real messages.
class GribStream {
 public:
  explicit GribStream(std::shared_ptr<storage::Target> target, const std::string& options = "",
                      const std::string& pattern = kPath, const std::string& field = "t")
      : target_(std::move(target)) {
    const Result<StreamRequest> request = parse_stream(pattern, kBase + options);
    EXPECT_TRUE(request.is_ok()) << request.status().text();
    opening_.definition = request->definition;
    add("2t", "heightAboveGround", {2});
    add(field, "isobaricInhPa", {850, 500});
    codec_ = std::move(*formats::make_codec(opening_.definition));
    for (codec::FieldDefinition& field : opening_.fields) {
      EXPECT_TRUE(codec_->define(field).is_ok());
      field.georeference = {};
      opening_.prepared.push_back(codec_->prepared(static_cast<int>(opening_.prepared.size())));
    }
    opening_.ledger = pack_ledger(pattern, kBase + options, Uuid::random());
    ledger_ = std::move(*make_ledger(opening_, **opening_.codec(), target_));
  }

  /// Returns the messages of a step: all three, or those of one field.
  ByteVector messages(std::int64_t lead, int only = -1) const {
    ByteVector out;
    for (int field = 0; field < 2; ++field) {
      if (only >= 0 && only != field) continue;
      for (Index level = 0; level <= field; ++level) {
        std::vector<double> values(60, 280 + static_cast<double>(level));
        values[3] += static_cast<double>(lead);
        const Status encoded = codec_->encoder()->encode(
            {field, level, lead, 0}, reinterpret_cast<std::byte*>(values.data()), 60, out);
        EXPECT_TRUE(encoded.is_ok()) << encoded.text();
      }
    }
    return out;
  }

  Status put(std::int64_t lead, const ByteVector& bytes) {
    if (begun_.path.empty()) {
      const Result<pipeline::Begun> begun = ledger_->begin_file(kPath, lead, 1);
      TR_TRY(begun.status());
      begun_ = *begun;
    }
    Result<std::unique_ptr<storage::File>> file = target_->open(kPath, storage::OpenMode::existing);
    TR_TRY(file.status());
    TR_TRY((*file)->write(bytes, begun_.end));
    pipeline::StepEntry entry;
    entry.lead = lead;
    entry.path = kPath;
    entry.begin = begun_.end;
    entry.end = begun_.end + static_cast<Bytes>(bytes.size());
    entry.records = {{0, 0, entry.begin, entry.end - entry.begin}};
    begun_.end = entry.end;
    return ledger_->commit(entry);
  }
  Status put(std::int64_t lead) { return put(lead, messages(lead)); }
  Status finish() {
    TR_TRY(ledger_->finish_file(kPath));
    return ledger_->announce(kPath);
  }

 private:
  void add(const std::string& name, const std::string& level_type, std::vector<double> levels) {
    codec::FieldDefinition field;
    field.name = name;
    field.shape = {6, 10};
    field.georeference.keys = {{"gridType", "regular_ll"},
                               {"latitudeOfFirstGridPointInDegrees", "50"},
                               {"longitudeOfFirstGridPointInDegrees", "5"},
                               {"latitudeOfLastGridPointInDegrees", "45"},
                               {"longitudeOfLastGridPointInDegrees", "14"}};
    field.levels = {level_type, std::move(levels), {}, {}};
    opening_.fields.push_back(field);
  }

  std::shared_ptr<storage::Target> target_;
  pipeline::Opening opening_;
  std::unique_ptr<codec::Codec> codec_;
  std::unique_ptr<pipeline::Ledger> ledger_;
  pipeline::Begun begun_;
};

ByteVector joined(const std::vector<ByteVector>& parts) {
  ByteVector all;
  for (const ByteVector& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

ByteVector part_of(const ByteVector& bytes, std::size_t size) {
  return {bytes.begin(), bytes.begin() + size};
}

class Reindex : public ::testing::Test {
 protected:
  /// Leaves what a run of `steps` hourly steps leaves that has lost its index.
  void write(int steps) {
    GribStream stream(target_);
    for (int step = 0; step < steps; ++step) ASSERT_TRUE(stream.put(step * 3600).is_ok());
    ASSERT_TRUE(stream.finish().is_ok());
    ASSERT_TRUE(remove_index(*target_, kPath).is_ok());
  }
  ByteVector step(std::int64_t hour, int only = -1) const {
    return GribStream(storage::memory_target()).messages(hour * 3600, only);
  }
  /// Continues with the step at `hour`. Afterwards the file must hold `before` and that step.
  void expect_continued(const ByteVector& before, std::int64_t hour) {
    GribStream stream(target_, "existing=continue");
    const Status status = stream.put(hour * 3600);
    ASSERT_TRUE(status.is_ok()) << status.text();
    ASSERT_TRUE(stream.finish().is_ok());
    EXPECT_TRUE(get_bytes(*target_, kPath) == joined({before, step(hour)}));
  }
  /// Expects the file to keep its bytes, and the error to name it and the option that would take it all the
  /// same.
  void expect_refused(const std::string& options, const std::string& why) {
    const ByteVector before = get_bytes(*target_, kPath);
    const Status status = GribStream(target_, options).put(9 * 3600);
    EXPECT_FALSE(status.is_ok()) << options;
    EXPECT_TRUE(mentions(status.text(), kPath)) << status.text();
    EXPECT_TRUE(mentions(status.text(), why)) << status.text();
    EXPECT_TRUE(get_bytes(*target_, kPath) == before) << options;
    EXPECT_FALSE(*target_->exists(index_path(kPath))) << options;
  }

  std::shared_ptr<storage::Target> target_ = storage::memory_target();
};

TEST_F(Reindex, a_stream_that_continues_keeps_the_steps_of_a_file_without_index) {
  write(4);
  const ByteVector four = get_bytes(*target_, kPath);
  expect_continued(four, 4);
  const Result<IndexContents> index = load_index(*target_, index_path(kPath));
  ASSERT_TRUE(index.is_ok()) << index.status().text();
  ASSERT_EQ(index->steps.size(), 5U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(index->steps[i].lead, static_cast<std::int64_t>(i) * 3600);
    ASSERT_EQ(index->steps[i].records.size(), 3U);
    EXPECT_EQ(index->steps[i].records[2].field, 1);
    EXPECT_EQ(index->steps[i].records[2].level, 1);
  }
}

/// Returns the messages in the opposite order.
ByteVector reversed(const ByteVector& messages) {
  constexpr std::array begin{std::byte{'G'}, std::byte{'R'}, std::byte{'I'}, std::byte{'B'}};
  ByteVector out;
  for (auto end = messages.end(); end != messages.begin();) {
    const auto at = std::find_end(messages.begin(), end, begin.begin(), begin.end());
    out.insert(out.end(), at, end);
    end = at;
  }
  return out;
}

TEST_F(Reindex, the_records_of_a_step_may_have_any_order) {
  const ByteVector all = joined({step(0), reversed(step(1)), reversed(step(2))});
  ASSERT_NE(reversed(step(1)), step(1));
  put_bytes(*target_, kPath, all);
  expect_continued(all, 3);
  const ByteVector only = joined({reversed(step(0)), reversed(step(1))});
  put_bytes(*target_, kPath, joined({only, part_of(reversed(step(2)), 60)}));
  ASSERT_TRUE(remove_index(*target_, kPath).is_ok());
  expect_continued(only, 2);
}

TEST_F(Reindex, a_call_that_fails_leaves_no_part_of_the_new_index) {
  using storage::Call;
  write(4);
  const ByteVector four = get_bytes(*target_, kPath);
  const std::vector<std::string> names = *target_->list(".");
  for (std::int64_t nth = 1;; ++nth) {
    SCOPED_TRACE(nth);
    put_bytes(*target_, kPath, four);
    ASSERT_TRUE(remove_index(*target_, kPath).is_ok());
    // Removals and cuts succeed on a full disk.
    const auto faulty = storage::faulty_target(
        target_, {nth, storage::Fault::no_space,
                  set_of(Call::open, Call::write, Call::sync, Call::close, Call::rename), false});
    const Status status = GribStream(faulty, "existing=continue").put(4 * 3600);
    if (!faulty->fired()) {
      EXPECT_TRUE(status.is_ok()) << status.text();
      EXPECT_GT(nth, 10);
      break;
    }
    std::vector<std::string> left = *target_->list(".");
    std::erase(left, index_path(kPath));  // it is whole, or not there
    EXPECT_EQ(left, names) << status.text();
    const bool indexed = *target_->exists(index_path(kPath));
    EXPECT_TRUE(!indexed || load_index(*target_, index_path(kPath))->steps.size() >= 4U);
  }
}

TEST_F(Reindex, a_last_step_that_was_not_finished_is_cut_off) {
  const ByteVector two = joined({step(0), step(1)});
  const ByteVector third = step(2);
  const std::size_t message = step(2, 0).size();
  // The file ends in the middle of a head, of values, between messages, and with messages that another server
  // had written already.
  for (const std::size_t size : {std::size_t{3}, std::size_t{60}, message - 2, third.size() - 1}) {
    put_bytes(*target_, kPath, joined({two, part_of(third, size)}));
    ASSERT_TRUE(remove_index(*target_, kPath).is_ok());
    SCOPED_TRACE(size);
    expect_continued(two, 2);
  }
  ByteVector hole = third;
  std::fill(hole.begin(), hole.begin() + static_cast<std::ptrdiff_t>(message), std::byte{0});
  put_bytes(*target_, kPath, joined({two, hole}));
  ASSERT_TRUE(remove_index(*target_, kPath).is_ok());
  expect_continued(two, 2);
}

TEST_F(Reindex, a_step_that_may_be_whole_is_neither_cut_nor_kept) {
  // 2t is hourly, and t every two hours: the last step may have been cut, or be one without t.
  put_bytes(*target_, kPath, joined({step(0), step(1, 0), step(2, 0)}));
  expect_refused("existing=continue", "lead 7200 s has 1 message, and nobody can tell");
  // Both are always there, except in the end: the program may have put 2t alone there, and its step was
  // committed.
  put_bytes(*target_, kPath, joined({step(0), step(1), step(2, 0)}));
  expect_refused("existing=continue", "lead 7200 s has 1 message, and nobody can tell");
}

TEST_F(Reindex, damage_before_the_last_step_is_no_end) {
  ByteVector second = step(1);
  std::fill(second.end() - 40, second.end(), std::byte{0});
  put_bytes(*target_, kPath, joined({step(0), second, step(2)}));
  expect_refused("existing=continue", "the step at lead 3600 s is damaged");
  expect_refused("existing=replace", "the step at lead 3600 s is damaged");
}

TEST_F(Reindex, data_of_somebody_else_are_never_emptied_unless_asked) {
  GribStream other(storage::memory_target(), "keys=\"centre=78\"");
  const ByteVector text(100, std::byte{'x'});
  const std::vector<std::pair<ByteVector, std::string>> files = {
      {text, "byte 0 begins no message"},
      {other.messages(0), "byte 0 begins no message"},
      {joined({step(0), other.messages(3600)}), cat("byte ", step(0).size(), " begins no message")},
      {joined({step(1), step(0)}), "go back"},
      {ByteVector(50), "byte 0 begins no message"}};
  for (const auto& [bytes, why] : files) {
    for (const char* const existing : {"existing=continue", "existing=replace", "existing=fail", ""}) {
      put_bytes(*target_, kPath, bytes);
      expect_refused(existing, existing == std::string("existing=fail") ? "exists already" : why);
    }
    GribStream stream(target_, "existing=overwrite");
    ASSERT_TRUE(stream.put(0).is_ok());
    ASSERT_TRUE(stream.finish().is_ok());
    EXPECT_TRUE(get_bytes(*target_, kPath) == step(0));
    ASSERT_TRUE(remove_index(*target_, kPath).is_ok());
  }
}

TEST_F(Reindex, a_foreign_index_makes_a_file_nobodys_own) {
  put_bytes(*target_, kPath, ByteVector(100, std::byte{'x'}));
  put_bytes(*target_, index_path(kPath), ByteVector(80, std::byte{'1'}));
  EXPECT_FALSE(GribStream(target_).put(0).is_ok());
  EXPECT_EQ(get_bytes(*target_, kPath).size(), 100U);
}

TEST_F(Reindex, a_plain_rerun_replaces_its_own_files_with_and_without_index) {
  write(4);
  for (const bool indexed : {false, true}) {
    SCOPED_TRACE(indexed);
    ASSERT_EQ(*target_->exists(index_path(kPath)), indexed);
    GribStream stream(target_);
    const Status status = stream.put(0);
    ASSERT_TRUE(status.is_ok()) << status.text();
    ASSERT_TRUE(stream.finish().is_ok());
    EXPECT_TRUE(get_bytes(*target_, kPath) == step(0));
  }
}

TEST_F(Reindex, a_stream_of_other_fields_does_not_continue_a_file) {
  {
    GribStream first(target_);
    ASSERT_TRUE(first.put(0).is_ok());
    ASSERT_TRUE(first.finish().is_ok());
  }
  const ByteVector index = get_bytes(*target_, index_path(kPath));
  const ByteVector data = get_bytes(*target_, kPath);
  const Status status = GribStream(target_, "existing=continue", kPath, "u").put(3600);
  EXPECT_EQ(status.code(), Code::state);
  for (const char* part : {"was begun with field 't', which", "existing=replace begins anew"})
    EXPECT_NE(status.text().find(part), std::string::npos) << status.text();
  EXPECT_TRUE(get_bytes(*target_, index_path(kPath)) == index);
  EXPECT_TRUE(get_bytes(*target_, kPath) == data);
}

TEST_F(Reindex, a_stream_of_other_fields_begins_a_file_anew_that_has_no_step) {
  {
    GribStream other(target_, "", kPath, "u");
    ASSERT_TRUE(other.put(0).is_ok());
  }
  const Result<IndexContents> index = load_index(*target_, index_path(kPath));
  ASSERT_TRUE(index.is_ok());
  // A kill behind the begin of the file has left its head and no step.
  ASSERT_TRUE(IndexWriter::create(*target_, index_path(kPath), index->header).is_ok());
  put_bytes(*target_, kPath, {});
  expect_continued({}, 0);
}

TEST_F(Reindex, a_refused_continuation_leaves_a_closed_file_closed) {
  GribStream first(target_, "ready=.ready");
  ASSERT_TRUE(first.put(0).is_ok());
  ASSERT_TRUE(first.finish().is_ok());
  const ByteVector index = get_bytes(*target_, index_path(kPath));
  EXPECT_EQ(GribStream(target_, "existing=continue ready=.ready").put(0).code(), Code::order);
  EXPECT_TRUE(get_bytes(*target_, index_path(kPath)) == index);
  EXPECT_TRUE(*target_->exists(kPath + ".ready"));
}

}  // namespace
}  // namespace tailrace::streams
