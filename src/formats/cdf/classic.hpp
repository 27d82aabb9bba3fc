// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <span>
#include <vector>

#include "formats/cf/model.hpp"
#include "ground/base/bytes.hpp"
#include "ground/base/status.hpp"

// The header of a classic NetCDF file, as the NetCDF Classic Format Specification (Unidata) and the CDF-5
// File Format Specification (Argonne and Northwestern) lay it down. All numbers are big-endian.
namespace tailrace::cdf {

/// The version of a file, which is its byte behind "CDF". It decides how wide offsets and counts are.
enum class Version : char {
  cdf1 = 1,  // both 32 bits
  cdf2 = 2,  // offsets of 64 bits
  cdf5 = 5   // both 64 bits; it also has unsigned and 64-bit integers
};

/// The places of a file's variables: first all variables without records, in their order, and then one record
/// of the file after the other.
struct Places {
  struct Place {
    Bytes offset = 0;  // within a record, or among the variables that have no records
    Bytes size = 0;    // of one record, or of the whole variable if it has no records; a multiple of 4
  };
  Version version = Version::cdf5;
  std::vector<Place> of_variables;
  Bytes fixed_size = 0;   // of all variables without records together
  Bytes record_size = 0;  // of one record of the file: all variables with records together

  /// Places the last variable of `contents`. Returns Code::format if the version cannot hold it, and
  /// Code::argument if a record becomes too large. After an error the places must not be used.
  Status add_last(const cf::Contents& contents);
  /// Returns Code::format if the version cannot hold the places, because the header of `contents` is long.
  [[nodiscard]] Status check(const cf::Contents& contents) const;
};

/// Returns the bytes of a file up to its first record.
[[nodiscard]] ByteVector encode(const cf::Contents& contents, const Places& places);
/// The variables and attributes of a head that a run must give again to continue the file.
struct Lasting {
  std::vector<cf::Fixed> variables;   // those without records
  std::vector<cf::Fixed> attributes;  // cf::must_stay
};
/// Returns the variables and attributes that `head` holds. Code::corrupt if it is no NetCDF header.
Result<Lasting> lasting_in(std::span<const std::byte> head);
/// Returns the bytes with the number of records that stand at byte 4 of a file.
[[nodiscard]] ByteVector encode_records(Version version, std::int64_t records);

}  // namespace tailrace::cdf
