// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/grib2/listings.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include "formats/grib2/edition1/sections.hpp"
#include "formats/grib2/edition1/time.hpp"
#include "formats/grib2/handle.hpp"
#include "ground/base/text.hpp"

namespace tailrace::grib2 {

namespace {

constexpr Bytes indicator = 16;     // length of section 0
constexpr Bytes header_length = 5;  // length and number
// A longer section is taken for damaged. Section 3 of a reduced grid may be long: it has a number for each
// row.
constexpr Bytes longest_section = 64 << 20;

Status no_message(Bytes offset, std::string_view why) {
  return {Code::corrupt, cat("at byte ", offset, " stands no whole GRIB message: ", why)};
}

/// Appends `length` bytes of the file, from `at` on, to `to`. Returns false if the file has fewer.
Result<bool> append(const codec::ReadBytes& read, Bytes at, Bytes length, ByteVector& to) {
  const std::size_t before = to.size();
  to.resize(before + static_cast<std::size_t>(length));
  const Result<Bytes> got = read(std::span(to).subspan(before), at);
  TR_TRY(got.status());
  return *got == length;
}

/// Returns the seconds that "6" or "90m" stand for. A number without a letter counts units of `unit_seconds`.
std::optional<std::int64_t> seconds_in(std::string_view text, std::int64_t unit_seconds) {
  std::int64_t count = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, count);
  if (error != std::errc()) return std::nullopt;
  const std::string_view letter(rest, static_cast<std::size_t>(end - rest));
  if (letter.empty()) return count * unit_seconds;
  if (letter == "s") return count;
  if (letter == "m") return count * 60;
  if (letter == "h") return count * 3600;
  return std::nullopt;
}

/// Returns "6", "90m", "0-6" or "0m-30m", as ecCodes writes steps since version 2.34: in hours if all times
/// are whole hours, otherwise in minutes or seconds, with their letter.
std::string step_text(const std::vector<std::int64_t>& times) {
  const auto all_divide = [&](std::int64_t unit) {
    return std::ranges::all_of(times, [unit](std::int64_t each) { return each % unit == 0; });
  };
  const std::int64_t unit = all_divide(3600) ? 3600 : all_divide(60) ? 60 : 1;
  std::string text;
  for (const std::int64_t each : times)
    text += cat(text.empty() ? "" : "-", each / unit, unit == 3600 ? "" : unit == 60 ? "m" : "s");
  return text;
}

/// Returns the step as MARS has it. For a message in minutes or seconds, sets the unit of the answer. Without
/// that, ecCodes 2.28 answers in hours: it rounds, or fails and prints an error to standard error. Its
/// answers in other units have no letter, so step_text() writes the step anew.
std::optional<std::string> step_of(Handle& handle) {
  if (handle.integer("edition") == 1) {
    const std::int64_t end = edition1::read_time(handle.message()).end;
    return end < 0 ? handle.text("mars.step") : step_text({end});
  }
  constexpr long minutes = 0, seconds = 13;
  std::optional<long> units[]{handle.integer("indicatorOfUnitOfTimeRange"), std::nullopt};
  if (handle.has("indicatorOfUnitForTimeRange")) units[1] = handle.integer("indicatorOfUnitForTimeRange");
  const auto has_unit = [&](long unit) { return std::ranges::find(units, unit) != std::end(units); };
  const bool in_seconds = has_unit(seconds);
  if (!in_seconds && !has_unit(minutes)) return handle.text("mars.step");
  if (handle.set("stepUnits", std::string(in_seconds ? "s" : "m")) != 0) return handle.text("mars.step");
  const std::optional<std::string> told = handle.text("mars.step");
  if (!told) return told;
  std::vector<std::int64_t> times;
  const std::string_view text = *told;
  // A minus before the first number is a sign.
  const std::size_t dash = text.find('-', 1);
  for (const std::string_view part :
       {text.substr(0, dash), dash == text.npos ? std::string_view() : text.substr(dash + 1)}) {
    if (part.empty()) continue;
    const auto time = seconds_in(part, in_seconds ? 1 : 60);
    if (!time) return told;
    times.push_back(*time);
  }
  return step_text(times);
}

/// Returns a number of three octets of the file.
Result<std::uint64_t> length_at(const codec::ReadBytes& read, Bytes at) {
  ByteVector octets;
  const Result<bool> got = append(read, at, 3, octets);
  TR_TRY(got.status());
  return *got ? get_number(octets.data(), 3) : 0;
}

/// Reads sections 0 to 2 of a message of GRIB1, and the lengths of the others.
Result<ValuelessMessage> edition_1_without_values(const codec::ReadBytes& read, Bytes offset) {
  Bytes at = static_cast<Bytes>(edition1::product_at);
  for (int number = 1; number <= 2; ++number) {
    const Result<std::uint64_t> length = length_at(read, offset + at);
    TR_TRY(length.status());
    at += static_cast<Bytes>(*length);
  }
  ByteVector bytes;
  const Result<bool> got = append(read, offset, at, bytes);
  TR_TRY(got.status());
  if (!*got) return no_message(offset, "it is cut short");
  const Result<ByteVector> head = edition1::head_of(bytes);
  if (!head.is_ok()) return no_message(offset, head.status().text());
  if ((bytes[edition1::flags_at] & edition1::has_bitmap) != std::byte{}) {
    const Result<std::uint64_t> bitmap = length_at(read, offset + at);
    TR_TRY(bitmap.status());
    at += static_cast<Bytes>(*bitmap);
  }
  const Result<std::uint64_t> data = length_at(read, offset + at);
  TR_TRY(data.status());
  const Bytes whole =
      edition1::lengths_of(get_number(&bytes[edition1::total_length_at], 3), *data, at).message;
  return ValuelessMessage{edition1::constant_message(*head), whole};
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
  // Every line needs these octets of sections 1, 4 and 5.
  const ByteVector& head = message.parts.head;
  const std::size_t product = section_begin(head, 4);
  constexpr std::size_t least[]{21, 34, 21};  // of sections 1, 4 and 5
  if (section_begin(head, 2) - section_begin(head, 1) < least[0] || head.size() - product < least[1] ||
      message.parts.representation.size() < least[2])
    return no_message(offset, "section 1, 4 or 5 is missing or cut short");
  return message;
}

Result<ValuelessMessage> read_without_values(const codec::ReadBytes& read, Bytes offset) {
  constexpr Bytes edition_octet = 7;
  ByteVector edition(1);
  const Result<Bytes> got = read(edition, offset + edition_octet);
  TR_TRY(got.status());
  if (*got == 1 && edition[0] == std::byte{1}) return edition_1_without_values(read, offset);
  const Result<ListedMessage> message = read_message(read, offset);
  TR_TRY(message.status());
  return ValuelessMessage{constant_message(message->parts, 0), message->length};
}

Result<std::string> ecmwf_line(const codec::ReadBytes& read, std::int64_t /*number*/, Bytes offset) {
  const Result<ValuelessMessage> message = read_without_values(read, offset);
  TR_TRY(message.status());
  const std::unique_lock definitions = lock_definitions();
  Result<Handle> handle = Handle::from_message(message->message);
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
  // The keys stand in the order of ECMWF's own files.
  for (const std::string_view name : {"domain", "date", "time", "expver", "class", "type", "stream", "step",
                                      "levelist", "levtype", "number"})
    add(name, name == "step" ? step_of(*handle) : handle->text(cat("mars.", name)));
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
