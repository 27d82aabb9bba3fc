// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>

#include "ground/storage/target.hpp"

namespace tailrace::journal {

/// Local; waits for storage. Returns a checksum of the first and the last 64 KiB within the first `size`
/// bytes of a file. It finds most files that were begun anew or replaced, at the price of a short read.
Result<std::uint64_t> sample_of(storage::File& file, Bytes size);

}  // namespace tailrace::journal
