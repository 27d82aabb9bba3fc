// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/cf/grid.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "formats/cf/model.hpp"

namespace tailrace::cf {
namespace {

codec::Keys globe() {
  return {{"gridType", "regular_ll"},
          {"latitudeOfFirstGridPointInDegrees", "90"},
          {"longitudeOfFirstGridPointInDegrees", "0"},
          {"latitudeOfLastGridPointInDegrees", "-90"},
          {"longitudeOfLastGridPointInDegrees", "359"}};
}

TEST(cf_grid, rows_and_columns_lie_evenly_between_first_and_last_point) {
  const Result<Grid> grid = grid_of(globe(), {181, 360});
  ASSERT_TRUE(grid.is_ok()) << grid.status().text();
  EXPECT_EQ(grid->kind, Grid::Kind::lat_lon);
  for (Index i = 0; i < 181; ++i) EXPECT_DOUBLE_EQ(grid->y.at(i), 90 - static_cast<double>(i));
  for (Index i = 0; i < 360; ++i) EXPECT_DOUBLE_EQ(grid->x.at(i), static_cast<double>(i));
}

TEST(cf_grid, increments_and_scanning_flags_stand_for_the_last_point) {
  const codec::Keys keys{{"gridType", "regular_ll"},
                         {"latitudeOfFirstGridPoint", "-10000000"},
                         {"longitudeOfFirstGridPoint", "0"},
                         {"jDirectionIncrementInDegrees", "0.5"},
                         {"iDirectionIncrementInDegrees", "2"},
                         {"jScansPositively", "1"},
                         {"Ni", "3"},
                         {"Nj", "5"}};
  const Result<Grid> grid = grid_of(keys, {15});
  ASSERT_TRUE(grid.is_ok()) << grid.status().text();
  EXPECT_DOUBLE_EQ(grid->y.last, -8);
  EXPECT_DOUBLE_EQ(grid->x.last, 4);
}

TEST(cf_grid, scanning_flags_may_come_as_one_number) {
  codec::Keys keys{{"gridType", "regular_ll"},
                   {"latitudeOfFirstGridPointInDegrees", "-10"},
                   {"longitudeOfFirstGridPointInDegrees", "20"},
                   {"jDirectionIncrementInDegrees", "0.5"},
                   {"iDirectionIncrementInDegrees", "2"},
                   {"scanningMode", "64"}};
  EXPECT_DOUBLE_EQ(grid_of(keys, {5, 3})->y.last, -8);
  keys.back().second = "128";
  EXPECT_DOUBLE_EQ(grid_of(keys, {5, 3})->y.last, -12);
  EXPECT_DOUBLE_EQ(grid_of(keys, {5, 3})->x.last, 16);
  for (const char* const mode : {"32", "16"}) {
    keys.back().second = mode;
    EXPECT_EQ(grid_of(keys, {5, 3}).status().code(), Code::format) << mode;
  }
}

TEST(cf_grid, a_row_may_go_over_the_end_of_the_circle) {
  codec::Keys keys = globe();
  keys[2].second = "350";
  keys[4].second = "10";
  EXPECT_DOUBLE_EQ(grid_of(keys, {3, 21})->x.at(20), 370);
  EXPECT_DOUBLE_EQ(grid_of(keys, {3, 21})->x.at(10), 360);
}

TEST(cf_grid, keys_that_are_not_enough_or_fit_to_another_shape_are_named) {
  codec::Keys keys = globe();
  keys.erase(keys.begin() + 3);
  EXPECT_NE(grid_of(keys, {181, 360}).status().text().find("latitudeOfLastGridPoint"), std::string::npos);
  keys = globe();
  keys.emplace_back("Ni", "180");
  EXPECT_NE(grid_of(keys, {181, 360}).status().text().find("Ni=180"), std::string::npos);
  EXPECT_EQ(grid_of(globe(), {65160}).status().code(), Code::format) << "one dimension alone needs Ni and Nj";
  EXPECT_EQ(grid_of(globe(), {360, 181}).status().code(), Code::ok) << "rows are not told otherwise";
  keys.emplace_back("Nj", "360");
  EXPECT_EQ(grid_of(keys, {180, 360}).status().code(), Code::format)
      << "rows and columns are the other way round";
  keys = globe();
  keys.emplace_back("jPointsAreConsecutive", "1");
  EXPECT_NE(grid_of(keys, {181, 360}).status().text().find("jPointsAreConsecutive"), std::string::npos);
  keys = globe();
  keys[1].second = "ninety";
  EXPECT_EQ(grid_of(keys, {181, 360}).status().code(), Code::format);
}

TEST(cf_grid, other_grids_have_no_coordinates) {
  EXPECT_EQ(grid_of({}, {10})->kind, Grid::Kind::unknown);
  EXPECT_EQ(grid_of({{"gridType", "mercator"}}, {10, 10})->kind, Grid::Kind::unknown);
}

/// The south pole of the turned grid, its origin, and points on both circles through the origin.
TEST(cf_grid, a_turned_grid_lies_where_its_pole_says) {
  Grid grid;
  grid.kind = Grid::Kind::rotated;
  grid.south_pole_latitude = -30;
  grid.south_pole_longitude = 10;
  EXPECT_NEAR(grid.on_globe(-90, 0).latitude, -30, 1e-9);
  EXPECT_NEAR(grid.on_globe(-90, 0).longitude, 10, 1e-9);
  EXPECT_NEAR(grid.on_globe(0, 0).latitude, 60, 1e-9);
  EXPECT_NEAR(grid.on_globe(0, 0).longitude, 10, 1e-9);
  EXPECT_NEAR(grid.on_globe(30, 0).latitude, 90, 1e-5);
  EXPECT_NEAR(grid.on_globe(0, 90).latitude, 0, 1e-9);
  EXPECT_NEAR(grid.on_globe(0, 90).longitude, 100, 1e-9);
  EXPECT_NEAR(grid.on_globe(0, -90).longitude, -80, 1e-9);
}

codec::Keys plane() {
  return {{"gridType", "polar_stereographic"},
          {"latitudeOfFirstGridPointInDegrees", "60"},
          {"longitudeOfFirstGridPointInDegrees", "-45"},
          {"LaDInDegrees", "60"},
          {"orientationOfTheGridInDegrees", "0"},
          {"Dx", "100000000"},
          {"DyInMetres", "100000"},
          {"jScansPositively", "1"}};
}

TEST(cf_grid, a_plane_at_the_pole_has_metres_from_the_pole) {
  const Result<Grid> grid = grid_of(plane(), {5, 4});
  ASSERT_TRUE(grid.is_ok()) << grid.status().text();
  // On the parallel of true scale the distance from the axis is that on the globe.
  const double rho = 6367470 * std::cos(std::numbers::pi / 3);
  EXPECT_NEAR(grid->x.first, -rho / std::numbers::sqrt2, 1e-3);
  EXPECT_NEAR(grid->y.first, -rho / std::numbers::sqrt2, 1e-3);
  EXPECT_DOUBLE_EQ(grid->x.last - grid->x.first, 300000) << "Dx counts millimetres";
  EXPECT_DOUBLE_EQ(grid->y.last - grid->y.first, 400000);
  EXPECT_NEAR(grid->on_globe(0, 0).latitude, 90, 1e-9);
}

TEST(cf_grid, a_projection_that_is_half_described_is_refused_by_the_key_it_lacks) {
  for (const std::string_view lacking : {"LaD", "DyInMetres", "latitudeOfFirstGridPointInDegrees"}) {
    codec::Keys keys = plane();
    std::erase_if(keys, [&](const auto& key) { return key.first.starts_with(lacking); });
    EXPECT_NE(grid_of(keys, {5, 4}).status().text().find(lacking), std::string::npos) << lacking;
  }
  codec::Keys keys = plane();
  keys.emplace_back("shapeOfTheEarth", "12");
  EXPECT_NE(grid_of(keys, {5, 4}).status().text().find("shapeOfTheEarth"), std::string::npos);
  keys = {{"gridType", "regular_gg"}, {"N", "32"}, {"latitudeOfFirstGridPointInDegrees", "50"}};
  EXPECT_NE(grid_of(keys, {64, 128}).status().text().find("64 rows"), std::string::npos);
}

codec::Keys with(codec::Keys keys, const std::string& name, const std::string& value) {
  std::erase_if(keys, [&](const auto& key) { return key.first == name; });
  keys.emplace_back(name, value);
  return keys;
}

codec::Keys cone() {
  return {{"gridType", "lambert"},
          {"latitudeOfFirstGridPointInDegrees", "40"},
          {"longitudeOfFirstGridPointInDegrees", "0"},
          {"LoVInDegrees", "5"},
          {"LaDInDegrees", "50"},
          {"Latin1InDegrees", "45"},
          {"Latin2InDegrees", "55"},
          {"DxInMetres", "100000"},
          {"DyInMetres", "100000"},
          {"jScansPositively", "1"}};
}

TEST(cf_grid, numbers_that_make_no_map_are_refused) {
  const auto refused = [](const codec::Keys& keys, std::string_view text) {
    const Status status = grid_of(keys, {5, 4}).status();
    EXPECT_EQ(status.code(), Code::format) << text;
    EXPECT_NE(status.text().find(text), std::string::npos) << status.text();
  };
  ASSERT_TRUE(grid_of(cone(), {5, 4}).is_ok());
  refused(with(cone(), "Latin1InDegrees", "90"), "'Latin1InDegrees' = 90");
  refused(with(cone(), "Latin2InDegrees", "-95"), "'Latin2InDegrees' = -95");
  refused(with(cone(), "Latin2InDegrees", "-45"), "make no cone");
  refused(with(cone(), "LaDInDegrees", "-90"), "nowhere on the globe");
  refused(with(cone(), "LoVInDegrees", "nan"), "'LoVInDegrees' = nan");
  refused(with(cone(), "LaDInDegrees", "inf"), "'LaDInDegrees' = inf");
  refused(with(cone(), "DxInMetres", "0"), "'DxInMetres' = 0");
  refused(with(cone(), "DyInMetres", "-5"), "'DyInMetres' = -5");
  refused(with(cone(), "DyInMetres", "inf"), "'DyInMetres' = inf");
  refused(with(cone(), "DyInMetres", "4000000"), "nowhere on the globe");  // beyond the pole
  refused(with(cone(), "latitudeOfFirstGridPointInDegrees", "-90"), "nowhere on the globe");
  for (const codec::Keys& keys : {cone(), plane()}) {
    refused(with(keys, "latitudeOfFirstGridPointInDegrees", "91"),
            "'latitudeOfFirstGridPointInDegrees' = 91");
    codec::Keys flat = with(keys, "shapeOfTheEarth", "1");
    flat.emplace_back("scaledValueOfRadiusOfSphericalEarth", "0");
    refused(flat, "must be positive");
  }
  refused(with(plane(), "LaDInDegrees", "91"), "'LaDInDegrees' = 91");
  refused(with(plane(), "latitudeOfFirstGridPointInDegrees", "-90"), "nowhere on the globe");
  refused(with(globe(), "longitudeOfFirstGridPointInDegrees", "inf"), "must be a finite number");
  EXPECT_TRUE(grid_of(with(cone(), "DxInMetres", "0"), {5, 1}).is_ok())
      << "a row of 1 point has no increment";
}

/// A corner on the meridian where the cone is cut open, opposite of the central one, and one at the pole.
TEST(cf_grid, corners_may_lie_at_the_very_edge_of_a_cone) {
  for (const auto& [longitude, to_west] : {std::pair("185", "0"), std::pair("-175", "1")}) {
    codec::Keys keys = with(cone(), "longitudeOfFirstGridPointInDegrees", longitude);
    keys = with(with(keys, "jScansPositively", "0"), "iScansNegatively", to_west);
    const Result<Grid> grid = grid_of(keys, {2, 2});
    EXPECT_TRUE(grid.is_ok()) << grid.status().text();
    EXPECT_FALSE(grid_of(with(keys, "iScansNegatively", *to_west == '0' ? "1" : "0"), {2, 2}).is_ok());
  }
  codec::Keys keys = with(cone(), "longitudeOfFirstGridPointInDegrees", "5");
  keys = with(keys, "jScansPositively", "0");
  for (const std::string sign : {"", "-"}) {
    for (const char* const parallel : {"Latin1InDegrees", "Latin2InDegrees", "LaDInDegrees"})
      keys = with(keys, parallel, sign + "50");
    keys = with(keys, "jScansPositively", sign.empty() ? "0" : "1");
    const Result<Grid> grid = grid_of(with(keys, "latitudeOfFirstGridPointInDegrees", sign + "90"), {5, 4});
    EXPECT_TRUE(grid.is_ok()) << grid.status().text();
  }
}

TEST(cf_grid, a_cone_that_touches_one_parallel_has_its_origin_there) {
  codec::Keys keys = with(with(cone(), "Latin1InDegrees", "45"), "Latin2InDegrees", "45");
  const Grid grid = *grid_of(with(keys, "LaDInDegrees", "50"), {5, 4});
  EXPECT_DOUBLE_EQ(grid.projection.origin_latitude, 45);
  EXPECT_NEAR(grid.projection.lambert({45, 5}).y, 0, 1e-6);
  EXPECT_EQ(grid, *grid_of(with(keys, "LaDInDegrees", "45"), {5, 4}));
  EXPECT_DOUBLE_EQ(grid_of(cone(), {5, 4})->projection.origin_latitude, 50) << "a cone that cuts has LaD";
}

TEST(cf_grid, the_south_pole_is_one_bit_of_the_flags_of_a_plane) {
  const codec::Keys south = with(plane(), "latitudeOfFirstGridPointInDegrees", "-60");
  const auto pole = [&](const char* name, const char* value) {
    return grid_of(with(south, name, value), {5, 4})->projection.origin_latitude;
  };
  EXPECT_EQ(pole("projectionCentreFlag", "128"), -90);
  EXPECT_EQ(pole("projectionCentreFlag", "192"), -90);
  EXPECT_EQ(pole("projectionCentreFlag", "64"), 90) << "bipolar and symmetric";
  EXPECT_EQ(pole("southPoleOnProjectionPlane", "1"), -90);
  EXPECT_EQ(pole("southPoleOnProjectionPlane", "0"), 90);
}

TEST(cf_grid, a_uuid_of_zeros_is_none) {
  codec::Keys keys{{"gridType", "unstructured_grid"}, {"uuidOfHGrid", std::string(32, '0')}};
  EXPECT_EQ(grid_of(keys, {6})->uuid, "");
  keys.back().second.back() = '1';
  EXPECT_EQ(grid_of(keys, {6})->uuid, "00000000-0000-0000-0000-000000000001");
}

TEST(cf_grid, rows_of_a_gaussian_grid_may_be_a_part_of_it) {
  const std::vector<double> all = grid_of({{"gridType", "regular_gg"}, {"N", "2"}}, {4, 8})->rows();
  EXPECT_NEAR(all[0], 59.444408, 1e-6);  // WMO's four rows of N = 2
  EXPECT_NEAR(all[1], 19.875719, 1e-6);
  EXPECT_DOUBLE_EQ(all[3], -all[0]);
  const Result<Grid> part = grid_of({{"gridType", "regular_gg"},
                                     {"N", "2"},
                                     {"latitudeOfFirstGridPointInDegrees", "-19.875719"},
                                     {"jScansPositively", "1"}},
                                    {2, 8});
  ASSERT_TRUE(part.is_ok()) << part.status().text();
  EXPECT_EQ(part->rows(), (std::vector<double>{all[2], all[1]}));
  EXPECT_DOUBLE_EQ(part->columns()[7], 315);
}

TEST(cf_grid, told_coordinates_are_told_apart_by_their_checksum_wherever_the_values_are) {
  codec::Coordinates told{{2, 3}, 0, 7, ByteVector(96)};
  const Grid whole = *grid_of({}, {2, 3}, std::make_shared<const codec::Coordinates>(told));
  Packer out;
  whole.pack(out);
  EXPECT_LT(out.bytes().size(), 150U) << "the values are not packed";
  Unpacker in(out.bytes());
  const Result<Grid> read = Grid::unpack(in);
  ASSERT_TRUE(read.is_ok()) << read.status().text();
  EXPECT_EQ(*read, whole);
  told.checksum = 8;
  EXPECT_FALSE(*grid_of({}, {2, 3}, std::make_shared<const codec::Coordinates>(told)) == whole);
  EXPECT_FALSE(Grid() == whole);
  Packer damaged;
  told.values.pop_back();
  told.pack(damaged);
  Unpacker again(damaged.bytes());
  EXPECT_EQ(codec::Coordinates::unpack(again).status().code(), Code::corrupt);
}

TEST(cf_grid, told_coordinates_of_a_turned_grid_stay_turned) {
  const auto told =
      std::make_shared<const codec::Coordinates>(codec::Coordinates{{2, 3}, 0, 7, ByteVector(96)});
  for (const auto& [type, turned] : {std::pair("rotated_ll", true), std::pair("lambert", true),
                                     std::pair("regular_ll", false), std::pair("unstructured_grid", false)}) {
    const Grid grid = *grid_of({{"gridType", type}}, {2, 3}, told);
    EXPECT_EQ(grid.kind, Grid::Kind::told);
    EXPECT_EQ(grid.is_turned(), turned) << type;
    Packer out;
    grid.pack(out);
    Unpacker in(out.bytes());
    EXPECT_EQ(*Grid::unpack(in), grid) << type;
  }
}

TEST(cf_grid, grids_are_close_if_only_last_bits_of_their_numbers_differ) {
  for (const codec::Keys& keys : {cone(), plane()}) {
    const Grid grid = *grid_of(keys, {5, 4});
    Grid other = grid;
    other.x.first *= 1 + 1e-14;
    other.projection.central_longitude += 1e-14;
    EXPECT_FALSE(grid == other);
    EXPECT_TRUE(are_close(grid, other));
    other.y.last += 1;
    EXPECT_FALSE(are_close(grid, other));
    other = grid;
    other.y.points = 6;
    EXPECT_FALSE(are_close(grid, other));
  }
}

TEST(cf_grid, what_was_packed_is_read_back_and_damage_is_told) {
  const Grid grid = *grid_of(globe(), {181, 360});
  Packer out;
  grid.pack(out);
  ByteVector bytes = out.take();
  Unpacker in(bytes);
  EXPECT_EQ(*Grid::unpack(in), grid);
  bytes.pop_back();
  Unpacker torn(bytes);
  EXPECT_EQ(Grid::unpack(torn).status().code(), Code::corrupt);
}

/// Returns true if a run that has the numbers `now` may go on with a file that has `own`.
bool go_on(Type type, const std::vector<double>& own, const std::vector<double>& now, bool exactly = false) {
  ByteVector one, other;
  for (const double value : own) put_number(one, type, value);
  for (const double value : now) put_number(other, type, value);
  return check_same({{"a", type, one}}, {{"a", type, other}}, "attribute", exactly).is_ok();
}

TEST(cf_model, numbers_of_a_file_are_compared_by_their_type_and_their_size) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(go_on(Type::float64, {60, 0, nan}, {60 + 1e-10, 1e-12, nan})) << "last bits of coordinates";
  EXPECT_FALSE(go_on(Type::float64, {60, 0}, {60, 1e-8}));
  EXPECT_FALSE(go_on(Type::float64, {60, 0}, {60, nan}));
  EXPECT_TRUE(go_on(Type::float64, {1e-12, 2e-12}, {1e-12, 2e-12 + 1e-24}));
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(go_on(Type::float64, {infinity, -infinity}, {infinity, -infinity}));
  EXPECT_FALSE(go_on(Type::float64, {infinity}, {5}));
  EXPECT_FALSE(go_on(Type::float64, {infinity}, {-infinity}));
  EXPECT_FALSE(go_on(Type::float64, {60, 0}, {60, 1e-10}, true)) << "attributes are not computed";
  EXPECT_FALSE(go_on(Type::float64, {1e-12, 2e-12}, {1e-12, 3e-12})) << "small, and another number";
  EXPECT_FALSE(go_on(Type::float32, {60, 1}, {60, std::nextafterf(1, 2)}));
  EXPECT_TRUE(go_on(Type::int32, {1, 2, 3, 4}, {1, 2, 3, 4}));
  EXPECT_FALSE(go_on(Type::int32, {1, 2, 3, 4}, {1, 2, 3, 5})) << "two of them would be one tiny float64";
  const ByteVector bytes(8);
  EXPECT_FALSE(check_same({{"a", Type::int32, bytes}}, {{"a", Type::float32, bytes}}).is_ok());
}

}  // namespace
}  // namespace tailrace::cf
