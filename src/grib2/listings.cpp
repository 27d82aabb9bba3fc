// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "grib2/listings.hpp"

#include <charconv>
#include <cstring>

#include "base/text.hpp"
#include "grib2/handle.hpp"

namespace tailrace::grib2 {

namespace {

constexpr Bytes indicator = 16;     // length of section 0
constexpr Bytes header_length = 5;  // length and number
// Section 3 of a reduced grid has a number for each of its rows.
constexpr Bytes longest_section = 64 << 20;

Status no_message(Bytes offset, std::string_view why) {
  return {Code::corrupt, cat("at byte ", offset, " stands no whole GRIB2 message: ", why)};
}

/// Reads `length` bytes behind those that `to` has.
Result<bool> append(const codec::ReadBytes& read, Bytes at, Bytes length, ByteVector& to) {
  const std::size_t before = to.size();
  to.resize(before + static_cast<std::size_t>(length));
  const Result<Bytes> got = read(std::span(to).subspan(before), at);
  TR_TRY(got.status());
  return *got == length;
}

}  // namespace

Result<ListedMessage> read_message(const codec::ReadBytes& read, Bytes offset) {
  // One read is enough for nearly all messages.
  constexpr std::size_t first_read = 1024;
  ByteVector bytes(first_read);
  const Result<Bytes> got = read(bytes, offset);
  TR_TRY(got.status());
  bytes.resize(static_cast<std::size_t>(*got));
  if (*got < indicator || std::memcmp(bytes.data(), "GRIB", 4) != 0)
    return no_message(offset, "it does not begin with GRIB");
  ListedMessage message;
  message.length = static_cast<Bytes>(get_number(&bytes[8], 8));
  Bytes at = indicator;
  for (int number = 1;; ++number) {
    const auto have = [&](Bytes end) -> Result<bool> {
      const auto size = static_cast<Bytes>(bytes.size());
      return size >= end ? Result<bool>(true) : append(read, offset + size, end - size, bytes);
    };
    const Result<bool> header = have(at + header_length);
    TR_TRY(header.status());
    if (!*header) return no_message(offset, "it is cut short");
    const auto length = static_cast<Bytes>(get_number(&bytes[static_cast<std::size_t>(at)], 4));
    const auto found = static_cast<int>(get_number(&bytes[static_cast<std::size_t>(at) + 4], 1));
    if (length < header_length || length > longest_section || found < number || found > 5)
      return no_message(offset, "its sections contradict their lengths");
    const Result<bool> whole = have(at + length);
    TR_TRY(whole.status());
    if (!*whole) return no_message(offset, "it is cut short");
    const auto begin = bytes.begin() + at;
    number = found;
    at += length;
    if (found < 5) continue;
    message.parts.head.assign(bytes.begin(), begin);
    message.parts.representation.assign(begin, bytes.begin() + at);
    break;
  }
  // Sections 1 and 4 with what every line tells of.
  const ByteVector& head = message.parts.head;
  const std::size_t product = section_begin(head, 4);
  constexpr std::size_t least[]{21, 34, 21};  // of sections 1, 4 and 5
  if (section_begin(head, 2) - section_begin(head, 1) < least[0] || head.size() - product < least[1] ||
      message.parts.representation.size() < least[2])
    return no_message(offset, "section 1, 4 or 5 is missing or cut short");
  return message;
}

Result<std::string> ecmwf_line(const codec::ReadBytes& read, std::int64_t /*number*/, Bytes offset) {
  const Result<ListedMessage> message = read_message(read, offset);
  TR_TRY(message.status());
  const std::unique_lock definitions = lock_definitions();
  const Result<Handle> handle = Handle::from_message(constant_message(message->parts, 0));
  TR_TRY(handle.status());
  std::string line = "{";
  const auto add = [&](std::string_view name, const std::optional<std::string>& value) {
    if (!value || value->empty()) return;
    std::string text;
    for (const char c : *value) {
      if (c == '"' || c == '\\') text += '\\';
      text += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
    line += cat(line.size() > 1 ? ", " : "", "\"", name, "\": \"", text, "\"");
  };
  // In the order of ECMWF's own files.
  for (const std::string_view name : {"domain", "date", "time", "expver", "class", "type", "stream", "step",
                                      "levelist", "levtype", "number"})
    add(name, handle->text(cat("mars.", name)));
  add("param", handle->text("shortName"));
  return cat(line, ", ", ecmwf_place_key, offset, ", \"_length\": ", message->length, "}\n");
}

std::optional<Bytes> ecmwf_offset(std::string_view line, std::int64_t /*number*/) {
  const std::size_t at = line.rfind(ecmwf_place_key);
  if (!line.starts_with('{') || !line.ends_with('}') || at == std::string_view::npos) return std::nullopt;
  line.remove_prefix(at + ecmwf_place_key.size());
  Bytes offset = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), offset);
  if (error != std::errc() || *end != ',') return std::nullopt;
  return offset;
}

}  // namespace tailrace::grib2
