// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <algorithm>
#include <array>
#include <cstring>

#include "variables/netcdf4.hpp"
#include "variables/zarr.hpp"

// Builds that lack a format know its files, too, and say what they lack.
namespace tailrace::variables {

bool fits_netcdf4(const Opening& opening) {
  constexpr unsigned char mark[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
  if (opening.index != nullptr && opening.index->header.format == "netcdf4") return true;
  return opening.head.size() >= sizeof mark && std::memcmp(opening.head.data(), mark, sizeof mark) == 0;
}

/// Faults are found again by those who read the metadata.
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
