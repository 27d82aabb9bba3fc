// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <span>

#include "ground/base/bytes.hpp"
#include "ground/base/status.hpp"
#include "ground/base/types.hpp"

// The octets of a GRIB2 message (WMO Manual on Codes, FM 92 GRIB edition 2), without any library. Sections 0
// to 4 say what and where a field is, sections 5 to 7 hold its values, section 8 ends it.
namespace tailrace::grib2 {

/// Writes an unsigned number of `width` octets, most significant first.
void put_number(std::byte* to, std::uint64_t value, int width);
/// Reads an unsigned number of `width` octets, most significant first.
std::uint64_t get_number(const std::byte* from, int width);
/// Writes a signed number as GRIB has it: a sign bit and a magnitude.
void put_signed(std::byte* to, std::int64_t value, int width);

/// The two parts of a message that are prepared once for each field.
struct Parts {
  ByteVector head;            // sections 0 to 4; the total length in section 0 is patched for each message
  ByteVector representation;  // section 5; the number of values, R, E, D and bits are zero
};

/// Returns the parts of a message, those of its first field if it has several. Code::corrupt if the message
/// is no whole GRIB2 message.
Result<Parts> cut(std::span<const std::byte> message);

/// Returns the offset of section `number` (1 to 4) in a head or a message, or its size if the section is not
/// there.
std::size_t section_begin(std::span<const std::byte> head, int number);

/// The scaling of one record's packed values: value = (reference + code * 2^binary) / 10^decimal.
struct Scaling {
  double reference = 0;  // exactly a float32
  int binary = 0;
  int decimal = 0;
  int bits = 0;
};

inline constexpr Bytes end_length = 4;     // section 8
inline constexpr Bytes data_header = 5;    // before the values in section 7
inline constexpr Bytes bitmap_header = 6;  // before the bits in section 6

/// Appends the prepared section 5 with the record's number of values and scaling.
void append_representation(const ByteVector& prepared, std::uint64_t coded_values, const Scaling& scaling,
                           ByteVector& out);
/// Appends section 6 with a bitmap, packed most significant bit first, or with "no bitmap" if `bits` is
/// empty.
void append_bitmap(std::span<const std::byte> bits, ByteVector& out);
/// Appends the header of a section 7 with `length` octets of data to follow.
void append_data_header(Bytes length, ByteVector& out);
/// Appends section 8 and writes the total length into the message that began at `start`.
void finish(std::size_t start, ByteVector& out);

/// Returns a whole message whose `points` values are all zero. Definitions are read back from it.
ByteVector constant_message(const Parts& parts, std::uint64_t points);

}  // namespace tailrace::grib2
