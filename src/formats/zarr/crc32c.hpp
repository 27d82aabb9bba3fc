// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "ground/base/bytes.hpp"

namespace tailrace::zarr {

/// Returns the table of CRC-32C: by value of a byte, what the byte adds to the sum.
[[nodiscard]] constexpr std::array<std::uint32_t, 256> crc32c_of_bytes() {
  std::array<std::uint32_t, 256> sums{};
  for (std::uint32_t i = 0; i < sums.size(); ++i) {
    sums[i] = i;
    for (int bit = 0; bit < 8; ++bit) sums[i] = (sums[i] >> 1) ^ ((sums[i] & 1) != 0 ? 0x82f63b78u : 0u);
  }
  return sums;
}

/// Returns the CRC-32C (RFC 3720, appendix B.4) of a shard's index. An index is short, so no library is
/// needed for it: those that have CRC-32C are made for gigabytes.
[[nodiscard]] constexpr std::uint32_t crc32c(std::span<const std::byte> bytes) {
  constexpr std::array<std::uint32_t, 256> of_bytes = crc32c_of_bytes();
  std::uint32_t sum = ~std::uint32_t{0};
  for (const std::byte each : bytes)
    sum = (sum >> 8) ^ of_bytes[(sum ^ static_cast<std::uint32_t>(each)) & 0xff];
  return ~sum;
}

}  // namespace tailrace::zarr
