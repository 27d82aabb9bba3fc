// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <gtest/gtest.h>

#include "formats/index/ending.hpp"
#include "formats/netcdf4/superblock.hpp"
#include "formats/registry/registry.hpp"
#include "ground/storage/target.hpp"
#include "index_samples.hpp"

// The registry of a build without HDF5: what it says of NetCDF-4 files, and that it takes no ending away.
namespace tailrace::streams {
namespace {

constexpr const char* path = "fc.nc4";
constexpr Bytes data_begin = 512;

template <typename T>
void put_number(ByteVector& bytes, std::size_t at, T value) {
  for (std::size_t i = 0; i < sizeof value; ++i) bytes.at(at + i) = static_cast<std::byte>(value >> 8 * i);
}

/// A pair whose file another build has finished.
class FinishedPair : public ::testing::Test {
 protected:
  void SetUp() override {
    IndexHeader header = sample_header();
    header.format = "netcdf4";
    header.data_begin = data_begin;
    std::vector<IndexStep> steps{sample_step(0, data_begin)};
    steps.push_back(sample_step(1, steps.back().end));
    const auto data_end = static_cast<std::size_t>(steps.back().end);
    data_.resize(data_end + 100);
    constexpr std::string_view begin = "\x89HDF\r\n\x1a\n\x02\x08\x08", group = "OHDR";
    std::ranges::copy(std::as_bytes(std::span(begin)), data_.begin());
    put_number(data_, 20, ~std::uint64_t{0});
    put_number(data_, 28, std::uint64_t{data_.size()});
    put_number(data_, 36, std::uint64_t{data_end});
    put_number(data_, 44, netcdf4::metadata_checksum(std::span(data_).first(44)));
    std::ranges::copy(std::as_bytes(std::span(group)), data_.begin() + static_cast<std::ptrdiff_t>(data_end));
    closed_ = encode_index(header, steps, true);
    open_ = encode_index(header, steps, false);
    put(data_, closed_);
  }
  void put(const ByteVector& data, const ByteVector& index) {
    put_bytes(*target_, path, data);
    put_bytes(*target_, index_path(path), index);
  }
  void expect_stays(const ByteVector& data, const ByteVector& index) {
    EXPECT_EQ(get_bytes(*target_, path), data);
    EXPECT_EQ(get_bytes(*target_, index_path(path)), index);
  }
  static void expect_refused(const Status& status) {
    EXPECT_EQ(status.code(), Code::unsupported);
    EXPECT_NE(status.text().find("libhdf5-dev"), std::string::npos) << status.text();
    EXPECT_NE(status.text().find(path), std::string::npos) << status.text();
  }

  const std::shared_ptr<storage::Target> target_ = storage::memory_target();
  ByteVector data_, closed_, open_;
};

TEST_F(FinishedPair, stays_as_it_is_without_hdf5) {
  ASSERT_EQ(formats::find("netcdf4").status().code(), Code::ok);
  ASSERT_EQ((*formats::find("netcdf4"))->make, nullptr) << "the registry is that of a build without HDF5";
  const Result<Recovered> kept = recover(*target_, path);
  ASSERT_TRUE(kept.is_ok()) << kept.status().text();
  EXPECT_TRUE(write_ending(*target_, path, kept->contents).is_ok());
  expect_stays(data_, closed_);
}

TEST_F(FinishedPair, is_not_cut_without_hdf5) {
  expect_refused(recover(*target_, path, {0}).status());
  expect_stays(data_, closed_);
  expect_refused(remove_ending(*target_, path, "netcdf4", data_begin));
  expect_stays(data_, closed_);
  put(data_, open_);
  expect_refused(recover(*target_, path).status());
  expect_stays(data_, open_);
}

TEST_F(FinishedPair, that_lost_its_superblock_is_not_finished_without_hdf5) {
  ByteVector unfinished = data_;
  std::ranges::copy(formats::finishing("netcdf4")->unfinished().bytes, unfinished.begin());
  put(unfinished, closed_);
  const Result<Recovered> kept = recover(*target_, path);
  ASSERT_TRUE(kept.is_ok()) << kept.status().text();
  expect_refused(write_ending(*target_, path, kept->contents));
  expect_stays(unfinished, closed_);
}

}  // namespace
}  // namespace tailrace::streams
