// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include "formats/sources/front_end.hpp"

namespace tailrace::netcdf4 {

/// Reads NetCDF-4 and other HDF5 files of any writer, and files of our own streams that are not finished yet.
extern const sources::FrontEnd front_end;

// Its functions, which builds with HDF5 have.
Result<sources::Inventory> scan(const sources::Opening& opening);
Result<std::shared_ptr<const sources::Source>> make_source(const sources::Opening& opening,
                                                           sources::Inventory inventory);

// The same for files of our own streams only, which have an index.
Result<sources::Inventory> scan_own(const sources::Opening& opening);
Result<std::shared_ptr<const sources::Source>> make_own_source(const sources::Opening& opening,
                                                               sources::Inventory inventory);

}  // namespace tailrace::netcdf4
