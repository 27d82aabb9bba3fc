// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include "formats/variables/names.hpp"

namespace tailrace::variables {

// The functions of FrontEnd for NetCDF-4 and other HDF5 files of any writer, and for files of our own streams
// that are not finished yet.
bool fits_netcdf4(const Opening& opening);
Result<Inventory> scan_netcdf4(const Opening& opening);
Result<std::shared_ptr<const Source>> make_netcdf4(const Opening& opening, Inventory inventory);

// The same for files of our own streams only, which have an index.
Result<Inventory> scan_own_netcdf4(const Opening& opening);
Result<std::shared_ptr<const Source>> make_own_netcdf4(const Opening& opening, Inventory inventory);

}  // namespace tailrace::variables
