// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "../../sources/messages.hpp"
#include "formats/grib2/handle.hpp"
#include "ground/base/text.hpp"

namespace tailrace::sources {
namespace {

using test::read_all;
using test::read_part;
using test::small_points;
using test::wave;
using test::with;

constexpr double missing = 1e30;

std::shared_ptr<const Source> open_one(const ByteVector& message) {
  const auto source = open(test::file_of("a.grib", {message}), "a.grib", "");
  EXPECT_TRUE(source.is_ok()) << source.status().text();
  return source.is_ok() ? *source : nullptr;
}

/// Checks each value, as float64 and float32, against ecCodes'.
void expect_as_eccodes(const ByteVector& message, Index expected_missing = 0) {
  const auto source = open_one(message);
  ASSERT_NE(source, nullptr);
  const Record& record = source->inventory().records.at(0);
  const std::vector<double> theirs = test::decoded_by_eccodes(message, missing);
  const auto wide = read_all<double>(*source, record);
  const auto narrow = read_all<float>(*source, record);
  ASSERT_TRUE(wide.missing.is_ok()) << wide.missing.status().text();
  ASSERT_TRUE(narrow.missing.is_ok()) << narrow.missing.status().text();
  EXPECT_EQ(*wide.missing, expected_missing);
  EXPECT_EQ(*narrow.missing, expected_missing);
  ASSERT_EQ(wide.values.size(), theirs.size());
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    if (theirs[i] == missing) {
      ASSERT_TRUE(std::isnan(wide.values[i]) && std::isnan(narrow.values[i])) << i;
    } else {
      ASSERT_EQ(wide.values[i], theirs[i]) << i;
      ASSERT_EQ(narrow.values[i], static_cast<float>(theirs[i])) << i;
    }
  }
}

TEST(grib_values, are_those_of_eccodes_in_every_width) {
  for (const int edition : {1, 2}) {
    for (int bits = 1; bits <= 32; ++bits) {
      SCOPED_TRACE(cat("edition ", edition, ", ", bits, " bits"));
      const codec::Keys keys = with({{"bitsPerValue", cat(bits)}});
      expect_as_eccodes(test::message(edition, keys, wave(small_points, 37.3, 250)));
      expect_as_eccodes(test::message(edition, keys, wave(small_points, 3e-20, -1e-19)));
    }
  }
}

/// Returns a message that was packed simply and then otherwise, or nothing if this ecCodes cannot.
ByteVector repacked(int edition, const std::string& packing, const std::string& bits) {
  Result<grib2::Handle> handle = grib2::Handle::from_message(
      test::message(edition, with({{"bitsPerValue", bits}}), wave(small_points, 37.3, 250)));
  if (!handle.is_ok() || handle->set_text("packingType", packing) != 0) return {};
  const auto bytes = handle->message();
  return {bytes.begin(), bytes.end()};
}

TEST(grib_values, are_those_of_eccodes_in_every_packing) {
  int complex_ones = 0;
  for (const std::string packing : {"grid_simple", "grid_ccsds", "grid_complex",
                                    "grid_complex_spatial_differencing", "grid_ieee", "grid_second_order"}) {
    for (const int edition : {1, 2}) {
      for (const std::string bits : {"7", "12", "16", "24"}) {
        if (edition == 1 && packing.find("complex") != std::string::npos) continue;  // there is none
        const ByteVector message = repacked(edition, packing, bits);
        if (message.empty()) continue;
        SCOPED_TRACE(cat(packing, ", edition ", edition, ", ", bits, " bits"));
        complex_ones += packing != "grid_simple" && packing != "grid_ccsds" ? 1 : 0;
        expect_as_eccodes(message);
      }
    }
  }
  EXPECT_GE(complex_ones, 8);
}

TEST(grib_values, of_long_fields_span_several_intervals_of_ccsds) {
  const codec::Keys keys{{"Ni", "300"}, {"Nj", "200"}, {"packingType", "grid_ccsds"}, {"bitsPerValue", "16"}};
  expect_as_eccodes(test::message(2, keys, wave(60000, 30, 280)));
}

// Streams without differences, or with filled up intervals, are left to libaec; those that name another order
// of octets to ecCodes.
TEST(grib_values, of_unusual_streams_of_ccsds_are_those_of_eccodes) {
  for (const std::string flags : {"6", "8", "46"}) {
    for (const std::string bits : {"7", "13", "21"}) {
      SCOPED_TRACE(cat("flags ", flags, ", ", bits, " bits"));
      expect_as_eccodes(test::message(
          2, with({{"packingType", "grid_ccsds"}, {"ccsdsFlags", flags}, {"bitsPerValue", bits}}),
          wave(small_points, 37.3, 250)));
    }
  }
}

TEST(grib_values, with_a_decimal_scale) {
  for (const int edition : {1, 2}) {
    for (const std::string decimal : {"3", "1", "-2"}) {
      SCOPED_TRACE(cat("edition ", edition, ", D=", decimal));
      expect_as_eccodes(
          test::message(edition, with({{"decimalPrecision", decimal}}), wave(small_points, 3000, 100)));
      expect_as_eccodes(
          test::message(edition, with({{"decimalScaleFactor", decimal}}), wave(small_points, 3000, 100)));
    }
  }
}

TEST(grib_values, of_constant_fields) {
  for (const int edition : {1, 2}) {
    for (const double value : {0.0, 273.15, -1e-7}) {
      expect_as_eccodes(test::message(edition, with({}), std::vector<double>(small_points, value)));
    }
  }
  expect_as_eccodes(
      test::message(2, with({{"packingType", "grid_ccsds"}}), std::vector<double>(small_points, 5)));
}

TEST(grib_values, missing_ones_become_nan_and_are_counted) {
  for (const int edition : {1, 2}) {
    for (const std::string packing : {"grid_simple", "grid_ccsds"}) {
      if (edition == 1 && packing == "grid_ccsds") continue;
      for (const Index every : {1, 2, 3, 7, 59}) {
        SCOPED_TRACE(cat(packing, ", edition ", edition, ", every ", every));
        std::vector<double> values = wave(small_points, 10, 0);
        Index count = 0;
        for (Index i = 0; i < small_points; i += every, ++count)
          values[static_cast<std::size_t>(i)] = missing;
        const ByteVector message = test::message(
            edition, with({{"packingType", packing}, {"bitmapPresent", "1"}, {"missingValue", cat(missing)}}),
            values);
        expect_as_eccodes(message, count);
      }
    }
  }
}

TEST(grib_values, are_parts_inside_of_a_box) {
  std::vector<double> values = wave(small_points, 10, 0);
  for (const Index i : {0, 13, 14, 27, 44, 59}) values[static_cast<std::size_t>(i)] = missing;
  for (const codec::Keys& more :
       {codec::Keys{{"bitsPerValue", "16"}}, codec::Keys{{"bitsPerValue", "11"}},
        codec::Keys{{"packingType", "grid_ccsds"}}, codec::Keys{{"packingType", "grid_complex"}},
        codec::Keys{{"bitmapPresent", "1"}, {"missingValue", cat(missing)}}}) {
    const bool has_bitmap = more[0].first == "bitmapPresent";
    const ByteVector message = test::message(2, with(more), has_bitmap ? values : wave(small_points, 10, 0));
    const auto source = open_one(message);
    const Record& record = source->inventory().records.at(0);
    const auto all = read_all<double>(*source, record);
    for (const layout::Box& cut : {layout::Box{{0, 0}, {6, 10}},
                                   {{1, 3}, {5, 7}},
                                   {{2, 0}, {3, 10}},
                                   {{0, 9}, {6, 10}},
                                   {{5, 4}, {6, 5}},
                                   {{3, 3}, {3, 7}}}) {
      const auto part = read_part<float>(*source, record, cut);
      ASSERT_TRUE(part.missing.is_ok()) << part.missing.status().text();
      Index holes = 0;
      auto got = part.values.begin();
      for (Index j = cut.lower[0]; j < cut.upper[0]; ++j) {
        for (Index i = cut.lower[1]; i < cut.upper[1]; ++i, ++got) {
          const double expected = all.values[static_cast<std::size_t>(j * 10 + i)];
          if (std::isnan(expected)) {
            ++holes;
            EXPECT_TRUE(std::isnan(*got));
          } else {
            EXPECT_EQ(*got, static_cast<float>(expected));
          }
        }
      }
      EXPECT_EQ(*part.missing, holes);
      EXPECT_TRUE(got == part.values.end());
    }
    const auto outside = read_part<float>(*source, record, {{0, 0}, {7, 10}});
    EXPECT_EQ(outside.missing.status().code(), Code::layout);
  }
}

/// Turns every second row round: the values as a file with alternating rows stores them, and back.
std::vector<double> turned(std::vector<double> values, Index row) {
  for (auto at = values.begin() + row; at < values.end(); at += 2 * row) std::reverse(at, at + row);
  return values;
}

/// Checks every part of a record against the values in rows that go one way.
void expect_rows_one_way(const Source& source, const Grid& grid, const std::vector<double>& values) {
  const Record& record = source.inventory().records.at(0);
  const Index columns = grid.shape.back(), rows = small_points / columns;
  for (Index top = 0; top < rows; ++top) {
    for (Index left = 0; left < columns; left += 3) {
      layout::Box cut{{left}, {std::min(left + 5, columns)}};
      if (grid.shape.size() > 1) cut = {{top, left}, {std::min(top + 3, rows), std::min(left + 5, columns)}};
      std::vector<double> expected;
      for (Index j = top; j < (grid.shape.size() > 1 ? cut.upper[0] : top + 1); ++j) {
        const auto begin = values.begin() + j * columns;
        expected.insert(expected.end(), begin + cut.lower.back(), begin + cut.upper.back());
      }
      std::vector<double> got(expected.size());
      Scratch scratch;
      const Result<Index> counted = source.read(record.place, grid, cut, ElementType::f64,
                                                reinterpret_cast<std::byte*>(got.data()), scratch);
      ASSERT_TRUE(counted.is_ok()) << counted.status().text();
      Index holes = 0;
      for (std::size_t i = 0; i < got.size(); ++i) {
        holes += expected[i] == missing ? 1 : 0;
        ASSERT_TRUE(expected[i] == missing ? std::isnan(got[i]) : std::fabs(got[i] - expected[i]) < 0.1)
            << "row " << top << ", column " << left << ", element " << i << ": " << got[i];
      }
      EXPECT_EQ(*counted, holes);
    }
  }
}

/// The whole record may take another way than its parts.
void expect_all_one_way(const Source& source, const Grid& grid, const std::vector<double>& values) {
  std::vector<double> got(values.size());
  Scratch scratch;
  const layout::Box all{std::vector<Index>(grid.shape.size(), 0), grid.shape};
  ASSERT_TRUE(source
                  .read(source.inventory().records.at(0).place, grid, all, ElementType::f64,
                        reinterpret_cast<std::byte*>(got.data()), scratch)
                  .is_ok());
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_TRUE(values[i] == missing ? std::isnan(got[i]) : std::fabs(got[i] - values[i]) < 0.1)
        << "element " << i << " of the whole record: " << got[i];
}

TEST(grib_values, of_rows_in_alternating_directions_come_in_rows_that_go_one_way) {
  std::vector<double> full, holed;
  for (Index i = 0; i < small_points; ++i) {
    full.push_back(static_cast<double>(i));
    holed.push_back(i % 7 == 3 ? missing : static_cast<double>(i));
  }
  for (const std::string packing :
       {"grid_simple", "grid_ccsds", "grid_complex", "grid_ieee", "grid_second_order", "grid_png",
        "grid_jpeg", "grid_simple_log_preprocessing", "bitmap"}) {
    for (const bool by_columns : {false, true}) {
      SCOPED_TRACE(cat(packing, by_columns ? ", by columns" : ""));
      codec::Keys keys = with({{"bitsPerValue", "16"},
                               {"alternativeRowScanning", "1"},
                               {"jPointsAreConsecutive", by_columns ? "1" : "0"}});
      if (packing == "bitmap") {
        keys.emplace_back("bitmapPresent", "1");
        keys.emplace_back("missingValue", cat(missing));
      }
      const std::vector<double>& put = packing == "bitmap" ? holed : full;
      const Index row = by_columns ? 6 : 10;
      Result<grib2::Handle> handle = grib2::Handle::from_message(test::message(2, keys, turned(put, row)));
      ASSERT_TRUE(handle.is_ok());
      if (packing != "bitmap" && handle->set_text("packingType", packing) != 0) continue;
      const auto bytes = handle->message();
      const ByteVector packed(bytes.begin(), bytes.end());
      const auto source = open_one(packed);
      ASSERT_NE(source, nullptr);
      // This ecCodes does not pack every field well into each packing.
      const std::vector<double> values = turned(test::decoded_by_eccodes(packed, missing), row);
      if (packing == "grid_simple") EXPECT_NEAR(values[11], 11, 0.1);
      Grid grid = source->inventory().grids.at(0);
      EXPECT_EQ(grid.shape.back(), row);
      expect_rows_one_way(*source, grid, values);
      // The program may have the same points in other dimensions.
      grid.shape = {12, 5};
      expect_rows_one_way(*source, grid, values);
      expect_all_one_way(*source, grid, values);
      grid.shape = {small_points};
      expect_rows_one_way(*source, grid, values);
    }
  }
}

TEST(grib_values, of_rows_in_alternating_directions_are_refused_where_the_rows_have_no_one_length) {
  const auto source = open_one(test::message(2, with({}), wave(small_points)));
  ASSERT_NE(source, nullptr);
  const Record& record = source->inventory().records.at(0);
  Grid grid{{small_points}, {{"gridType", "reduced_gg"}, {"alternativeRowScanning", "1"}}};
  std::vector<double> values(small_points);
  Scratch scratch;
  const Result<Index> read = source->read(record.place, grid, {{0}, {small_points}}, ElementType::f64,
                                          reinterpret_cast<std::byte*>(values.data()), scratch);
  EXPECT_EQ(read.status().code(), Code::unsupported);
  EXPECT_NE(read.status().text().find("alternating"), std::string::npos) << read.status().text();
}

}  // namespace
}  // namespace tailrace::sources
