// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <eccodes.h>
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace bench {

/// Returns true for the packings of GRIB1: grib1_simple and grib1_second_order.
bool is_grib1(const std::string& packing);

/// Grid keys of a regular grid, in the words of an options string ("key=value key=value").
std::string grid_keys(std::int64_t columns, std::int64_t rows);

/// The ways in which programs write GRIB with ecCodes: take a prepared handle, set what changes and the
/// values, get the encoded message, pwrite it. The peer of a server.
class EccodesLoop {
 public:
  /// A handle is cloned for each record, or kept for each field and level as CDI does: then only the step is
  /// set, besides the values.
  enum class Handles { cloned, kept };

  /// Ends the program with a message if ecCodes or the file system refuses.
  EccodesLoop(std::int64_t columns, std::int64_t rows, const std::string& packing, const std::string& path,
              Handles handles = Handles::cloned);
  ~EccodesLoop();
  EccodesLoop(const EccodesLoop&) = delete;
  EccodesLoop& operator=(const EccodesLoop&) = delete;

  /// Encodes and writes one record behind the one before.
  void write(const std::vector<double>& values, std::int64_t level, std::int64_t hour);
  void sync() const;
  /// Makes the next record overwrite the file from its beginning, or begin an empty one.
  void rewind(bool empty);
  [[nodiscard]] std::int64_t written() const { return offset_; }

 private:
  codes_handle* clone(std::int64_t level);

  codes_handle* prepared_ = nullptr;
  Handles handles_;
  const char* lead_key_;
  std::map<std::int64_t, codes_handle*> kept_;  // by level
  std::string path_;
  int file_ = -1;
  off_t offset_ = 0;
};

}  // namespace bench
