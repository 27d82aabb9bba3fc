// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "ground/base/status.hpp"

namespace tailrace {

/// Names one run of a program; all zero = none.
struct Uuid {
  std::array<std::uint8_t, 16> bytes{};

  /// Returns a fresh random one (RFC 4122, version 4).
  static Uuid random();
  static Result<Uuid> parse(std::string_view text);
  [[nodiscard]] std::string text() const;  // "6f1c0d2e-....", 36 characters
  friend bool operator==(const Uuid&, const Uuid&) = default;
};

}  // namespace tailrace
