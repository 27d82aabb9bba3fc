// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Files of our own streams: their index says what is committed.
#include <gtest/gtest.h>

#include "formats/index/bytes/index_format.hpp"
#include "formats/index/index.hpp"
#include "ground/base/text.hpp"
#include "messages.hpp"

namespace tailrace::sources {
namespace {

using test::message;
using test::small_points;
using test::wave;
using test::with;

constexpr std::int64_t hour = 3600;

ByteVector pressure_level(int level, int hours) {
  return message(2,
                 with({{"dataDate", "20260301"},
                       {"dataTime", "0000"},
                       {"step", cat(hours)},
                       {"shortName", "t"},
                       {"typeOfLevel", "isobaricInhPa"},
                       {"level", cat(level)}}),
                 wave(small_points, 10, level));
}

/// A file of three steps with two levels each, whose last step is not committed.
class indexed : public ::testing::Test {
 protected:
  indexed() {
    header_.format = "grib2";
    header_.base = {2026, 3, 1};
    header_.member = 7;
    header_.fields = {{"temperature", ElementType::f32, {1, 6, 10}, "isobaricInhPa", {500, 850}}};
    Bytes at = 0;
    for (int step = 0; step < 3; ++step) {
      streams::IndexStep indexed{step, step * hour, at, at, {}};
      for (int level = 0; level < 2; ++level) {
        parts_.push_back(pressure_level(level == 0 ? 500 : 850, step));
        const auto length = static_cast<Bytes>(parts_.back().size());
        indexed.records.push_back({0, level, at, length});
        at += length;
      }
      indexed.end = at;
      steps_.push_back(indexed);
    }
  }

  ByteVector index_of(std::size_t steps) const {
    ByteVector bytes = streams::encode_header(header_);
    streams::IndexChain chain = streams::first_chain(bytes);
    for (std::size_t i = 0; i < steps; ++i) {
      const ByteVector record = streams::encode_step(steps_[i], chain);
      chain = streams::next_chain(chain, record);
      bytes.insert(bytes.end(), record.begin(), record.end());
    }
    return bytes;
  }
  Result<std::shared_ptr<const Source>> open_with(const ByteVector& index) const {
    const auto target = test::file_of("a.grib2", parts_);
    const auto file = target->open("a.grib2.trx", storage::OpenMode::create);
    EXPECT_TRUE(file.is_ok() && (*file)->write(index, 0).is_ok());
    return open(target, "a.grib2", "");
  }

  streams::IndexHeader header_;
  std::vector<streams::IndexStep> steps_;
  std::vector<ByteVector> parts_;
};

TEST_F(indexed, only_committed_steps_are_there) {
  const auto source = open_with(index_of(2));
  ASSERT_TRUE(source.is_ok()) << source.status().text();
  const Inventory& inventory = (*source)->inventory();
  ASSERT_EQ(inventory.records.size(), 4U);
  const Record& last = inventory.records.back();
  EXPECT_EQ(last.field, "temperature");
  EXPECT_EQ(last.level_type, "isobaricInhPa");
  EXPECT_EQ(last.level, 850);
  EXPECT_EQ(last.valid - last.reference, hour);
  EXPECT_EQ(last.reference, to_seconds({2026, 3, 1}, Calendar::proleptic_gregorian));
  EXPECT_EQ(last.member, 7);
  ASSERT_EQ(inventory.grids.size(), 1U + 1U);  // as the message says, and as the program had it
  const Grid& grid = inventory.grids[static_cast<std::size_t>(last.grid)];
  EXPECT_EQ(grid.shape, (std::vector<Index>{1, 6, 10}));
  EXPECT_NE(codec::find_key(grid.keys, "Ni"), nullptr);
  const auto values = test::read_all<double>(**source, last);
  ASSERT_TRUE(values.missing.is_ok()) << values.missing.status().text();
  EXPECT_EQ(values.values, test::decoded_by_eccodes(parts_[3]));
}

TEST_F(indexed, a_step_that_is_being_committed_is_not_there_yet) {
  ByteVector index = index_of(2);
  index.resize(index.size() - 5);
  const auto source = open_with(index);
  ASSERT_TRUE(source.is_ok()) << source.status().text();
  EXPECT_EQ((*source)->inventory().records.size(), 2U);
  const auto none = open_with(index_of(0));
  ASSERT_TRUE(none.is_ok()) << none.status().text();
  EXPECT_TRUE((*none)->inventory().records.empty());
  parts_.clear();
  const auto empty = open_with(index_of(0));
  ASSERT_TRUE(empty.is_ok()) << empty.status().text();
  EXPECT_EQ((*empty)->inventory().format, "GRIB");
  EXPECT_TRUE((*empty)->inventory().records.empty());
}

TEST_F(indexed, an_index_that_contradicts_the_file_or_itself_is_corrupt) {
  ByteVector index = index_of(3);
  index[index.size() / 2] ^= std::byte{1};
  const auto damaged = open_with(index);
  EXPECT_EQ(damaged.status().code(), Code::corrupt) << damaged.status().text();
  parts_.pop_back();
  const auto cut = open_with(index_of(3));
  EXPECT_EQ(cut.status().code(), Code::corrupt);
  EXPECT_NE(cut.status().text().find("a.grib2"), std::string::npos) << cut.status().text();
  header_.fields[0].shape = {7, 10};
  const auto shape = open_with(index_of(2));
  EXPECT_EQ(shape.status().code(), Code::corrupt);
  EXPECT_NE(shape.status().text().find("7 x 10"), std::string::npos) << shape.status().text();
}

TEST_F(indexed, a_record_where_the_index_says_another_one_is_corrupt) {
  steps_[0].records[1].offset += 1;
  steps_[0].records[1].length -= 1;
  const auto source = open_with(index_of(1));
  ASSERT_TRUE(source.is_ok()) << source.status().text();
  const auto values = test::read_all<float>(**source, (*source)->inventory().records[1]);
  EXPECT_EQ(values.missing.status().code(), Code::corrupt);
  EXPECT_NE(values.missing.status().text().find("a.grib2: GRIB message at byte"), std::string::npos)
      << values.missing.status().text();
}

}  // namespace
}  // namespace tailrace::sources
