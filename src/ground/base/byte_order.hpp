// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <bit>

#include "ground/base/types.hpp"

namespace tailrace {

/// Copies numbers of `size` bytes (1, 2, 4 or 8) and reverses the bytes of each. `length`, in bytes, is a
/// multiple of `size`. `to` and `from` are the same memory, or do not overlap.
void copy_reversed(std::byte* to, const std::byte* from, Bytes length, Bytes size);

/// Copies numbers of the host and turns them into the byte order `order`. `to` and `from` are the same
/// memory, or do not overlap.
void copy_ordered(std::byte* to, const std::byte* from, Bytes length, Bytes size, std::endian order);

}  // namespace tailrace
