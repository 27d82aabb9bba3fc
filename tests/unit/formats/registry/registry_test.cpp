// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/registry/registry.hpp"

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

TEST(registry, each_ending_promises_one_format_and_any_other_name_the_default) {
  for (const Format& format : all()) {
    for (const std::string_view ending : format.endings) {
      const Result<const Format*> promised = promised_by("out/FC+006" + std::string(ending));
      if (format.asked_as.empty()) {
        ASSERT_TRUE(promised.is_ok()) << ending;
        EXPECT_EQ(*promised, &format) << ending;
      } else {
        EXPECT_EQ(promised.status().code(), Code::settings) << ending;
        EXPECT_NE(promised.status().text().find(format.name), std::string::npos) << ending;
      }
    }
  }
  for (const char* const name : {"", "fc", "grib2", "fc.nc.part", "fc.bin"})
    EXPECT_EQ(*promised_by(name), &all().front()) << name;
}

TEST(registry, each_format_is_found_by_its_name_and_an_absent_one_by_its_words) {
  for (const Format& format : all()) {
    if (format.asked_as.empty()) {
      ASSERT_TRUE(find(format.name).is_ok()) << format.name;
      EXPECT_EQ(*find(format.name), &format);
    }
    for (const std::string_view word : format.asked_as) {
      const Status status = find(word).status();
      EXPECT_EQ(status.code(), Code::settings) << word;
      EXPECT_NE(status.text().find(format.name), std::string::npos) << status.text();
    }
  }
}

TEST(registry, each_format_is_explained_once_with_its_names_and_endings) {
  const std::string about = about_formats(), endings = about_endings();
  const auto count = [](const std::string& text, const std::string& part) {
    int times = 0;
    for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++times;
    return times;
  };
  for (const Format& format : all()) {
    const bool is_here = format.asked_as.empty();
    EXPECT_EQ(is_here, !format.about.empty()) << format.name;
    EXPECT_EQ(count(about, "`" + std::string(format.name) + "`"), is_here ? 1 : 0) << about;
    EXPECT_EQ(is_here ? count(about, ": " + std::string(format.about)) : 1, 1) << about;
    for (const std::string_view ending : format.endings) {
      const bool decides = is_here && &format != &all().front();
      EXPECT_EQ(count(endings, "`" + std::string(ending) + "`"), decides ? 1 : 0) << endings;
    }
  }
  EXPECT_TRUE(endings.starts_with("`.grib1` or `.grb1` means `grib1`; ")) << endings;
  EXPECT_TRUE(about.find("; `cdf5`, `cdf2` or `cdf1`: classic ") != std::string::npos) << about;
  EXPECT_TRUE(endings.find("`.nc4`, `.h5` or `.hdf5` means `netcdf4`; `.zarr` means `zarr`; any other means "
                           "`grib2`") != std::string::npos)
      << endings;
}

}  // namespace
}  // namespace tailrace::formats
