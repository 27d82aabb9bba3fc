// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>

#include "../../ground/storage/scratch.hpp"
#include "formats/grib2/sections.hpp"
#include "ground/base/text.hpp"
#include "messages.hpp"

// `tailrace index` of files that other programs have written, as a shell sees it.
namespace tailrace::sources {
namespace {

struct Outcome {
  int exit = -1;
  std::string output;  // standard output and standard error
};

class index_command : public ::testing::Test {
 protected:
  index_command() {
    ByteVector bytes;
    for (const char* level : {"500", "850"}) {
      const ByteVector one = test::message(2,
                                           test::with({{"dataDate", "20260301"},
                                                       {"dataTime", "0000"},
                                                       {"step", "6"},
                                                       {"shortName", "t"},
                                                       {"typeOfLevel", "isobaricInhPa"},
                                                       {"level", level}}),
                                           test::wave(test::small_points));
      bytes.insert(bytes.end(), one.begin(), one.end());
    }
    EXPECT_TRUE(storage::put_file(*target_, path_, storage::text_of(bytes)).is_ok());
  }

  Outcome run(const std::string& arguments, const std::string& cache = "") const {
    Outcome outcome;
    const std::string command = cat("TAILRACE_CACHE='", cache.empty() ? scratch_ / "cache" : cache, "' ",
                                    TAILRACE_CLI, " index ", arguments, " 2>&1");
    std::FILE* pipe = ::popen(command.c_str(), "r");
    std::array<char, 4096> buffer{};
    while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe))
      outcome.output.append(buffer.data(), got);
    const int status = ::pclose(pipe);
    outcome.exit = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
    return outcome;
  }
  static void expect_part(const Outcome& outcome, std::string_view part) {
    EXPECT_NE(outcome.output.find(part), std::string::npos) << outcome.output;
  }

  storage::ScratchDirectory scratch_;
  const std::shared_ptr<storage::Target> target_ = storage::posix_target();
  const std::string path_ = scratch_ / "a.grib";
};

TEST_F(index_command, shows_what_a_file_of_another_program_holds) {
  const Outcome outcome = run(path_);
  EXPECT_EQ(outcome.exit, 0);
  expect_part(outcome, "a.grib: GRIB, 2 records\n1 step, 2026-03-01T06:00:00Z");
  expect_part(outcome, "t  isobaricInhPa 500..850 (2)  6 x 10  2 records\n");
  expect_part(run("--records " + path_), "t  isobaricInhPa 850  2026-03-01T06:00:00Z  at ");
  const Outcome json = run("--json " + path_);
  if (json.exit == 0) expect_part(json, "\"level_type\": \"isobaricInhPa\"");
}

TEST_F(index_command, builds_inventories_in_the_cache_or_beside_the_files) {
  const Outcome built = run(cat("--build ", path_, " ", path_));
  EXPECT_EQ(built.exit, 0);
  expect_part(built, "kept as " + scratch_ / "cache/");
  expect_part(built, "2 records");
  EXPECT_FALSE(std::filesystem::exists(path_ + ".inventory"));
  EXPECT_EQ(target_->list(scratch_ / "cache")->size(), 1U);
  const Outcome beside = run(cat("--build --beside ", path_), "none");
  EXPECT_EQ(beside.exit, 0) << beside.output;
  EXPECT_TRUE(std::filesystem::exists(path_ + ".inventory"));
}

TEST_F(index_command, keeps_no_inventory_of_files_with_one_header) {
  const std::string path = scratch_ / "a.nc";
  const ByteVector no_variables(28);
  ASSERT_TRUE(storage::put_file(*target_, path, "CDF\1" + storage::text_of(no_variables)).is_ok());
  const Outcome built = run("--build " + path);
  EXPECT_EQ(built.exit, 0);
  expect_part(built, "a.nc: NetCDF (classic), 0 records");
  expect_part(built, "no inventory is kept");
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "cache"));
}

TEST_F(index_command, says_what_is_not_read) {
  ByteVector odd = test::message(2, test::with({{"shortName", "q"}}), test::wave(test::small_points));
  const std::size_t product = grib2::section_begin(odd, 4);
  odd[product + 8] = std::byte{107};
  odd[product + 7] = std::byte{0x7f};
  ByteVector bytes = test::message(2, test::with({{"shortName", "t"}}), test::wave(test::small_points));
  bytes.insert(bytes.end(), odd.begin(), odd.end());
  ASSERT_TRUE(storage::put_file(*target_, path_, storage::text_of(bytes)).is_ok());
  // The second time it comes from the cache.
  for (int i = 0; i < 2; ++i) {
    const Outcome outcome = run(path_);
    EXPECT_EQ(outcome.exit, 0);
    expect_part(outcome, "GRIB, 1 record\n");
    expect_part(outcome, "\nnot read: GRIB message at byte ");
    expect_part(outcome, "template 4.32619, which is unknown to ecCodes");
    EXPECT_EQ(outcome.output.find("ECCODES"), std::string::npos) << outcome.output;
  }
}

TEST_F(index_command, says_what_is_wrong) {
  EXPECT_EQ(run(cat("--build ", path_), "none").exit, 2);
  EXPECT_EQ(run(cat(path_, " ", path_)).exit, 2);
  EXPECT_EQ(run(cat("--beside ", path_)).exit, 2);
  EXPECT_EQ(run(cat("--build ", scratch_ / "none.grib")).exit, 1);
  const std::string text = scratch_ / "a.txt";
  ASSERT_TRUE(storage::put_file(*target_, text, "1:0:d=2026030100:TMP\n").is_ok());
  const Outcome other = run(cat("--build ", text, " ", path_));
  EXPECT_EQ(other.exit, 1);
  expect_part(other, "is in no format that is read (raw, NetCDF (classic), NetCDF-4, GRIB, Zarr): ");
  expect_part(other, "kept as ");
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) - 10);
  const Outcome cut = run(path_);
  EXPECT_EQ(cut.exit, 4);
  expect_part(cut, "up to the end of the file; it was cut, or is still being written");
}

}  // namespace
}  // namespace tailrace::sources
