// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include "formats/variables/names.hpp"

namespace tailrace::variables {

// The functions of FrontEnd for Zarr stores in directories, of any writer (versions 3 and 2) and of our own
// streams.
bool fits_zarr(const Opening& opening);
Result<Inventory> scan_zarr(const Opening& opening);
Result<std::shared_ptr<const Source>> make_zarr(const Opening& opening, Inventory inventory);

}  // namespace tailrace::variables
