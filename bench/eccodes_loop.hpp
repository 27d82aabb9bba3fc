// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <eccodes.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace bench {

/// Grid keys of a regular grid, in the words of an options string ("key=value key=value").
std::string grid_keys(std::int64_t columns, std::int64_t rows);

/// The way in which programs write GRIB with ecCodes: clone a prepared message, set what changes and the
/// values, get the encoded message, pwrite it. The peer of a server.
class EccodesLoop {
 public:
  /// Ends the program with a message if ecCodes or the file system refuses.
  EccodesLoop(std::int64_t columns, std::int64_t rows, const std::string& packing, const std::string& path);
  ~EccodesLoop();
  EccodesLoop(const EccodesLoop&) = delete;
  EccodesLoop& operator=(const EccodesLoop&) = delete;

  /// Encodes and writes one record behind the one before.
  void write(const std::vector<double>& values, std::int64_t level, std::int64_t hour);
  void sync() const;
  /// The next record overwrites the file from its beginning, or begins an empty one.
  void rewind(bool empty);
  [[nodiscard]] std::int64_t written() const { return offset_; }

 private:
  codes_handle* prepared_ = nullptr;
  std::string path_;
  int file_ = -1;
  off_t offset_ = 0;
};

}  // namespace bench
