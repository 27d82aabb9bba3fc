// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace tailrace {

/// Returns the XXH3-64 of `bytes`: the same value on every machine. It detects accidents, not attacks.
std::uint64_t checksum(std::span<const std::byte> bytes, std::uint64_t seed = 0);

/// Computes the XXH3-128 of bytes that come in pieces.
class Digest {
 public:
  Digest();
  ~Digest();
  void add(std::span<const std::byte> bytes);
  /// Returns 32 hexadecimal digits, most significant first, as `xxhsum -H2` prints them. More bytes may
  /// follow.
  [[nodiscard]] std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tailrace
