// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "eccodes.hpp"

namespace bench {

/// Calls `work` with the number of each record, dealt out to threads. Returns the seconds until all are done.
double on_threads(int threads, std::size_t records,
                  const std::function<void(int thread, std::size_t record)>& work);

/// Reads and decodes all records of a GRIB2 file by a bare loop over ecCodes: pread,
/// codes_handle_new_from_message, codes_get_double_array, into memory that is used again.
class EccodesDecoding {
 public:
  /// Ends the program with a message if the file cannot be read.
  EccodesDecoding(const Eccodes& library, const std::string& path, std::size_t values, int threads);
  ~EccodesDecoding();
  EccodesDecoding(const EccodesDecoding&) = delete;
  EccodesDecoding& operator=(const EccodesDecoding&) = delete;

  /// Returns the seconds for all records.
  double run();

 private:
  struct Room {
    std::vector<char> message;
    std::vector<double> values;
  };
  void decode(std::pair<off_t, std::size_t> place, Room& room) const;

  Eccodes library_;
  std::vector<Room> rooms_;  // by thread
  std::vector<std::pair<off_t, std::size_t>> places_;
  int file_ = -1;
};

}  // namespace bench
