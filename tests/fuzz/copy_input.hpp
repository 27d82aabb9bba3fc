// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstddef>
#include <span>

namespace tailrace::fuzz {

/// Reads `bytes` as each structure of a checkpoint's files, and as a whole copy with all its elements. Must
/// return for any bytes. Returns true if they are a whole copy. Aborts if the results contradict one another.
bool read_input(std::span<const std::byte> bytes);

}  // namespace tailrace::fuzz
