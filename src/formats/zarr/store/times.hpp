// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <array>

#include "ground/base/bytes.hpp"

namespace tailrace::zarr {

inline constexpr Bytes time_bytes = 8;
/// The value of a time that was not written: NaN, big-endian.
inline constexpr std::array<std::byte, time_bytes> no_time{std::byte{0x7f}, std::byte{0xf8}};

/// Returns `size` bytes of times that were not written.
inline ByteVector no_times(Bytes size) {
  ByteVector none;
  while (std::ssize(none) < size) none.insert(none.end(), no_time.begin(), no_time.end());
  return none;
}

}  // namespace tailrace::zarr
