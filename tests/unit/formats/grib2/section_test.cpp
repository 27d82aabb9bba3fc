// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//
// Grids of sections (section=): ecCodes' own geography has the points of the section where it has them in the
// message of the whole array, and NetCDF's coordinates are those of the whole grid.
#include <eccodes.h>

#include <cmath>
#include <random>

#include "formats/cf/grid.hpp"
#include "formats/grids/grids.hpp"
#include "formats/sections/sections.hpp"
#include "grib_fixture.hpp"
#include "ground/base/text.hpp"

namespace tailrace::codec::test {
namespace {

struct Points {
  std::vector<double> latitudes, longitudes;
};

FieldDefinition on(Keys keys, std::vector<Index> shape) {
  FieldDefinition field = field_of("t", "hybrid", {7});
  field.georeference.keys = std::move(keys);
  field.shape = std::move(shape);
  return field;
}

/// Returns the points of the field's message, as ecCodes computes them.
Points points_of(const FieldDefinition& field) {
  const auto count = static_cast<std::size_t>(field.elements());
  const Result<ByteVector> message =
      encode(stream_of(), field, {0, 0, hour, 0}, std::vector<double>(count, 1.5));
  EXPECT_TRUE(message.is_ok()) << message.status().text();
  if (!message.is_ok()) return {};
  codes_handle* const handle = codes_handle_new_from_message(nullptr, message->data(), message->size());
  Points points{std::vector<double>(count), std::vector<double>(count)};
  std::vector<double> values(count);
  EXPECT_EQ(codes_grib_get_data(handle, points.latitudes.data(), points.longitudes.data(), values.data()), 0);
  codes_handle_delete(handle);
  return points;
}

Section random_section(std::mt19937& dice, const std::vector<Index>& whole, bool any_row,
                       std::vector<Index>& shape) {
  const auto random = [&](Index most) { return std::uniform_int_distribution<Index>(0, most)(dice); };
  Section section{whole, {}, {}, {}, {}};
  shape.clear();
  for (std::size_t d = 0; d < 2; ++d) {
    // ecCodes computes no points of a grid of one row or column.
    const Index start = random(whole[d] - 3);
    const Index stride = any_row || d == 1 ? 1 + random((whole[d] - 1 - start) / 2 - 1) : 1;
    shape.push_back(2 + random((whole[d] - 1 - start) / stride - 1));
    section.start.push_back(start);
    section.stop.push_back(start + (shape.back() - 1) * stride + 1);
    section.stride.push_back(stride);
  }
  return section;
}

/// Returns the section that has all rows and columns.
Section everything(const std::vector<Index>& whole, std::vector<Index>& shape) {
  shape = whole;
  return {whole, {0, 0}, whole, {1, 1}, {}};
}

struct Case {
  const char* name;
  Keys keys;
  std::vector<Index> shape;
  bool any_row = true;  // the rows may have a stride
};

std::vector<Case> cases() {
  return {{"regular_ll",
           {{"gridType", "regular_ll"},
            {"latitudeOfFirstGridPointInDegrees", "60"},
            {"longitudeOfFirstGridPointInDegrees", "350.25"},
            {"latitudeOfLastGridPointInDegrees", "31.333333"},
            {"longitudeOfLastGridPointInDegrees", "24.5"}},
           {12, 20}},
          {"to the north and west",
           {{"gridType", "regular_ll"},
            {"iScansNegatively", "1"},
            {"latitudeOfFirstGridPoint", "-20000000"},
            {"longitudeOfFirstGridPoint", "8000000"},
            {"iDirectionIncrement", "500000"},
            {"jDirectionIncrement", "300000"},
            {"jScansPositively", "1"}},
           {9, 30}},
          {"round the circle",
           {{"gridType", "regular_ll"},
            {"latitudeOfFirstGridPointInDegrees", "60"},
            {"longitudeOfFirstGridPointInDegrees", "0"},
            {"latitudeOfLastGridPointInDegrees", "48"},
            {"longitudeOfLastGridPointInDegrees", "360"}},
           {7, 25}},
          {"round the circle to the west",
           {{"gridType", "regular_ll"},
            {"iScansNegatively", "1"},
            {"latitudeOfFirstGridPointInDegrees", "60"},
            {"longitudeOfFirstGridPointInDegrees", "360"},
            {"latitudeOfLastGridPointInDegrees", "48"},
            {"longitudeOfLastGridPointInDegrees", "0"}},
           {7, 25}},
          {"rotated_ll",
           {{"gridType", "rotated_ll"},
            {"latitudeOfFirstGridPointInDegrees", "-21.4"},
            {"longitudeOfFirstGridPointInDegrees", "-3.5"},
            {"iDirectionIncrementInDegrees", "0.15"},
            {"jDirectionIncrementInDegrees", "0.2"},
            {"jScansPositively", "1"},
            {"latitudeOfSouthernPoleInDegrees", "-30"},
            {"longitudeOfSouthernPoleInDegrees", "-15"}},
           {14, 40}},
          {"lambert",
           {{"gridType", "lambert"},
            {"Nx", "25"},
            {"Ny", "18"},
            {"latitudeOfFirstGridPointInDegrees", "39.671"},
            {"longitudeOfFirstGridPointInDegrees", "334.579"},
            {"LoVInDegrees", "352"},
            {"LaDInDegrees", "65"},
            {"Latin1InDegrees", "60"},
            {"Latin2InDegrees", "67"},
            {"DxInMetres", "25000"},
            {"DyInMetres", "20000"},
            {"jScansPositively", "1"},
            {"shapeOfTheEarth", "6"}},
           {18, 25}},
          {"polar_stereographic",
           {{"gridType", "polar_stereographic"},
            {"Nx", "30"},
            {"Ny", "24"},
            {"latitudeOfFirstGridPointInDegrees", "32.5"},
            {"longitudeOfFirstGridPointInDegrees", "225.5"},
            {"orientationOfTheGridInDegrees", "249"},
            {"LaDInDegrees", "60"},
            {"DxInMetres", "60000"},
            {"DyInMetres", "60000"},
            {"jScansPositively", "1"},
            {"shapeOfTheEarth", "6"}},
           {24, 30}},
          {"regular_gg", {{"gridType", "regular_gg"}, {"N", "16"}}, {32, 64}, false}};
}

bool same_longitude(double a, double b) { return std::fabs(std::remainder(a - b, 360)) < 2e-5; }

TEST(grib2_section, points_lie_where_they_lie_in_the_whole_grid) {
  std::mt19937 dice(3);
  for (const Case& each : cases()) {
    const FieldDefinition whole = on(each.keys, each.shape);
    const Points all = points_of(whole);
    const auto grid = cf::grid_of(*grids::keys_of(whole.georeference), each.shape);
    ASSERT_TRUE(grid.is_ok()) << grid.status().text();
    for (int turn = 0; turn < 25; ++turn) {
      std::vector<Index> shape;
      const Section section =
          turn == 0 ? everything(each.shape, shape) : random_section(dice, each.shape, each.any_row, shape);
      SCOPED_TRACE(cat(each.name, ", start ", section.start[0], ",", section.start[1], " stride ",
                       section.stride[0], ",", section.stride[1], " count ", shape[0], ",", shape[1]));
      const sections::SectionGrid cut = sections::section_grid(whole.georeference, section, shape);
      ASSERT_EQ(cut.no_grid, "");
      FieldDefinition part = on(cut.georeference.keys, shape);
      part.section = section;
      const Points points = points_of(part);
      ASSERT_EQ(points.latitudes.size(), static_cast<std::size_t>(shape[0] * shape[1]));
      const auto part_grid = cf::grid_of(*grids::keys_of(part.georeference), shape);
      ASSERT_TRUE(part_grid.is_ok()) << part_grid.status().text();
      for (Index y = 0; y < shape[0]; ++y) {
        const Index row = section.start[0] + y * section.stride[0];
        const double north = grid->rows()[static_cast<std::size_t>(row)];
        ASSERT_NEAR(part_grid->rows()[static_cast<std::size_t>(y)], north,
                    1e-9 * std::max(1.0, std::fabs(north)));
        for (Index x = 0; x < shape[1]; ++x) {
          const Index column = section.start[1] + x * section.stride[1];
          const auto from = static_cast<std::size_t>(row * each.shape[1] + column);
          const auto to = static_cast<std::size_t>(y * shape[1] + x);
          ASSERT_NEAR(points.latitudes[to], all.latitudes[from], 2e-5);
          ASSERT_TRUE(same_longitude(points.longitudes[to], all.longitudes[from]))
              << points.longitudes[to] << " " << all.longitudes[from];
          const double east = grid->columns()[static_cast<std::size_t>(column)];
          const double its = part_grid->columns()[static_cast<std::size_t>(x)];
          ASSERT_TRUE(std::fabs(its - east) < 1e-9 * std::max(1.0, std::fabs(east)) ||
                      std::fabs(its + 360 - east) < 1e-9 * 360)
              << its << " " << east;
        }
      }
    }
  }
}

TEST(grib2_section, the_sample_of_the_whole_array_stays_the_origin_of_the_rest) {
  const Case lambert = cases()[5];
  FieldDefinition sample = on(lambert.keys, lambert.shape);
  const Result<ByteVector> message =
      encode(stream_of(), sample, {0, 0, hour, 0}, std::vector<double>(18 * 25, 1.5));
  ASSERT_TRUE(message.is_ok());
  const Section section{{18, 25}, {2, 1}, {15, 22}, {3, 4}, {}};
  const std::vector<Index> shape{5, 6};
  Georeference given{*message, {}};
  const sections::SectionGrid cut = sections::section_grid(given, section, shape);
  ASSERT_EQ(cut.no_grid, "");
  FieldDefinition part = on({}, shape);
  part.georeference = cut.georeference;
  part.section = section;
  const Points points = points_of(part);
  const Points all = points_of(sample);
  ASSERT_EQ(points.latitudes.size(), 30U);
  for (Index y = 0; y < 5; ++y)
    for (Index x = 0; x < 6; ++x)
      EXPECT_NEAR(points.latitudes[static_cast<std::size_t>(y * 6 + x)],
                  all.latitudes[static_cast<std::size_t>((2 + 3 * y) * 25 + 1 + 4 * x)], 2e-5);
}

TEST(grib2_section, rows_of_a_gaussian_grid_with_a_stride_are_refused_and_stand_in_netcdf) {
  const Case gaussian = cases().back();
  const Section section{gaussian.shape, {1, 0}, {29, 63}, {3, 2}, {}};
  const std::vector<Index> shape{10, 32};
  const sections::SectionGrid cut = sections::section_grid({{}, gaussian.keys}, section, shape);
  EXPECT_NE(cut.no_grid.find("stride 1"), std::string::npos) << cut.no_grid;
  FieldDefinition part = on(cut.georeference.keys, shape);
  part.section = section;
  part.section.no_grid = cut.no_grid;
  EXPECT_EQ(define(stream_of(), part).code(), Code::format);
  const auto whole = cf::grid_of(gaussian.keys, gaussian.shape);
  const auto grid = cf::grid_of(cut.georeference.keys, shape);
  ASSERT_TRUE(whole.is_ok() && grid.is_ok()) << grid.status().text();
  for (std::size_t y = 0; y < 10; ++y) EXPECT_DOUBLE_EQ(grid->rows()[y], whole->rows()[1 + 3 * y]);
}

Case lambert_of(const char* metres, const std::vector<Index>& shape) {
  return {"lambert",
          {{"gridType", "lambert"},
           {"latitudeOfFirstGridPointInDegrees", "39.671"},
           {"longitudeOfFirstGridPointInDegrees", "334.579"},
           {"LoVInDegrees", "352"},
           {"LaDInDegrees", "65"},
           {"Latin1InDegrees", "60"},
           {"Latin2InDegrees", "67"},
           {"DxInMetres", metres},
           {"DyInMetres", metres},
           {"jScansPositively", "1"},
           {"shapeOfTheEarth", "6"}},
          shape};
}

TEST(grib2_section, metres_are_as_exact_as_those_of_the_whole_grid) {
  const Case lambert = lambert_of("2500.00045", {18, 2000});
  const Section section{lambert.shape, {1, 1}, {17, 1999}, {3, 3}, {}};
  const std::vector<Index> shape{6, 667};
  const sections::SectionGrid cut = sections::section_grid({{}, lambert.keys}, section, shape);
  ASSERT_EQ(cut.no_grid, "");
  const auto whole = cf::grid_of(lambert.keys, lambert.shape);
  const auto grid = cf::grid_of(cut.georeference.keys, shape);
  ASSERT_TRUE(whole.is_ok() && grid.is_ok()) << grid.status().text();
  EXPECT_NEAR(grid->columns()[666] - grid->columns()[0], whole->columns()[1999] - whole->columns()[1], 1e-6);
  EXPECT_NEAR(grid->rows()[5] - grid->rows()[0], whole->rows()[16] - whole->rows()[1], 1e-6);
  FieldDefinition part = on(cut.georeference.keys, shape);
  part.section = section;
  const Status status = define(stream_of(), part);
  EXPECT_TRUE(status.is_ok()) << status.text();
}

TEST(grib2_section, a_map_of_one_row_or_column_keeps_the_increment_that_no_points_tell) {
  for (const bool is_row : {true, false}) {
    const std::vector<Index> all = is_row ? std::vector<Index>{1, 8} : std::vector<Index>{8, 1};
    const std::vector<Index> shape = is_row ? std::vector<Index>{1, 4} : std::vector<Index>{4, 1};
    const Section section =
        is_row ? Section{all, {0, 1}, {1, 8}, {1, 2}, {}} : Section{all, {1, 0}, {8, 1}, {2, 1}, {}};
    const Case lambert = lambert_of("2500", all);
    const sections::SectionGrid cut = sections::section_grid({{}, lambert.keys}, section, shape);
    ASSERT_EQ(cut.no_grid, "");
    const auto grid = cf::grid_of(cut.georeference.keys, shape);
    EXPECT_TRUE(grid.is_ok()) << grid.status().text();
    FieldDefinition part = on(cut.georeference.keys, shape);
    part.section = section;
    const Status status = define(stream_of(), part);
    EXPECT_TRUE(status.is_ok()) << status.text();
  }
}

TEST(grib2_section, a_grid_in_the_keys_of_the_field_is_refused) {
  FieldDefinition part = on({}, {6, 5});
  part.keys = small_grid();
  part.section = {{6, 10}, {0, 0}, {6, 9}, {1, 2}, {}};
  const Status status = define(stream_of(), part);
  EXPECT_EQ(status.code(), Code::format);
  EXPECT_NE(status.text().find("tr_layout_georeference"), std::string::npos) << status.text();
}

}  // namespace
}  // namespace tailrace::codec::test
