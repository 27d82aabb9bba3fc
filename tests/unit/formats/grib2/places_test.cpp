// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// The places of points as NetCDF gets them, against those that ecCodes computes for a GRIB message with the
// same keys.
#include <eccodes.h>

#include <cmath>

#include "formats/cf/grid.hpp"
#include "formats/grids/grids.hpp"
#include "grib_fixture.hpp"
#include "ground/base/text.hpp"

namespace tailrace::codec::test {
namespace {

std::vector<cf::Grid::Point> places_in_grib(const FieldDefinition& field) {
  const Result<ByteVector> message = encode(stream_of(), field, {0, 0, 3600, 0}, wave(field.elements()));
  EXPECT_TRUE(message.is_ok()) << message.status().text();
  std::vector<cf::Grid::Point> points;
  if (!message.is_ok()) return points;
  codes_handle* const handle = codes_handle_new_from_message(nullptr, message->data(), message->size());
  int error = 0;
  codes_iterator* const iterator = codes_grib_iterator_new(handle, 0, &error);
  EXPECT_EQ(error, 0) << codes_get_error_message(error);
  cf::Grid::Point point;
  double value = 0;
  while (iterator != nullptr &&
         codes_grib_iterator_next(iterator, &point.latitude, &point.longitude, &value) != 0)
    points.push_back(point);
  if (iterator != nullptr) codes_grib_iterator_delete(iterator);
  codes_handle_delete(handle);
  return points;
}

std::vector<cf::Grid::Point> places_in_netcdf(const FieldDefinition& field) {
  const Result<cf::Grid> grid = cf::grid_of(field.georeference.keys, field.shape);
  EXPECT_TRUE(grid.is_ok()) << grid.status().text();
  std::vector<cf::Grid::Point> points;
  for (const double y : grid->rows()) {
    for (const double x : grid->columns())
      points.push_back(grid->is_turned() ? grid->on_globe(y, x) : cf::Grid::Point{y, x});
  }
  return points;
}

void expect_same_places(const Keys& keys, const std::vector<Index>& shape) {
  FieldDefinition field = field_of("2t", "heightAboveGround", {2});
  field.shape = shape;
  field.georeference.keys = keys;
  const std::vector<cf::Grid::Point> expected = places_in_grib(field), found = places_in_netcdf(field);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_NEAR(found[i].latitude, expected[i].latitude, 1e-6) << "point " << i;
    const double east = found[i].longitude - expected[i].longitude;
    ASSERT_NEAR(std::remainder(east, 360), 0, 2e-6) << "point " << i;
  }
}

Keys lambert(double first_parallel, double second_parallel) {
  const double sign = first_parallel < 0 ? -1 : 1;
  return {{"gridType", "lambert"},
          {"Nx", "40"},
          {"Ny", "30"},
          {"latitudeOfFirstGridPointInDegrees", cat(sign * 40.5)},
          {"longitudeOfFirstGridPointInDegrees", "352"},
          {"LoVInDegrees", "5"},
          {"LaDInDegrees", cat(first_parallel)},
          {"Latin1InDegrees", cat(first_parallel)},
          {"Latin2InDegrees", cat(second_parallel)},
          {"DxInMetres", "20000"},
          {"DyInMetres", "15000"},
          {"projectionCentreFlag", sign < 0 ? "128" : "0"},
          {"jScansPositively", "1"}};
}

Keys polar(bool south) {
  Keys keys{{"gridType", "polar_stereographic"},
            {"Nx", "50"},
            {"Ny", "45"},
            {"latitudeOfFirstGridPointInDegrees", south ? "-45" : "45"},
            {"longitudeOfFirstGridPointInDegrees", "250"},
            {"LaDInDegrees", south ? "-70" : "60"},
            {"orientationOfTheGridInDegrees", "10"},
            {"DxInMetres", "100000"},
            {"DyInMetres", "120000"},
            {"jScansPositively", "1"}};
  if (south) keys.emplace_back("projectionCentreFlag", "128");
  return keys;
}

TEST(grib2_places, a_cone_lies_where_eccodes_says) {
  expect_same_places(lambert(46, 46), {30, 40});
  expect_same_places(lambert(45, 55), {30, 40});
}

/// ecCodes 2.28 puts southern cones into the north. PROJ 9 and ecCodes 2.50 say this.
TEST(grib2_places, a_southern_cone_opens_to_the_north) {
  const cf::Grid grid = *cf::grid_of(lambert(-40, -60), {30, 40});
  const std::vector<double> rows = grid.rows(), columns = grid.columns();
  EXPECT_NEAR(columns[0], -1091455.8613631357, 1e-3);
  EXPECT_NEAR(rows[0], -151116.36964518132, 1e-3);
  EXPECT_NEAR(grid.on_globe(rows[0], columns[0]).latitude, -40.5, 1e-9);
  EXPECT_NEAR(grid.on_globe(rows[0], columns[0]).longitude, -8, 1e-9);
  EXPECT_NEAR(grid.on_globe(rows[0], columns[1]).latitude, -40.53104962448671, 1e-9);
  EXPECT_NEAR(grid.on_globe(rows[0], columns[1]).longitude, -7.766475649618287, 1e-9);
  EXPECT_NEAR(grid.on_globe(rows[29], columns[39]).latitude, -37.39032541389537, 1e-9);
  EXPECT_NEAR(grid.on_globe(rows[29], columns[39]).longitude, 1.5010438418754768, 1e-9);
}

TEST(grib2_places, the_shape_of_the_earth_is_the_one_that_eccodes_takes) {
  const std::vector<Keys> earths{
      {{"shapeOfTheEarth", "0"}},
      {{"shapeOfTheEarth", "1"},
       {"scaleFactorOfRadiusOfSphericalEarth", "1"},
       {"scaledValueOfRadiusOfSphericalEarth", "63710000"}},
      {{"shapeOfTheEarth", "2"}},
      {{"shapeOfTheEarth", "4"}},
      {{"shapeOfTheEarth", "5"}},
      {{"shapeOfTheEarth", "7"},
       {"scaleFactorOfEarthMajorAxis", "0"},
       {"scaledValueOfEarthMajorAxis", "6380000"},
       {"scaleFactorOfEarthMinorAxis", "0"},
       {"scaledValueOfEarthMinorAxis", "6350000"}},
      {{"shapeOfTheEarth", "6"}},
      {{"shapeOfTheEarth", "8"}},
  };
  for (const Keys& earth : earths) {
    SCOPED_TRACE(earth.front().second);
    Keys keys = lambert(45, 55);
    keys.insert(keys.begin() + 1, earth.begin(), earth.end());
    expect_same_places(keys, {30, 40});
  }
}

TEST(grib2_places, a_plane_at_a_pole_lies_where_eccodes_says) {
  expect_same_places(polar(false), {45, 50});
  expect_same_places(polar(true), {45, 50});
}

TEST(grib2_places, rows_of_a_gaussian_grid_are_its_parallels) {
  expect_same_places({{"gridType", "regular_gg"}, {"N", "32"}}, {64, 128});
  expect_same_places({{"gridType", "regular_gg"}, {"N", "160"}}, {320, 640});
}

TEST(grib2_places, a_sample_tells_all_keys_of_a_projection) {
  FieldDefinition field = field_of("2t", "heightAboveGround", {2});
  for (const Keys& keys : {lambert(45, 55), polar(true)}) {
    field.georeference = {{}, keys};
    field.shape = keys.front().second == "lambert" ? std::vector<Index>{30, 40} : std::vector<Index>{45, 50};
    const Result<ByteVector> message = encode(stream_of(), field, {0, 0, 3600, 0}, wave(field.elements()));
    ASSERT_TRUE(message.is_ok()) << message.status().text();
    const Result<Keys> told = grids::keys_of({*message, {}});
    ASSERT_TRUE(told.is_ok()) << told.status().text();
    const Result<cf::Grid> from_sample = cf::grid_of(*told, field.shape);
    ASSERT_TRUE(from_sample.is_ok()) << from_sample.status().text();
    const cf::Grid from_keys = *cf::grid_of(keys, field.shape);
    EXPECT_EQ(from_sample->projection, from_keys.projection);
    EXPECT_NEAR(from_sample->x.first, from_keys.x.first, 0.2);
    EXPECT_NEAR(from_sample->y.last, from_keys.y.last, 0.2);
  }
}

TEST(grib2_places, a_sample_tells_which_unstructured_grid_it_is_on) {
  FieldDefinition field = field_of("2t", "heightAboveGround", {2});
  field.shape = {60};
  field.georeference.keys = {{"gridType", "unstructured_grid"},
                             {"numberOfGridUsed", "42"},
                             {"uuidOfHGrid", "a60bd5be123456789abcdef012345678"}};
  const Result<ByteVector> message = encode(stream_of(), field, {0, 0, 3600, 0}, wave(60));
  ASSERT_TRUE(message.is_ok()) << message.status().text();
  const Result<cf::Grid> grid = cf::grid_of(*grids::keys_of({*message, {}, nullptr}), {60});
  ASSERT_TRUE(grid.is_ok()) << grid.status().text();
  EXPECT_EQ(grid->number_used, 42);
  EXPECT_EQ(grid->uuid, "a60bd5be-1234-5678-9abc-def012345678");
}

}  // namespace
}  // namespace tailrace::codec::test
