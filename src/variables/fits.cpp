// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <algorithm>
#include <cstring>

#include "variables/netcdf4.hpp"

// Builds that lack a format know its files, too, and say what they lack.
namespace tailrace::variables {

bool fits_netcdf4(const Opening& opening) {
  constexpr unsigned char mark[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
  if (opening.index != nullptr && opening.index->header.format == "netcdf4") return true;
  return opening.head.size() >= sizeof mark && std::memcmp(opening.head.data(), mark, sizeof mark) == 0;
}

}  // namespace tailrace::variables
