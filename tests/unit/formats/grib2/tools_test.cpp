// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// What other programs read: the tools of ecCodes and cdo, both required by the tests' packages.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "grib_fixture.hpp"

namespace tailrace::codec::test {
namespace {

std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return "cannot run";
  char buffer[4096];
  while (std::fgets(buffer, sizeof buffer, pipe) != nullptr) text += buffer;
  const int status = pclose(pipe);
  return status == 0 ? text : text + "\nexit status " + std::to_string(status);
}

/// A file of two levels of t, 10u and accumulated tp at two leads, and of a rotated grid.
class Forecast : public testing::Test {
 protected:
  void SetUp() override {
    const auto codec = codec_of(stream_of());
    ASSERT_TRUE(codec->define(field_of("t", "pressure", {850, 500})).is_ok());
    ASSERT_TRUE(codec->define(field_of("10u", "height", {10})).is_ok());
    FieldDefinition rain = field_of("tp");
    rain.statistic.process = Process::accum;
    ASSERT_TRUE(codec->define(rain).is_ok());
    const auto encoder = codec->encoder();
    ByteVector out;
    for (const std::int64_t lead : {3 * hour, 6 * hour}) {
      for (const RecordKey& key : {RecordKey{0, 0, lead, 0}, RecordKey{0, 1, lead, 0},
                                   RecordKey{1, 0, lead, 0}, RecordKey{2, 0, lead, 0}}) {
        std::vector<double> values = wave(60, 5, 280);
        ASSERT_TRUE(encoder->encode(key, reinterpret_cast<std::byte*>(values.data()), 60, out).is_ok());
      }
    }
    path_ = (std::filesystem::temp_directory_path() / ("codec_tools_" + std::to_string(getpid()) + ".grib2"))
                .string();
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(out.data()), static_cast<std::streamsize>(out.size()));
  }
  void TearDown() override { std::filesystem::remove(path_); }

  std::string path_;
};

TEST_F(Forecast, grib_get_reads_the_keys_of_every_message) {
  EXPECT_EQ(output_of("grib_get -p shortName,typeOfLevel,level,stepRange,validityTime " + path_),
            "t isobaricInhPa 850 3 300\nt isobaricInhPa 500 3 300\n10u heightAboveGround 10 3 300\ntp "
            "surface 0 0-3 300\n"
            "t isobaricInhPa 850 6 600\nt isobaricInhPa 500 6 600\n10u heightAboveGround 10 6 600\ntp "
            "surface 0 0-6 600\n");
  EXPECT_EQ(output_of("grib_count " + path_), "8\n");
}

TEST_F(Forecast, grib_is_valid_as_a_whole) {
  EXPECT_EQ(output_of("grib_ls -p totalLength,numberOfValues,max:d " + path_).find("ERROR"),
            std::string::npos);
  EXPECT_EQ(output_of("grib_dump -O " + path_).find("ERROR"), std::string::npos);
}

TEST_F(Forecast, cdo_reads_times_levels_and_grid) {
  const std::string info = output_of("cdo -s sinfo " + path_);
  for (const char* part : {"GRIB2", "2026-03-01 03:00:00  2026-03-01 06:00:00", "levels=2",
                           "points=60 (10x6)", "85000", "accum"})
    EXPECT_NE(info.find(part), std::string::npos) << part << " in\n" << info;
}

TEST_F(Forecast, cdo_decodes_the_values) {
  const std::vector<double> values = wave(60, 5, 280);
  const double most = *std::max_element(values.begin(), values.end());
  // One line a message.
  std::istringstream lines(output_of("cdo -s outputf,%.5f -fldmax " + path_));
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count)
    EXPECT_NEAR(std::atof(line.c_str()), most, 1e-4) << line;
  EXPECT_EQ(count, 8);
}

}  // namespace
}  // namespace tailrace::codec::test
