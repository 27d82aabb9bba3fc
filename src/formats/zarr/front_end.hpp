// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include "formats/sources/front_end.hpp"

namespace tailrace::zarr {

/// Reads Zarr stores in directories, of any writer (versions 3 and 2) and of our own streams.
extern const sources::FrontEnd front_end;

// Its functions, which builds with Zarr have.
Result<sources::Inventory> scan(const sources::Opening& opening);
Result<std::shared_ptr<const sources::Source>> make_source(const sources::Opening& opening,
                                                           sources::Inventory inventory);

}  // namespace tailrace::zarr
