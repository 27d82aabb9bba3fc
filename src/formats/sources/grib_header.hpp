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

/// Returns the value of the "First" or "Second" surface of a message, as ecCodes' key `level` tells positive
/// ones, if it is negative. ecCodes, up to version 2.50 at least, takes the sign for a bit of the number.
std::optional<double> negative_surface(const grib2::Handle& handle, const std::string& which);

/// Tells by ecCodes what the fields of a file are. One thread at a time.
class GribHeaders {
 public:
  /// Describes the field of a header_message. `grid_section` is the part of it that describes the grid. The
  /// place of the record is left to the caller. Code::corrupt if ecCodes does not understand it,
  /// Code::unsupported if it does not know a template.
  Result<Record> describe(std::span<const std::byte> message, std::span<const std::byte> grid_section);
  /// Returns the number, in `grids`, of the grid of a header_message.
  Result<int> grid_of(std::span<const std::byte> message, std::span<const std::byte> grid_section);
  /// Returns the name of the field of a header_message that `describe` does not understand, or "".
  static std::string name(std::span<const std::byte> message);
  /// The grids so far, each once.
  std::vector<Grid> grids;

 private:
  Result<Record> described_by_eccodes(std::span<const std::byte> message);

  std::map<std::uint64_t, int> known_;       // by the checksum of the section
  std::map<std::string, Record> described_;  // by the octets of headers that do not say when
};

}  // namespace tailrace::sources
