// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>

#include "sources/front_end.hpp"

// Inventories are kept between runs, so that a file is looked through once.
namespace tailrace::sources {

/// Returns the inventory that is kept of the file, beside it or in the directory `cache`, if it fits the
/// file. Finds the records otherwise, and keeps the inventory in `cache`; "" = nowhere. A kept inventory that
/// cannot be read, or written, is never an error.
Result<Inventory> kept_or_scanned(const FrontEnd& front_end, const Opening& opening,
                                  const std::string& cache);

}  // namespace tailrace::sources
