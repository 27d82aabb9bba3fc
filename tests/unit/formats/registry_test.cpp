// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/registry.hpp"

#include <gtest/gtest.h>

namespace tailrace::formats {
namespace {

TEST(registry, an_unknown_format_is_an_error_with_the_nearest_name) {
  codec::StreamDefinition stream;
  stream.format = "grib";
  const Status status = make_codec(stream).status();
  EXPECT_EQ(status.code(), Code::settings);
  EXPECT_NE(status.text().find("grib2"), std::string::npos) << status.text();
}

TEST(registry, a_base_time_that_does_not_exist_is_refused) {
  codec::StreamDefinition stream;
  stream.format = "raw";
  stream.base = {2026, 2, 30, 0, 0, 0};
  EXPECT_EQ(make_codec(stream).status().code(), Code::argument);
  stream.calendar = Calendar::day_360;
  EXPECT_TRUE(make_codec(stream).is_ok());
}

}  // namespace
}  // namespace tailrace::formats
