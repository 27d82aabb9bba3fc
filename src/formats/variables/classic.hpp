// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include "formats/variables/names.hpp"

namespace tailrace::variables {

// The functions of FrontEnd for classic NetCDF files of any writer (CDF-1, CDF-2, CDF-5).
bool fits_classic(const Opening& opening);
Result<Inventory> scan_classic(const Opening& opening);
Result<std::shared_ptr<const Source>> make_classic(const Opening& opening, Inventory inventory);

}  // namespace tailrace::variables
