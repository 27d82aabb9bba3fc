// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <algorithm>
#include <array>
#include <string_view>

#include "formats/netcdf4/superblock.hpp"
#include "formats/variables/netcdf4.hpp"
#include "formats/variables/zarr.hpp"

// Builds that lack a format know its files, too, and say what they lack.
namespace tailrace::variables {

// Faults of storage count as a fit: who reads the metadata finds them again.

bool fits_netcdf4(const Opening& opening) {
  if (opening.index != nullptr && opening.index->header.format == "netcdf4") return true;
  if (opening.file == nullptr) return false;
  // Most files need no look behind a user block.
  const std::string_view head(reinterpret_cast<const char*>(opening.head.data()), opening.head.size());
  if (head.starts_with("\x89HDF\r\n\x1a\n")) return true;
  if (head.starts_with("GRIB") && head.size() > 7 && (head[7] == 1 || head[7] == 2)) return false;
  const codec::ReadBytes read = [&](std::span<std::byte> to, Bytes offset) {
    return opening.file->read(to, offset);
  };
  const Result<std::optional<Bytes>> begin = netcdf4::find_superblock(read, opening.size);
  return !begin.is_ok() || begin->has_value();
}

bool fits_zarr(const Opening& opening) {
  if (opening.index != nullptr && opening.index->header.format == "zarr") return true;
  if (opening.file != nullptr) return false;
  return std::ranges::any_of(std::array{"/zarr.json", "/.zmetadata", "/.zgroup", "/.zarray"},
                             [&](const char* name) {
                               const Result<bool> exists = opening.target->exists(opening.path + name);
                               return !exists.is_ok() || *exists;
                             });
}

}  // namespace tailrace::variables
