// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/netcdf4/front_end.hpp"

#include <string_view>

#include "formats/netcdf4/superblock.hpp"

namespace tailrace::netcdf4 {

namespace {

bool fits(const sources::Opening& opening) {
  if (opening.index != nullptr && opening.index->header.format == "netcdf4") return true;
  if (opening.file == nullptr) return false;
  // Look at the first bytes before searching behind a user block, which few HDF5 files have.
  const std::string_view head(reinterpret_cast<const char*>(opening.head.data()), opening.head.size());
  if (head.starts_with("\x89HDF\r\n\x1a\n")) return true;
  if (head.starts_with("GRIB") && head.size() > 7 && (head[7] == 1 || head[7] == 2)) return false;
  const codec::ReadBytes read = [&](std::span<std::byte> to, Bytes offset) {
    return opening.file->read(to, offset);
  };
  const Result<std::optional<Bytes>> begin = find_superblock(read, opening.size);
  return !begin.is_ok() || begin->has_value();
}

}  // namespace

constinit const sources::FrontEnd front_end{.name = "NetCDF-4",
                                            .fits = fits,
#ifdef TAILRACE_HAVE_HDF5
                                            .scan = scan,
                                            .make = make_source
#endif
};

}  // namespace tailrace::netcdf4
