// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "clocks.hpp"
#include "eccodes.hpp"

namespace bench {

/// Returns true for the packings of GRIB1: grib1_simple and grib1_second_order.
bool is_grib1(const std::string& packing);

/// Grid keys of a regular grid, in the words of an options string ("key=value key=value").
std::string grid_keys(std::int64_t columns, std::int64_t rows);

/// What a loop over ecCodes writes.
struct Written {
  std::int64_t columns = 0, rows = 0;
  std::string packing;  // simple, ccsds, grib1_simple or grib1_second_order
  long bits = 16;
};

/// The ways in which programs write GRIB with ecCodes: take a prepared handle, set what changes and the
/// values, get the encoded message, pwrite it. The peer of a server.
class EccodesLoop {
 public:
  /// A handle is cloned for each record, or kept for each field and level as CDI does: then only the step is
  /// set, besides the values.
  enum class Handles { cloned, kept };

  /// Ends the program with a message if ecCodes or the file system refuses.
  EccodesLoop(const Eccodes& library, const Written& what, const std::string& path,
              Handles handles = Handles::cloned);
  ~EccodesLoop();
  EccodesLoop(const EccodesLoop&) = delete;
  EccodesLoop& operator=(const EccodesLoop&) = delete;

  /// Encodes and writes one record behind the one before.
  void write(const std::vector<double>& values, std::int64_t level, std::int64_t hour);
  void sync() const;
  /// Empties the file, writes a record of each level, and returns the time from then until they are durable.
  Span write_step(const std::vector<std::vector<double>>& records, std::int64_t hour);
  [[nodiscard]] std::int64_t written() const { return offset_; }

 private:
  codes_handle* clone(std::int64_t level);
  void check(int error, const char* what) const;
  void set_long(codes_handle* handle, const char* key, long value) const;
  void set_double(codes_handle* handle, const char* key, double value) const;
  void set_text(codes_handle* handle, const char* key, const char* value) const;

  Eccodes library_;
  codes_handle* prepared_ = nullptr;
  Handles handles_;
  const char* lead_key_;
  std::map<std::int64_t, codes_handle*> kept_;  // by level
  std::string path_;
  int file_ = -1;
  off_t offset_ = 0;
};

}  // namespace bench
