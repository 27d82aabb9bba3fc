// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>

#include "messages.hpp"

namespace tailrace::sources {
namespace {

using test::small_grid;

Grid grid_of(int edition, codec::Keys keys = {}) {
  codec::Keys all = small_grid;
  all.insert(all.end(), keys.begin(), keys.end());
  const auto target = test::file_of("a.grib", {test::message(edition, all, test::wave(test::small_points))});
  const auto source = open(target, "a.grib", "");
  EXPECT_TRUE(source.is_ok()) << source.status().text();
  return (*source)->inventory().grids.at(0);
}

codec::Georeference georeference(const codec::Keys& more) {
  codec::Keys keys{{"gridType", "regular_ll"}};
  keys.insert(keys.end(), more.begin(), more.end());
  return {{}, keys};
}

const codec::Georeference same = georeference({{"latitudeOfFirstGridPointInDegrees", "60"},
                                               {"longitudeOfFirstGridPointInDegrees", "0"},
                                               {"latitudeOfLastGridPointInDegrees", "55"},
                                               {"iDirectionIncrementInDegrees", "1"}});

TEST(check_grid, accepts_the_same_grid_however_it_is_said) {
  for (const int edition : {1, 2}) {
    const Grid grid = grid_of(edition);
    EXPECT_EQ(grid.shape, (std::vector<Index>{6, 10}));
    EXPECT_TRUE(check_grid(grid, {6, 10}, same).is_ok()) << check_grid(grid, {6, 10}, same).text();
    EXPECT_TRUE(check_grid(grid, {1, 6, 10}, same).is_ok());
    EXPECT_TRUE(check_grid(grid, {6, 10}, {}).is_ok());
    const codec::Georeference sample{test::message(2, small_grid, test::wave(test::small_points)), {}};
    EXPECT_TRUE(check_grid(grid, {6, 10}, sample).is_ok()) << check_grid(grid, {6, 10}, sample).text();
    // The same numbers under other names of ecCodes.
    const codec::Georeference millionths = georeference({{"latitudeOfFirstGridPoint", "60000000"},
                                                         {"longitudeOfFirstGridPoint", "0"},
                                                         {"jDirectionIncrementInDegrees", "1"},
                                                         {"longitudeOfLastGridPointInDegrees", "9"}});
    EXPECT_TRUE(check_grid(grid, {6, 10}, millionths).is_ok())
        << check_grid(grid, {6, 10}, millionths).text();
  }
}

TEST(check_grid, names_the_first_difference) {
  const Grid grid = grid_of(2);
  const Status shape = check_grid(grid, {10, 6}, {});
  EXPECT_EQ(shape.code(), Code::layout);
  EXPECT_NE(shape.text().find("10 x 6"), std::string::npos) << shape.text();
  EXPECT_NE(shape.text().find("6 x 10"), std::string::npos) << shape.text();
  const codec::Georeference south = georeference({{"latitudeOfFirstGridPointInDegrees", "59"},
                                                  {"longitudeOfFirstGridPointInDegrees", "0"},
                                                  {"latitudeOfLastGridPointInDegrees", "54"},
                                                  {"iDirectionIncrementInDegrees", "1"}});
  const Status moved = check_grid(grid, {6, 10}, south);
  EXPECT_EQ(moved.code(), Code::layout);
  EXPECT_NE(moved.text().find("latitudeOfFirstGridPointInDegrees=59, and the file says 60"),
            std::string::npos)
      << moved.text();
  const Status upside_down = check_grid(grid, {6, 10},
                                        georeference({{"latitudeOfFirstGridPointInDegrees", "55"},
                                                      {"longitudeOfFirstGridPointInDegrees", "0"},
                                                      {"latitudeOfLastGridPointInDegrees", "60"},
                                                      {"iDirectionIncrementInDegrees", "1"}}));
  EXPECT_EQ(upside_down.code(), Code::layout);
  codec::Georeference rotated = same;
  rotated.keys[0].second = "rotated_ll";
  rotated.keys.emplace_back("latitudeOfSouthernPoleInDegrees", "-40");
  rotated.keys.emplace_back("longitudeOfSouthernPoleInDegrees", "10");
  const Status turned = check_grid(grid, {6, 10}, rotated);
  EXPECT_EQ(turned.code(), Code::layout);
  EXPECT_NE(turned.text().find("rotated_ll"), std::string::npos) << turned.text();
}

// Sources give every row in the same direction, however the file has them.
TEST(check_grid, accepts_rows_in_alternating_directions) {
  const Grid grid = grid_of(2, {{"alternativeRowScanning", "1"}});
  EXPECT_TRUE(check_grid(grid, {6, 10}, same).is_ok()) << check_grid(grid, {6, 10}, same).text();
}

}  // namespace
}  // namespace tailrace::sources
