// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <vector>

#include "formats/cf/model.hpp"
#include "formats/codec/codec.hpp"
#include "formats/netcdf4/chunks.hpp"

namespace tailrace::netcdf4 {

/// A chunk of a variable, and its place in the file.
struct PlacedChunk {
  Index step = 0;
  Index level = 0;
  Index number = 0;  // among the chunks of its record, in C order
  Bytes offset = 0;
  Bytes length = 0;
};

/// Everything that the metadata of a file are made from.
struct Description {
  const cf::Contents* contents = nullptr;
  Index steps = 0;
  Bytes data_begin = 0, data_end = 0;
  /// A variable whose chunks lie in the file already, or of a field without time, which has no chunks.
  struct Field {
    std::size_t variable = 0;
    const RecordShape* record = nullptr;  // null: without time
    bool has_levels = false;              // the variable has a dimension for levels
    ByteVector fill;                      // one element, big-endian
    std::vector<PlacedChunk> chunks;
  };
  std::vector<Field> fields;
  /// A variable with times or their bounds. Its values for all steps are written with the metadata.
  struct Times {
    std::size_t variable = 0;
    std::vector<double> values;
  };
  std::vector<Times> times;
  bool has_data = true;  // false: the values of coordinates, which may be large, are left out
};

/// Returns Code::unsupported if the HDF5 library of this process has another version than the one of the
/// build.
Status check_library();
/// Makes the metadata of a file with the HDF5 library, in memory. Blocks while another thread uses the
/// library.
Result<codec::Ending> make_metadata(const Description& description);

}  // namespace tailrace::netcdf4
