// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstddef>
#include <span>

namespace tailrace::fuzz {

/// Reads `bytes` as each thing that the files of checkpoints hold, and as a whole copy with all its elements.
/// Returns true if they are a whole copy. It returns, whatever they are, and aborts if the result contradicts
/// itself.
bool read_input(std::span<const std::byte> bytes);

}  // namespace tailrace::fuzz
