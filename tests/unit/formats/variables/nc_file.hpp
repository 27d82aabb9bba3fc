// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <gtest/gtest.h>
#include <netcdf.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "ground/base/bytes.hpp"
#include "ground/base/text.hpp"

// Writes files with Unidata's NetCDF library.
namespace tailrace::nc_file {

inline void check(int error, const std::string& what) {
  ASSERT_EQ(error, NC_NOERR) << what << ": " << nc_strerror(error);
}

class Writer {
 public:
  /// `mode` is NC_CLOBBER with the kind of file: 0, NC_64BIT_OFFSET, NC_64BIT_DATA, NC_NETCDF4.
  explicit Writer(int mode) {
    static std::atomic<int> files{0};
    path_ = cat(testing::TempDir(), "nc_file.", ::getpid(), ".", ++files, ".nc");
    check(nc_create(path_.c_str(), NC_CLOBBER | mode, &id_), path_);
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  ~Writer() { ::unlink(path_.c_str()); }

  [[nodiscard]] int id() const { return id_; }
  int dimension(const std::string& name, std::size_t length) {
    int dimension = 0;
    check(nc_def_dim(id_, name.c_str(), length, &dimension), name);
    return dimension;
  }
  int variable(const std::string& name, int type, const std::vector<int>& dimensions) {
    int variable = 0;
    check(nc_def_var(id_, name.c_str(), type, static_cast<int>(dimensions.size()), dimensions.data(),
                     &variable),
          name);
    return variable;
  }
  void text(int variable, const std::string& name, const std::string& value) {
    check(nc_put_att_text(id_, variable, name.c_str(), value.size(), value.c_str()), name);
  }
  void number(int variable, const std::string& name, int type, const std::vector<double>& values) {
    check(nc_put_att_double(id_, variable, name.c_str(), type, values.size(), values.data()), name);
  }
  /// Writes a coordinate: a dimension, and the variable of the same name.
  int axis(const std::string& name, const std::vector<double>& values,
           const std::vector<std::pair<std::string, std::string>>& attributes, int type = NC_DOUBLE) {
    const int dimension = this->dimension(name, values.size());
    const int variable = this->variable(name, type, {dimension});
    for (const auto& [key, value] : attributes) text(variable, key, value);
    put(variable, {0}, {values.size()}, values);
    return dimension;
  }
  void put(int variable, const std::vector<std::size_t>& begin, const std::vector<std::size_t>& count,
           const std::vector<double>& values) {
    nc_enddef(id_);
    check(nc_put_vara_double(id_, variable, begin.data(), count.data(), values.data()), "put");
    nc_redef(id_);
  }
  void put(int variable, const std::vector<double>& values) {
    nc_enddef(id_);
    check(nc_put_var_double(id_, variable, values.data()), "put");
    nc_redef(id_);
  }
  /// Closes the file and returns its bytes.
  ByteVector bytes() {
    check(nc_close(id_), "close");
    std::ifstream in(path_, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
  }

 private:
  std::string path_;
  int id_ = -1;
};

inline std::vector<double> sequence(std::size_t count, double first = 0) {
  std::vector<double> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(first + static_cast<double>(i));
  return values;
}

}  // namespace tailrace::nc_file
