// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <gtest/gtest.h>
#include <hdf5.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "ground/base/bytes.hpp"
#include "ground/base/text.hpp"

// HDF5 files that no NetCDF library has made.
namespace tailrace::hdf5_file {

/// Returns the bytes of a file, and removes it.
inline ByteVector taken(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  ::unlink(path.c_str());
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

/// Returns a file with one dataset of 3 x 4 integers (0, 3, 6 ...) behind a user block. `set` may change the
/// dataset's creation properties, `change` the dataset itself.
inline ByteVector plain_hdf5(const std::function<void(hid_t)>& set, bool is_extended = false,
                             const std::function<void(hid_t)>& change = {}, hsize_t user_block = 0) {
  const std::string path = cat(testing::TempDir(), "plain.", ::getpid(), ".h5");
  const hid_t creation = H5Pcreate(H5P_FILE_CREATE);
  EXPECT_GE(H5Pset_userblock(creation, user_block), 0);
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation, H5P_DEFAULT);
  H5Pclose(creation);
  const hsize_t lengths[] = {3, 4}, most[] = {H5S_UNLIMITED, 4};
  const hid_t space = H5Screate_simple(2, lengths, is_extended ? most : nullptr),
              list = H5Pcreate(H5P_DATASET_CREATE);
  set(list);
  const hid_t data = H5Dcreate2(file, "data", H5T_STD_I32BE, space, H5P_DEFAULT, list, H5P_DEFAULT);
  std::vector<std::int32_t> values(12);
  for (std::int32_t i = 0; i < 12; ++i) values[static_cast<std::size_t>(i)] = i * 3;
  EXPECT_GE(H5Dwrite(data, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
  if (change) change(data);
  H5Lcreate_external("/etc/passwd", "/x", file, "elsewhere", H5P_DEFAULT, H5P_DEFAULT);
  H5Lcreate_soft("/data", file, "alias", H5P_DEFAULT, H5P_DEFAULT);
  H5Lcreate_hard(file, "/", file, "cycle", H5P_DEFAULT, H5P_DEFAULT);
  H5Dclose(data);
  H5Pclose(list);
  H5Sclose(space);
  H5Fclose(file);
  return taken(path);
}

}  // namespace tailrace::hdf5_file
