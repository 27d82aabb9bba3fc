// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/grib2/sample.hpp"

#include <gtest/gtest.h>

#include <map>

#include "formats/grib2/handle.hpp"

namespace tailrace::grib2 {
namespace {

std::map<std::string, std::string> keys_of(const ByteVector& sample, const codec::Keys& keys = {}) {
  const Result<codec::Keys> found = grid_keys({sample, keys});
  EXPECT_TRUE(found.is_ok()) << found.status().text();
  if (!found.is_ok()) return {};
  return {found->begin(), found->end()};
}

TEST(grib2_sample, tells_its_grid_and_what_is_given_counts_more) {
  Handle handle = *Handle::from_sample("rotated_ll_pl_grib2");
  ASSERT_EQ(handle.set("latitudeOfSouthernPoleInDegrees", -32.123457), 0);
  const auto message = handle.message();
  const ByteVector sample(message.begin(), message.end());
  const auto all = keys_of(sample);
  EXPECT_EQ(all.at("gridType"), "rotated_ll");
  EXPECT_EQ(all.at("Ni"), "16");
  EXPECT_EQ(all.at("Nj"), "31");
  EXPECT_EQ(all.at("latitudeOfFirstGridPointInDegrees"), "60");
  EXPECT_EQ(all.at("latitudeOfSouthernPoleInDegrees"), "-32.123457") << "to the last digit";
  const auto given = keys_of(sample, {{"latitudeOfFirstGridPoint", "1000000"}, {"gridType", "regular_ll"}});
  EXPECT_EQ(given.at("gridType"), "regular_ll");
  EXPECT_EQ(given.at("latitudeOfFirstGridPoint"), "1000000");
  EXPECT_EQ(given.count("latitudeOfFirstGridPointInDegrees"), 0U);
}

/// Lambert's and the polar grids have numbers of points and meridians under two names each.
TEST(grib2_sample, what_is_given_counts_more_under_each_of_its_names) {
  using Names = std::vector<std::string>;
  const std::vector<Names> all{{"Ni", "Nx"},
                               {"Nj", "Ny"},
                               {"LoVInDegrees", "LoV", "orientationOfTheGridInDegrees"},
                               {"projectionCentreFlag", "southPoleOnProjectionPlane"}};
  Handle handle = *Handle::from_sample("polar_stereographic_pl_grib2");
  const auto message = handle.message();
  const ByteVector sample(message.begin(), message.end());
  for (const Names& names : all) {
    for (const std::string& given : names) {
      const auto keys = keys_of(sample, {{given, "1"}});
      EXPECT_EQ(keys.at(given), "1");
      for (const std::string& other : names) EXPECT_EQ(keys.count(other), other == given ? 1U : 0U) << other;
    }
  }
}

TEST(grib2_sample, no_message_is_an_error_and_none_is_not_needed) {
  EXPECT_EQ(grid_keys({ByteVector(100), {}}).status().code(), Code::format);
  EXPECT_EQ(keys_of({}, {{"gridType", "lambert"}}).size(), 1U);
}

}  // namespace
}  // namespace tailrace::grib2
