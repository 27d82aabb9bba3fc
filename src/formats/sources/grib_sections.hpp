// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <array>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "ground/base/bytes.hpp"
#include "ground/base/status.hpp"
#include "ground/storage/target.hpp"

// The sections of GRIB messages, without any library: which bytes are there, before anything trusts them.
namespace tailrace::sources {

/// Returns `count` bytes from `offset` on, valid until the next call; fewer only at the end of the file.
using Fetch = std::function<Result<std::span<const std::byte>>(Bytes offset, Bytes count)>;

/// Fetches from a file, and reads more than was asked for at once.
Fetch fetch_from(storage::File& file);
/// Fetches from a message that lies at `begin` of a file.
Fetch fetch_from(std::span<const std::byte> message, Bytes begin);

struct GribSection {
  Bytes offset = 0;  // in the message
  Bytes length = 0;  // 0: the field has no such section
};

/// One field of a message. All sections lie inside of the message.
struct GribField {
  int edition = 2;
  Bytes message = 0;  // its offset in the file
  Bytes length = 0;   // of the message
  int number = 0;     // of the field in the message
  std::array<GribSection, 8>
      sections{};  // by their numbers; GRIB1: product, grid, bitmap and data are 1 to 4
};

/// Appends the fields of the message that begins at `offset`. `size` is where the file ends. Returns the
/// length of the message. Code::corrupt tells offset, expected and got.
Result<Bytes> read_message(const Fetch& fetch, Bytes offset, Bytes size, std::vector<GribField>& fields);

inline constexpr std::size_t edition_octet = 7;
/// Returns where a message begins in the text, or npos. Other texts may have the word GRIB, too, but a letter
/// or the end of a line where a message tells its edition. Behind a word among the last bytes of the text
/// that octet is not there: `otherwise` says what the word is then.
inline std::size_t find_message(std::string_view text, bool otherwise) {
  constexpr std::string_view mark = "GRIB";
  const auto tells_edition = [&](std::size_t at) {
    return at < text.size() ? static_cast<unsigned char>(text[at]) < '\t' : otherwise;
  };
  std::size_t at = text.find(mark);
  while (at != text.npos && !tells_edition(at + edition_octet)) at = text.find(mark, at + 1);
  return at;
}
/// Returns where the next message begins, at `offset` or behind it, or `size` if there is none. Zeros, and at
/// most `longest_gap` other bytes, may lie between, among them the word
/// GRIB in a text.
Result<Bytes> next_message(const Fetch& fetch, Bytes offset, Bytes size);
inline constexpr Bytes longest_gap = 65536;

/// Returns a message of the field alone that has the same headers and constant values: ecCodes tells from it
/// what and where the field is. Code::corrupt if the headers are longer than any grid needs.
Result<ByteVector> header_message(const Fetch& fetch, const GribField& field);

/// Returns a message of the field alone, with its values. `message` is the whole one.
ByteVector single_message(std::span<const std::byte> message, const GribField& field);

}  // namespace tailrace::sources
