// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <span>

#include "formats/grib2/packing.hpp"
#include "ground/base/bytes.hpp"
#include "ground/base/status.hpp"
#include "ground/base/types.hpp"

// The octets of a GRIB1 message (WMO Manual on Codes, FM 92 GRIB edition 1), without any library. Sections 0
// to 2 say what and where a field is, sections 3 and 4 hold its bitmap and its values, section 5 ends it.
namespace tailrace::grib2::edition1 {

// Offsets in a message of the octets that records have of their own.
inline constexpr std::size_t product_at = 8;  // section 1
inline constexpr std::size_t total_length_at = 4;
inline constexpr std::size_t flags_at = product_at + 7;
inline constexpr std::size_t unit_at = product_at + 17;
inline constexpr std::size_t p1_at = product_at + 18;
inline constexpr std::size_t p2_at = product_at + 19;
inline constexpr std::size_t range_at = product_at + 20;  // the time range indicator
inline constexpr std::size_t decimal_at = product_at + 26;
inline constexpr std::size_t least_head = product_at + 28;

inline constexpr std::byte has_bitmap{0x40};  // among the flags
inline constexpr Bytes bitmap_header = 6;     // before the bits in section 3
inline constexpr Bytes data_header = 11;      // before the codes in section 4
/// ECMWF's form of long messages counts their length in units of 120 octets, in 23 bits.
inline constexpr Bytes most_message = Bytes{0x7fffff} * 120;

/// Returns the largest IBM float of 32 bits that is not above `value`. It has 6 hexadecimal digits, so that
/// it may be off by a millionth of the value.
double ibm_below(double value);
inline constexpr References ibm_references{"IBM float", ibm_below, 0xffffffp228};
/// Returns the four octets of a value that ibm_below() has returned.
std::uint32_t ibm_octets(double value);

/// Returns sections 0 to 2 of a message, without the flag of a bitmap and with D = 0. Code::corrupt if the
/// message is no whole GRIB1 message.
Result<ByteVector> head_of(std::span<const std::byte> message);
/// Returns section 2 of a head.
std::span<const std::byte> grid_section(std::span<const std::byte> head);

/// Appends section 3 with the bits of `points` values, and sets the flag in the head at `start`. Appends
/// nothing if `bits` is empty.
void append_bitmap(std::span<const std::byte> bits, Index points, std::size_t start, ByteVector& out);
/// Appends the first octets of section 4, and D to the head at `start`. The codes follow.
void append_data_header(const Scaling& scaling, std::size_t start, ByteVector& out);
/// Completes the message whose head is at `start` and whose section 4, up to the end of `out`, is at `data`.
/// `code_bits` is the number of bits behind the data_header.
void finish(std::size_t start, std::size_t data, Bytes code_bits, ByteVector& out);

/// Returns a whole message whose values are all zero.
ByteVector constant_message(std::span<const std::byte> head);

struct Lengths {
  Bytes message = 0;
  Bytes data = 0;
};
/// Returns the lengths of a message and of its section 4, which begins at the offset `data_at` of the
/// message, from the octets that state them.
Lengths lengths_of(std::uint64_t stated_message, std::uint64_t stated_data, Bytes data_at);

}  // namespace tailrace::grib2::edition1
