// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Files that are unusual, or that lie about their lengths.
#include "formats/grib2/reading/grib_sections.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "../../sources/messages.hpp"
#include "formats/grib2/reading/front_end.hpp"
#include "formats/grib2/sections.hpp"
#include "ground/base/text.hpp"

namespace tailrace::sources {
namespace {

using test::file_of;
using test::message;
using test::small_points;
using test::wave;
using test::with;

constexpr double hole = 1e30;

Result<std::shared_ptr<const Source>> open_file(const std::vector<ByteVector>& parts) {
  return open(file_of("a.grib", parts), "a.grib", "");
}

std::string refusal(const std::vector<ByteVector>& parts) {
  const auto source = open_file(parts);
  EXPECT_EQ(source.status().code(), Code::corrupt) << source.status().text();
  return source.is_ok() ? "" : source.status().text();
}

/// Sections 4 to 7 of each message, or 6 with indicator 254, behind sections 0 to 3 of the first.
ByteVector joined(const std::vector<ByteVector>& messages, bool bitmap_once) {
  ByteVector all = messages[0];
  all.resize(all.size() - 4);
  for (std::size_t i = 1; i < messages.size(); ++i) {
    const ByteVector& next = messages[i];
    const std::size_t begin = grib2::section_begin(next, 4), bitmap = grib2::section_begin(next, 6);
    const std::size_t data = grib2::section_begin(next, 7);
    const auto add = [&](std::size_t from, std::size_t to) {
      all.insert(all.end(), next.begin() + static_cast<std::ptrdiff_t>(from),
                 next.begin() + static_cast<std::ptrdiff_t>(to));
    };
    add(begin, bitmap_once ? bitmap : data);
    if (bitmap_once) {
      for (const int octet : {0, 0, 0, 6, 6, 254}) all.push_back(static_cast<std::byte>(octet));
    }
    add(data, next.size() - 4);
  }
  grib2::finish(0, all);
  return all;
}

TEST(grib_sections, a_message_of_several_fields_has_a_record_for_each) {
  std::vector<double> values = wave(small_points, 5, 3);
  for (const std::size_t i : {3U, 4U, 30U}) values[i] = hole;
  const codec::Keys bitmap{{"bitmapPresent", "1"}, {"missingValue", cat(hole)}};
  const auto keys = [&](codec::Keys more) {
    more.insert(more.end(), bitmap.begin(), bitmap.end());
    return with(more);
  };
  const std::vector<ByteVector> singles{
      message(2, keys({{"shortName", "u"}}), values), message(2, keys({{"shortName", "v"}}), values),
      message(2, keys({{"shortName", "q"}, {"packingType", "grid_complex"}}), values)};
  for (const bool bitmap_once : {false, true}) {
    SCOPED_TRACE(bitmap_once);
    const ByteVector all = joined(singles, bitmap_once);
    const auto source = open_file({all, singles[0]});
    ASSERT_TRUE(source.is_ok()) << source.status().text();
    const std::vector<Record>& records = (*source)->inventory().records;
    ASSERT_EQ(records.size(), 4U);
    EXPECT_EQ(records[1].field, "v");
    EXPECT_EQ(records[2].field, "q");
    EXPECT_EQ(records[2].place, (RecordPlace{0, static_cast<Bytes>(all.size()), 2, 0}));
    for (std::size_t i = 0; i < singles.size(); ++i) {
      const auto ours = test::read_all<double>(**source, records[i]);
      ASSERT_TRUE(ours.missing.is_ok()) << ours.missing.status().text();
      EXPECT_EQ(*ours.missing, 3);
      const std::vector<double> theirs = test::decoded_by_eccodes(singles[i], hole);
      for (std::size_t k = 0; k < theirs.size(); ++k)
        EXPECT_TRUE(theirs[k] == hole ? std::isnan(ours.values[k]) : ours.values[k] == theirs[k])
            << i << " " << k;
    }
  }
}

TEST(grib_sections, messages_of_grib1_beyond_8_megabytes_are_read) {
  constexpr Index columns = 2000, rows = 1500;
  const ByteVector large = message(1, {{"Ni", cat(columns)}, {"Nj", cat(rows)}, {"bitsPerValue", "24"}},
                                   wave(columns * rows, 20, 270));
  ASSERT_GT(large.size(), 8388608U);
  const ByteVector small = message(1, with({}), wave(small_points));
  const auto source = open_file({large, small});
  ASSERT_TRUE(source.is_ok()) << source.status().text();
  ASSERT_EQ((*source)->inventory().records.size(), 2U);
  const auto ours = test::read_all<double>(**source, (*source)->inventory().records[0]);
  ASSERT_TRUE(ours.missing.is_ok()) << ours.missing.status().text();
  EXPECT_EQ(ours.values, test::decoded_by_eccodes(large));
}

TEST(grib_sections, a_message_inside_of_another_is_part_of_its_values) {
  // Four values of 32 bits, as octets: GRIB, 7777, ...
  const ByteVector inner = message(2, with({}), wave(small_points));
  ByteVector outer = message(2, with({{"bitsPerValue", "32"}}), wave(small_points));
  const std::size_t data = grib2::section_begin(outer, 7) + 5;
  std::copy_n(inner.begin(), small_points * 4, outer.begin() + static_cast<std::ptrdiff_t>(data));
  const auto source = open_file({outer, inner});
  ASSERT_TRUE(source.is_ok()) << source.status().text();
  EXPECT_EQ((*source)->inventory().records.size(), 2U);
}

TEST(grib_sections, lengths_that_lie_are_told_with_their_place) {
  for (const int edition : {1, 2}) {
    SCOPED_TRACE(edition);
    const ByteVector first = message(edition, with({}), wave(small_points));
    ByteVector second = first;
    second.resize(second.size() - 1);
    const std::string cut = refusal({first, second});
    EXPECT_NE(cut.find(cat("a.grib: GRIB message at byte ", first.size(), ": expected ", first.size(),
                           " bytes, got ", second.size(), " up to the end of the file")),
              std::string::npos)
        << cut;
    second = first;
    second[edition == 1 ? 6 : 15] ^= std::byte{1};
    EXPECT_NE(refusal({second, first}).find("7777"), std::string::npos);
    second = first;
    second[7] = std::byte{3};
    EXPECT_NE(refusal({second}).find("edition: expected 1 or 2, got 3"), std::string::npos);
    second = first;
    const std::size_t product = edition == 1 ? 8 : grib2::section_begin(first, 4);
    for (std::size_t i = 0; i < 3; ++i) second[product + i] = std::byte{0};
    if (edition == 2) second[product + 3] = std::byte{0};
    second[product + (edition == 1 ? 2 : 3)] = std::byte{1};
    EXPECT_NE(refusal({second}).find("length of section"), std::string::npos);
    second[product] = std::byte{0x7f};
    EXPECT_FALSE(refusal({second}).empty());
  }
}

// Each of them would be taken together with that section once more.
TEST(grib_sections, many_fields_that_share_a_long_section_are_damage) {
  ByteVector all = message(2, with({{"shortName", "t"}}), std::vector<double>(small_points));
  const std::size_t grid = grib2::section_begin(all, 3), product = grib2::section_begin(all, 4);
  const ByteVector field(all.begin() + static_cast<std::ptrdiff_t>(product), all.end() - 4);
  all.resize(all.size() - 4);
  constexpr std::size_t long_section = 3 << 20, fields = 400;
  all.insert(all.begin() + static_cast<std::ptrdiff_t>(product), long_section, std::byte{0});
  grib2::put_number(&all[grid], product - grid + long_section, 4);
  for (std::size_t i = 1; i < fields; ++i) all.insert(all.end(), field.begin(), field.end());
  grib2::finish(0, all);
  const std::string text = refusal({all});
  EXPECT_NE(text.find("headers"), std::string::npos) << text;
}

TEST(grib_sections, more_than_some_bytes_between_messages_are_damage) {
  const ByteVector one = message(2, with({}), wave(small_points));
  const auto padded =
      open_file({one, ByteVector(1'000'000), one, ByteVector(longest_gap, std::byte{'x'}), one});
  ASSERT_TRUE(padded.is_ok()) << padded.status().text();
  EXPECT_EQ((*padded)->inventory().records.size(), 3U);
  const std::string text = refusal({one, ByteVector(longest_gap + 1, std::byte{'x'}), one});
  EXPECT_NE(text.find(cat("a.grib: behind byte ", one.size())), std::string::npos) << text;
}

TEST(grib_sections, a_file_has_no_more_records_than_those_of_other_formats) {
  const ByteVector one = message(2, with({}), wave(small_points));
  const Result<Opening> opening = look_at(file_of("a.grib", {one, one, one}), "a.grib");
  ASSERT_TRUE(opening.is_ok()) << opening.status().text();
  EXPECT_TRUE(scan_grib_of(*opening, 3).is_ok());
  const Status refused = scan_grib_of(*opening, 2).status();
  EXPECT_EQ(refused.code(), Code::corrupt);
  EXPECT_NE(refused.text().find("a.grib: GRIB message at byte"), std::string::npos) << refused.text();
}

TEST(grib_sections, a_file_that_has_changed_since_its_inventory_was_made_is_refused) {
  const ByteVector one = message(2, with({}), wave(small_points));
  const auto source = open_file({one, message(2, {{"shortName", "t"}}, wave(496))});
  ASSERT_TRUE(source.is_ok());
  Record record = (*source)->inventory().records[0];
  for (const RecordPlace& place :
       {RecordPlace{-1, 10, 0, 0}, RecordPlace{0, static_cast<Bytes>(one.size()) - 1, 0, 0},
        RecordPlace{0, static_cast<Bytes>(one.size()) + 1, 0, 0},
        RecordPlace{0, static_cast<Bytes>(one.size()), 1, 0}, RecordPlace{0, Bytes{1} << 60, 0, 0},
        (*source)->inventory().records[1].place}) {
    record.place = place;
    const auto values = test::read_all<float>(**source, record);
    EXPECT_EQ(values.missing.status().code(), Code::corrupt) << place[0] << " " << place[1];
    EXPECT_EQ(values.missing.status().text().substr(0, 8), "a.grib: ");
  }
}

}  // namespace
}  // namespace tailrace::sources
