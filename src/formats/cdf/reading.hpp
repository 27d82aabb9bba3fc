// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <span>
#include <vector>

#include "formats/cf/found.hpp"
#include "formats/codec/codec.hpp"
#include "ground/base/status.hpp"

// The header of a classic NetCDF file of any writer: CDF-1, CDF-2 and CDF-5.
namespace tailrace::cdf {

/// Returns true if a file with these first bytes is a classic NetCDF file.
[[nodiscard]] bool is_classic(std::span<const std::byte> first);

/// A header, and where the elements of its variables lie. All elements are big-endian.
struct ReadHeader {
  cf::FoundContents contents;
  struct Place {
    Bytes begin = 0;  // of the first record, in variables that have records
    Bytes size = 0;   // in one record, or in all, without padding
    bool has_records = false;
  };
  std::vector<Place> of_variables;
  Index records = 0;      // whole ones, as the header tells them or, if it does not, as the file's size does
  Bytes record_size = 0;  // of one record of all variables
};

/// Reads and checks the header of a file of `size` bytes. All variables lie inside of the file with all of
/// their records. Never allocates more than a few times the bytes of the header. Code::corrupt names the
/// place, what was expected and what was found; an error of `read` is returned as it is.
Result<ReadHeader> read_header(const codec::ReadBytes& read, Bytes size);

}  // namespace tailrace::cdf
