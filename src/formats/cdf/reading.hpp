// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <span>
#include <vector>

#include "formats/cf/found.hpp"
#include "formats/codec/codec.hpp"
#include "ground/base/status.hpp"

// Reads the headers of classic NetCDF files of any writer: CDF-1, CDF-2 and CDF-5.
namespace tailrace::cdf {

/// Returns true if a file with these first bytes is a classic NetCDF file.
[[nodiscard]] bool is_classic(std::span<const std::byte> first);

/// A header, and the places of its variables' elements in the file. All elements are big-endian.
struct ReadHeader {
  cf::FoundContents contents;
  struct VariablePlace {
    Bytes begin = 0;  // of the variable; if it has records, of its part of the first record
    Bytes size = 0;   // of one record, or of the whole variable if it has no records; without padding
    bool has_records = false;
  };
  std::vector<VariablePlace> of_variables;
  Index records = 0;  // as the header states them; if it does not, the whole ones that the file has room for
  Bytes record_size = 0;  // of all variables with records together
};

/// Reads and checks the header of a file of `size` bytes. After success all variables lie inside of the file
/// with all of their records. Never allocates more than a few times the size of the header. Code::corrupt if
/// the header contradicts itself or the file's size; the error names the place, what was expected and what
/// was found. An error of `read` is returned as it is.
Result<ReadHeader> read_header(const codec::ReadBytes& read, Bytes size);

}  // namespace tailrace::cdf
