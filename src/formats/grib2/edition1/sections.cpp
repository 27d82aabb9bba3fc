// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/grib2/edition1/sections.hpp"

#include <cmath>
#include <cstring>

#include "formats/grib2/sections.hpp"
#include "ground/base/text.hpp"

namespace tailrace::grib2::edition1 {

namespace {

constexpr std::byte has_grid{0x80};  // among the flags
constexpr Bytes large = 0x800000;    // in a length: the message has ECMWF's form of long messages
constexpr Bytes unit = 120;

constexpr int least_exponent = -64;  // of 16, behind a fraction of 24 bits

/// Returns the power of 16 above a value.
int hexadecimal_exponent(double value) {
  int exponent = 0;
  static_cast<void>(std::frexp(value, &exponent));
  return (exponent + 3) >> 2;
}

Status no_message(std::string_view why) { return {Code::corrupt, cat("this is no GRIB1 message: ", why)}; }

}  // namespace

double ibm_below(double value) {
  if (value == 0) return 0;
  const int exponent = hexadecimal_exponent(value);
  if (exponent < least_exponent) return value > 0 ? 0.0 : -std::ldexp(1.0, 4 * (least_exponent - 1));
  const int digits = 4 * (exponent - 6);
  return std::ldexp(std::floor(std::ldexp(value, -digits)), digits);
}

std::uint32_t ibm_octets(double value) {
  if (value == 0) return 0;
  const int exponent = hexadecimal_exponent(value);
  const auto fraction = static_cast<std::uint32_t>(std::ldexp(std::fabs(value), -4 * (exponent - 6)));
  const auto biased = static_cast<std::uint32_t>(exponent - least_exponent);
  return (value < 0 ? 0x80000000U : 0U) | biased << 24 | fraction;
}

Result<ByteVector> head_of(std::span<const std::byte> message) {
  if (message.size() < least_head || std::memcmp(message.data(), "GRIB", 4) != 0)
    return no_message("it does not begin with GRIB, or is cut short");
  if (message[7] != std::byte{1}) return no_message("its edition is another");
  if ((message[flags_at] & has_grid) == std::byte{}) return no_message("it has no section 2");
  const auto grid = product_at + static_cast<std::size_t>(get_number(&message[product_at], 3));
  if (grid < least_head || grid + 3 > message.size()) return no_message("section 1 contradicts its length");
  const auto end = grid + static_cast<std::size_t>(get_number(&message[grid], 3));
  if (end < grid + 6 || end > message.size()) return no_message("section 2 contradicts its length");
  ByteVector head(message.begin(), message.begin() + static_cast<std::ptrdiff_t>(end));
  head[flags_at] &= ~has_bitmap;
  std::memset(&head[decimal_at], 0, 2);
  std::memset(&head[total_length_at], 0, 3);
  return head;
}

std::span<const std::byte> grid_section(std::span<const std::byte> head) {
  return head.subspan(product_at + static_cast<std::size_t>(get_number(&head[product_at], 3)));
}

void append_bitmap(std::span<const std::byte> bits, Index points, std::size_t start, ByteVector& out) {
  if (bits.empty()) return;
  out[start + flags_at] |= has_bitmap;
  const auto length = (bitmap_header + std::ssize(bits) + 1) / 2 * 2;
  std::byte header[bitmap_header]{};
  put_number(header, static_cast<std::uint64_t>(length), 3);
  put_number(header + 3, static_cast<std::uint64_t>((length - bitmap_header) * 8 - points), 1);
  out.insert(out.end(), header, header + bitmap_header);
  out.insert(out.end(), bits.begin(), bits.end());
  if (bitmap_header + std::ssize(bits) < length) out.push_back(std::byte{0});
}

void append_data_header(const Scaling& scaling, std::size_t start, ByteVector& out) {
  put_signed(&out[start + decimal_at], scaling.decimal, 2);
  std::byte header[data_header]{};
  put_signed(header + 4, scaling.binary, 2);
  put_number(header + 6, ibm_octets(scaling.reference), 4);
  put_number(header + 10, static_cast<std::uint64_t>(scaling.bits), 1);
  out.insert(out.end(), header, header + data_header);
}

void finish(std::size_t start, std::size_t data, Bytes code_bits, ByteVector& out) {
  // Sections have an even number of octets.
  if ((out.size() - data) % 2 != 0) out.push_back(std::byte{0});
  const auto length = static_cast<Bytes>(out.size() - data);
  out[data + 3] |= static_cast<std::byte>((length - data_header) * 8 - code_bits);
  for (int i = 0; i < end_length; ++i) out.push_back(std::byte{'7'});
  const auto total = static_cast<Bytes>(out.size() - start);
  if (total < large) {
    put_number(&out[data], static_cast<std::uint64_t>(length), 3);
    put_number(&out[start + total_length_at], static_cast<std::uint64_t>(total), 3);
    return;
  }
  // The length of section 4 tells how many octets the last unit has too many.
  const Bytes units = (total - end_length + unit - 1) / unit;
  put_number(&out[data], static_cast<std::uint64_t>(units * unit - (total - end_length)), 3);
  put_number(&out[start + total_length_at], static_cast<std::uint64_t>(large | units), 3);
}

ByteVector constant_message(std::span<const std::byte> head) {
  ByteVector message(head.begin(), head.end());
  append_data_header(Scaling{}, 0, message);
  finish(0, head.size(), 0, message);
  return message;
}

Lengths lengths_of(std::uint64_t stated_message, std::uint64_t stated_data, Bytes data_at) {
  const auto message = static_cast<Bytes>(stated_message), data = static_cast<Bytes>(stated_data);
  if ((message & large) == 0 || data >= unit) return {message, data};
  const Bytes whole = (message - large) * unit - data + end_length;
  return {whole, whole - end_length - data_at};
}

}  // namespace tailrace::grib2::edition1
