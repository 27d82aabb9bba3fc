// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include "formats/variables/names.hpp"

namespace tailrace::variables {

// NetCDF-4 and other HDF5 files of any writer, and those of our own streams before they are finished, as
// FrontEnd says.
bool fits_netcdf4(const Opening& opening);
Result<Inventory> scan_netcdf4(const Opening& opening);
Result<std::shared_ptr<const Source>> make_netcdf4(const Opening& opening, Inventory inventory);

// Files of our own streams alone, by their index.
Result<Inventory> scan_own_netcdf4(const Opening& opening);
Result<std::shared_ptr<const Source>> make_own_netcdf4(const Opening& opening, Inventory inventory);

}  // namespace tailrace::variables
