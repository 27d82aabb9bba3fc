// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "ground/base/status.hpp"

namespace tailrace {

/// Identifies one run of a program. All bytes zero: no run.
struct Uuid {
  std::array<std::uint8_t, 16> bytes{};

  /// Returns a new random UUID (RFC 4122, version 4).
  static Uuid random();
  static Result<Uuid> parse(std::string_view text);
  [[nodiscard]] std::string text() const;  // "6f1c0d2e-....", 36 characters
  friend bool operator==(const Uuid&, const Uuid&) = default;
};

}  // namespace tailrace
