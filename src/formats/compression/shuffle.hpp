// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstddef>
#include <span>

#include "ground/base/bytes.hpp"

namespace tailrace::compression {

/// Shuffles elements, as the filters of HDF5 and Zarr do: the first bytes of all elements, then all second
/// bytes, and so on. Only elements of 2, 4 and 8 bytes change places.
void shuffle(std::span<const std::byte> elements, Bytes element_size, ByteVector& out);
/// Undoes the shuffle of elements of any size: brings the bytes of each element together again. Bytes behind
/// the last whole element keep their place.
void unshuffle(std::span<const std::byte> shuffled, Bytes element_size, ByteVector& out);

}  // namespace tailrace::compression
