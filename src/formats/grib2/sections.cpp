// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/grib2/sections.hpp"

#include <bit>
#include <cstring>

#include "ground/base/text.hpp"

namespace tailrace::grib2 {

namespace {

constexpr std::size_t section0_length = 16;
constexpr std::size_t least_representation = 21;  // template 5.0

Status damaged(std::string_view why) {
  return {Code::corrupt,
          cat("the sample is no GRIB2 message: ", why, "; give one whole message of edition 2")};
}

}  // namespace

void put_number(std::byte* to, std::uint64_t value, int width) {
  for (int i = width - 1; i >= 0; --i, value >>= 8) to[i] = static_cast<std::byte>(value & 0xff);
}

std::uint64_t get_number(const std::byte* from, int width) {
  std::uint64_t value = 0;
  for (int i = 0; i < width; ++i) value = value << 8 | std::to_integer<std::uint64_t>(from[i]);
  return value;
}

void put_signed(std::byte* to, std::int64_t value, int width) {
  const std::uint64_t sign = value < 0 ? std::uint64_t{1} << (8 * width - 1) : 0;
  put_number(to, sign | static_cast<std::uint64_t>(value < 0 ? -value : value), width);
}

Result<Parts> cut(std::span<const std::byte> message) {
  if (message.size() < section0_length || std::memcmp(message.data(), "GRIB", 4) != 0)
    return damaged("it does not begin with GRIB");
  if (const int edition = std::to_integer<int>(message[7]); edition != 2)
    return damaged(cat("its edition is ", edition, " (grib_set -s edition=2 converts it)"));
  if (get_number(&message[8], 8) > message.size()) return damaged("it is cut short");

  std::size_t at = section0_length;
  int before = 0;
  while (at + 5 <= message.size()) {
    const std::size_t length = get_number(&message[at], 4);
    const int number = std::to_integer<int>(message[at + 4]);
    if (length < 5 || length > message.size() - at || number <= before) break;
    if (number == 5) {
      if (before != 4 || length < least_representation) break;
      Parts parts;
      parts.head.assign(message.begin(), message.begin() + static_cast<std::ptrdiff_t>(at));
      parts.representation.assign(message.begin() + static_cast<std::ptrdiff_t>(at),
                                  message.begin() + static_cast<std::ptrdiff_t>(at + length));
      // Section 5 must not keep the number of values, R, E, D and bits of the message's own record.
      std::memset(&parts.representation[5], 0, 4);
      std::memset(&parts.representation[11], 0, 9);
      return parts;
    }
    before = number;
    at += length;
  }
  return damaged("its sections contradict their lengths");
}

void append_representation(const ByteVector& prepared, std::uint64_t coded_values, const Scaling& scaling,
                           ByteVector& out) {
  const std::size_t at = out.size();
  out.insert(out.end(), prepared.begin(), prepared.end());
  std::byte* section = &out[at];
  put_number(section + 5, coded_values, 4);
  put_number(section + 11, std::bit_cast<std::uint32_t>(static_cast<float>(scaling.reference)), 4);
  put_signed(section + 15, scaling.binary, 2);
  put_signed(section + 17, scaling.decimal, 2);
  put_number(section + 19, static_cast<std::uint64_t>(scaling.bits), 1);
}

void append_bitmap(std::span<const std::byte> bits, ByteVector& out) {
  std::byte header[bitmap_header];
  put_number(header, static_cast<std::uint64_t>(bitmap_header) + bits.size(), 4);
  put_number(header + 4, 6, 1);
  put_number(header + 5, bits.empty() ? 255 : 0, 1);
  out.insert(out.end(), header, header + bitmap_header);
  out.insert(out.end(), bits.begin(), bits.end());
}

void append_data_header(Bytes length, ByteVector& out) {
  std::byte header[data_header];
  put_number(header, static_cast<std::uint64_t>(data_header + length), 4);
  put_number(header + 4, 7, 1);
  out.insert(out.end(), header, header + data_header);
}

void finish(std::size_t start, ByteVector& out) {
  for (int i = 0; i < end_length; ++i) out.push_back(std::byte{'7'});
  put_number(&out[start + 8], out.size() - start, 8);
}

std::size_t section_begin(std::span<const std::byte> head, int number) {
  std::size_t at = 16;
  while (at + 5 <= head.size() && std::to_integer<int>(head[at + 4]) < number) at += get_number(&head[at], 4);
  return std::min(at, head.size());
}

ByteVector constant_message(const Parts& parts, std::uint64_t points) {
  ByteVector message = parts.head;
  append_representation(parts.representation, points, Scaling{}, message);
  append_bitmap({}, message);
  append_data_header(0, message);
  finish(0, message);
  return message;
}

}  // namespace tailrace::grib2
