// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/grib2/handle.hpp"
#include "formats/sources/source.hpp"
#include "ground/base/bytes.hpp"
#include "ground/base/status.hpp"

namespace tailrace::sources {

/// Returns the value of a negative surface of a message in the unit of ecCodes' key `level`, and nothing if
/// the surface is positive or missing. `which` is "First" or "Second". ecCodes, up to version 2.50 at least,
/// reads the sign as a bit of the number.
std::optional<double> negative_surface(const grib2::Handle& handle, const std::string& which);

/// Describes the fields of a file with ecCodes. Not safe for several threads at once.
class GribHeaders {
 public:
  /// Returns the record of a header_message, except for its place, which the caller sets. `grid_section` is
  /// the part of the message that describes the grid. Code::corrupt if ecCodes does not understand the
  /// message, Code::unsupported if ecCodes does not know one of its templates.
  Result<Record> describe(std::span<const std::byte> message, std::span<const std::byte> grid_section);
  /// Returns the index in `grids` of the grid of a header_message, and adds the grid if it is new.
  Result<int> grid_of(std::span<const std::byte> message, std::span<const std::byte> grid_section);
  /// Returns the name of the field if `describe` has failed, or "" if ecCodes does not know it either.
  static std::string name(std::span<const std::byte> message);
  /// The grids of all messages so far, each once.
  std::vector<Grid> grids;

 private:
  Result<Record> described_by_eccodes(std::span<const std::byte> message);

  std::map<std::uint64_t, int> known_;       // key: checksum of the grid section
  std::map<std::string, Record> described_;  // key: octets of the headers without the time
};

}  // namespace tailrace::sources
