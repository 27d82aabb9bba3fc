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

// Finds and checks the sections of GRIB messages without a library, before any other code trusts them.
namespace tailrace::sources {

/// Returns `count` bytes of a file from `offset` on, and fewer only at the end of the file. They are valid
/// until the next call.
using Fetch = std::function<Result<std::span<const std::byte>>(Bytes offset, Bytes count)>;

/// Returns a Fetch that reads a file. It reads at least 8 KiB at once, and keeps them for the next calls.
/// `file` must outlive it.
Fetch fetch_from(storage::File& file);
/// Returns a Fetch for a message in memory. `begin` is the offset of the message in its file.
Fetch fetch_from(std::span<const std::byte> message, Bytes begin);

struct GribSection {
  Bytes offset = 0;  // in the message
  Bytes length = 0;  // 0: the field lacks the section
};

/// One field of a message. All its sections lie within the message.
struct GribField {
  int edition = 2;
  Bytes message = 0;  // its offset in the file
  Bytes length = 0;   // of the message
  int number = 0;     // of the field in the message
  std::array<GribSection, 8>
      sections{};  // by their numbers; GRIB1: product, grid, bitmap and data are 1 to 4
};

/// Appends the fields of the message that begins at `offset` to `fields`. `size` is the size of the file.
/// Returns the length of the message. Code::corrupt names offset, expected and got.
Result<Bytes> read_message(const Fetch& fetch, Bytes offset, Bytes size, std::vector<GribField>& fields);

inline constexpr std::size_t edition_octet = 7;
/// Returns where a message begins in `text`, or npos. The word GRIB alone is not enough, as other texts may
/// have it, too: in a message the eighth octet is a small number, the edition, and in a text it is a letter
/// or the end of a line. If `text` ends before the eighth octet, the word counts as a message if `otherwise`
/// is true.
inline std::size_t find_message(std::string_view text, bool otherwise) {
  constexpr std::string_view mark = "GRIB";
  const auto tells_edition = [&](std::size_t at) {
    return at < text.size() ? static_cast<unsigned char>(text[at]) < '\t' : otherwise;
  };
  std::size_t at = text.find(mark);
  while (at != text.npos && !tells_edition(at + edition_octet)) at = text.find(mark, at + 1);
  return at;
}
/// Returns the offset of the next message, at `offset` or behind it, or `size` if there is none. Before it
/// may lie any number of zeros and at most `longest_gap` other bytes, which may be a text with the word GRIB.
/// Code::corrupt if there are more.
Result<Bytes> next_message(const Fetch& fetch, Bytes offset, Bytes size);
inline constexpr Bytes longest_gap = 65536;

/// Returns a message with the headers of this field and constant values in place of its own: ecCodes can
/// describe the field from it. Code::corrupt if the headers are longer than any grid needs.
Result<ByteVector> header_message(const Fetch& fetch, const GribField& field);

/// Returns a message that holds only this field, with its values. `message` is the whole message of the file.
ByteVector single_message(std::span<const std::byte> message, const GribField& field);

}  // namespace tailrace::sources
