// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <algorithm>
#include <array>
#include <string_view>

#include "formats/netcdf4/superblock.hpp"
#include "formats/variables/netcdf4.hpp"
#include "formats/variables/zarr.hpp"

// Compiled in every build: a build that lacks a format still recognises its files, and its error says what
// the build lacks.
namespace tailrace::variables {

// An error of storage counts as a fit: `scan` then meets the error again and returns it.

bool fits_netcdf4(const Opening& opening) {
  if (opening.index != nullptr && opening.index->header.format == "netcdf4") return true;
  if (opening.file == nullptr) return false;
  // Look at the first bytes before searching behind a user block, which few HDF5 files have.
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
