// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <span>

#include "base/bytes.hpp"

namespace tailrace::zarr {

/// CRC-32C (RFC 3720, appendix B.4) of the few bytes of a shard's index. The libraries that have it are made
/// for gigabytes.
[[nodiscard]] constexpr std::uint32_t crc32c(std::span<const std::byte> bytes) {
  std::uint32_t sum = ~std::uint32_t{0};
  for (const std::byte each : bytes) {
    sum ^= static_cast<std::uint32_t>(each);
    for (int bit = 0; bit < 8; ++bit) sum = (sum >> 1) ^ ((sum & 1) != 0 ? 0x82f63b78u : 0u);
  }
  return ~sum;
}

}  // namespace tailrace::zarr
