// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/base/uuid.hpp"

#include <random>

#include "ground/base/text.hpp"

namespace tailrace {
namespace {

constexpr bool dash_before(std::size_t byte) { return byte == 4 || byte == 6 || byte == 8 || byte == 10; }

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

Uuid Uuid::random() {
  // The system's random generator is used, not a seeded one: two jobs started in the same instant must
  // differ.
  std::random_device device;
  Uuid uuid;
  for (std::size_t i = 0; i < 16; i += 4) {
    const std::uint32_t word = device();
    for (std::size_t j = 0; j < 4; ++j) uuid.bytes[i + j] = static_cast<std::uint8_t>(word >> (8 * j));
  }
  uuid.bytes[6] = static_cast<std::uint8_t>((uuid.bytes[6] & 0x0F) | 0x40);
  uuid.bytes[8] = static_cast<std::uint8_t>((uuid.bytes[8] & 0x3F) | 0x80);
  return uuid;
}

Result<Uuid> Uuid::parse(std::string_view text) {
  const Status bad(Code::argument,
                   cat("\"", text, "\" is no UUID such as 123e4567-e89b-42d3-a456-426614174000"));
  // The text may have all dashes or none.
  const bool has_dashes = text.size() == 36;
  if (!has_dashes && text.size() != 32) return bad;
  Uuid uuid;
  std::size_t at = 0;
  for (std::size_t i = 0; i < 16; ++i) {
    if (has_dashes && dash_before(i) && text[at++] != '-') return bad;
    const int high = hex_digit(text[at++]);
    const int low = hex_digit(text[at++]);
    if (high < 0 || low < 0) return bad;
    uuid.bytes[i] = static_cast<std::uint8_t>(high * 16 + low);
  }
  return uuid;
}

std::string Uuid::text() const {
  std::string out;
  for (std::size_t i = 0; i < 16; ++i) {
    if (dash_before(i)) out += '-';
    out += "0123456789abcdef"[bytes[i] >> 4];
    out += "0123456789abcdef"[bytes[i] & 15];
  }
  return out;
}

}  // namespace tailrace
