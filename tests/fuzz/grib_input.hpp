// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstddef>
#include <span>

namespace tailrace::fuzz {

/// Reads `bytes` as a kept inventory, and as a file of GRIB messages with all values of small grids. Returns
/// true if they are a file all of whose records are read. It returns, whatever they are, and aborts if the
/// result contradicts itself.
bool read_grib_input(std::span<const std::byte> bytes);

}  // namespace tailrace::fuzz
