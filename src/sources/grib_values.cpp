// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Every decoder here gives ecCodes' numbers: value = (code * 2^E + R) * 10^-D in float64, in this order, with
// the powers that ecCodes computes. tests/unit/sources compares them over all widths.
#include "sources/grib_values.hpp"

#include <eccodes.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "base/text.hpp"
#include "grib2/handle.hpp"
#include "layout/shape.hpp"
#include "sources/grib_codes.hpp"

namespace tailrace::sources {

namespace {

using Octets = std::span<const std::byte>;

Status wrong(std::string_view what, std::int64_t expected, std::int64_t got) {
  return {Code::corrupt, cat(what, ": expected ", expected, ", got ", got)};
}

std::uint64_t number(Octets section, std::size_t at, int width) {
  std::uint64_t value = 0;
  for (int i = 0; i < width; ++i) value = value << 8 | std::to_integer<std::uint64_t>(section[at + i]);
  return value;
}

/// A sign bit and a magnitude.
int signed_number(Octets section, std::size_t at) {
  const auto value = static_cast<int>(number(section, at, 2));
  return (value & 0x8000) != 0 ? -(value & 0x7fff) : value;
}

/// A float of IBM: a sign, an exponent of 16, and 24 bits of mantissa.
double ibm_number(Octets section, std::size_t at) {
  const auto exponent = static_cast<int>(number(section, at, 1) & 0x7f);
  const double magnitude = std::ldexp(static_cast<double>(number(section, at + 1, 3)), 4 * (exponent - 70));
  return (number(section, at, 1) & 0x80) != 0 ? -magnitude : magnitude;
}

/// As ecCodes computes it, step by step.
double power_of_10(int exponent) {
  double power = 1;
  for (; exponent < 0; ++exponent) power /= 10;
  for (; exponent > 0; --exponent) power *= 10;
  return power;
}

/// How the values of a field are packed, if they are decoded here.
struct Packed {
  Codes codes;
  Index count = 0;  // of the codes
  Octets bitmap;    // empty: all points have values
  std::optional<CcsdsParameters> ccsds;
};

Octets section_of(Octets message, const GribField& field, int number) {
  const GribSection& section = field.sections[static_cast<std::size_t>(number)];
  return message.subspan(static_cast<std::size_t>(section.offset), static_cast<std::size_t>(section.length));
}

Status set_bitmap(Octets bits, Index points, Packed& packed) {
  if (static_cast<Index>(bits.size()) * 8 < points)
    return wrong("bits of its bitmap", points, static_cast<Index>(bits.size()) * 8);
  packed.bitmap = bits;
  return {};
}

/// There is one code for each point that has a value, and the codes fit into their octets.
Status check_count(const Packed& packed, Index points, Octets data) {
  if (packed.codes.bits == 0) return {};  // some writers count no value where all are equal
  const Index expected = packed.bitmap.empty() ? points : count_bits(packed.bitmap, 0, points);
  if (packed.count != expected) return wrong("packed values", expected, packed.count);
  if (packed.ccsds) return {};
  const auto octets = static_cast<Bytes>(data.size());
  if (packed.count * packed.codes.bits > octets * 8)
    return wrong("octets of packed values", (packed.count * packed.codes.bits + 7) / 8, octets);
  return {};
}

/// Returns nothing for packings that ecCodes decodes.
Result<std::optional<Packed>> packed_1(Octets message, const GribField& field, Index points) {
  constexpr unsigned spectral = 0x80, complex = 0x40, more_flags = 0x10;
  const Octets data = section_of(message, field, 4), bitmap = section_of(message, field, 3);
  const auto flags = static_cast<unsigned>(number(data, 3, 1));
  Packed packed;
  Codes& codes = packed.codes;
  codes.bits = static_cast<int>(number(data, 10, 1));
  const int decimal = signed_number(section_of(message, field, 1), 26);
  if ((flags & (spectral | complex | more_flags)) != 0 || codes.bits > most_code_bits) return {std::nullopt};
  if (codes.bits == 0 && decimal != 0) return {std::nullopt};
  codes.octets = data.data() + 11;
  codes.reference = ibm_number(data, 6);
  codes.unit = std::ldexp(1.0, signed_number(data, 4));
  codes.factor = power_of_10(-decimal);
  if (!bitmap.empty()) {
    if (number(bitmap, 4, 2) != 0) return {std::nullopt};  // a bitmap of the centre's own
    TR_TRY(set_bitmap(bitmap.subspan(6), points, packed));
  }
  packed.count = packed.bitmap.empty() ? points : count_bits(packed.bitmap, 0, points);
  TR_TRY(check_count(packed, points, data.subspan(11)));
  return std::optional(packed);
}

Result<std::optional<Packed>> packed_2(Octets message, const GribField& field, Index points) {
  constexpr std::uint64_t simple = 0, ccsds = 42;
  const Octets representation = section_of(message, field, 5), bitmap = section_of(message, field, 6),
               data = section_of(message, field, 7);
  const std::uint64_t packing = number(representation, 9, 2);
  if (packing != simple && packing != ccsds) return {std::nullopt};
  const std::size_t least = packing == simple ? 21 : 25;
  if (representation.size() < least)
    return wrong("octets of section 5", static_cast<Index>(least), static_cast<Index>(representation.size()));
  Packed packed;
  Codes& codes = packed.codes;
  codes.bits = static_cast<int>(number(representation, 19, 1));
  const int decimal = signed_number(representation, 17);
  if (codes.bits > most_code_bits || (codes.bits == 0 && decimal != 0)) return {std::nullopt};
  codes.octets = data.data() + 5;
  codes.reference = std::bit_cast<float>(static_cast<std::uint32_t>(number(representation, 11, 4)));
  codes.unit = std::ldexp(1.0, signed_number(representation, 15));
  codes.factor = power_of_10(-decimal);
  if (packing == ccsds && codes.bits > 0) {
    packed.ccsds = ccsds_parameters({representation.begin(), representation.end()});
    if (!packed.ccsds->usual()) return {std::nullopt};
  }
  constexpr std::uint64_t own = 0, none = 255;
  const std::uint64_t indicator = number(bitmap, 5, 1);
  if (indicator != own && indicator != none && indicator != 254) return {std::nullopt};
  if (indicator != none) TR_TRY(set_bitmap(bitmap.subspan(6), points, packed));
  packed.count = static_cast<Index>(number(representation, 5, 4));
  TR_TRY(check_count(packed, points, data.subspan(5)));
  return std::optional(packed);
}

/// Calls `row` with the first point and the number of points of each row of a box, in C order.
template <typename Row>
void for_each_row(const std::vector<Index>& shape, const layout::Box& cut, const Row& row) {
  const std::size_t last = shape.size() - 1;
  for (std::size_t d = 0; d <= last; ++d) {
    if (cut.lower[d] >= cut.upper[d]) return;
  }
  const std::vector<Index> strides = layout::strides_of(shape);
  std::vector<Index> at = cut.lower;
  while (true) {
    Index first = 0;
    for (std::size_t d = 0; d <= last; ++d) first += at[d] * strides[d];
    row(first, cut.upper[last] - cut.lower[last]);
    std::size_t d = last;
    while (d > 0 && ++at[d - 1] == cut.upper[d - 1]) {
      at[d - 1] = cut.lower[d - 1];
      --d;
    }
    if (d == 0) return;
  }
}

/// Stores rows whose points all have values.
template <typename Value>
void store_all(const Codes& codes, const std::vector<Index>& shape, const layout::Box& cut, Value* to) {
  for_each_row(shape, cut, [&](Index first, Index count) {
    decode_codes(codes, first, count, to);
    to += count;
  });
}

/// Stores rows of which some points are missing, and returns how many.
template <typename Value>
Index store_some(const Packed& packed, const std::vector<Index>& shape, const layout::Box& cut, Value* to) {
  Index missing = 0, point = 0, code = 0;  // `code` is the first at or behind `point`
  for_each_row(shape, cut, [&](Index first, Index count) {
    code += count_bits(packed.bitmap, point, first - point);
    const Index there = count_bits(packed.bitmap, first, count);
    // The values are spread from the end, so that none is overwritten before it has moved.
    decode_codes(packed.codes, code, there, to);
    Index from = there;
    for (Index i = count - 1; i >= 0; --i)
      to[i] = bit_at(packed.bitmap, first + i) ? to[--from] : std::numeric_limits<Value>::quiet_NaN();
    missing += count - there;
    point = first + count;
    code += there;
    to += count;
  });
  return missing;
}

template <typename Value>
Result<Index> store(Packed& packed, const Grid& grid, const layout::Box& cut, Octets data, ByteVector& memory,
                    Value* to) {
  if (packed.ccsds)
    TR_TRY(decompress_codes(*packed.ccsds, data.subspan(5), packed.count, packed.codes, memory));
  if (!packed.bitmap.empty()) return store_some(packed, grid.shape, cut, to);
  store_all(packed.codes, grid.shape, cut, to);
  return Index{0};
}

/// ecCodes decodes the whole field. It checks less than it trusts: the numbers of points were compared
/// before.
Status decode_by_eccodes(Octets message, Index points, double missing, ByteVector& memory) {
  std::unique_ptr<codes_handle, int (*)(codes_handle*)> handle(nullptr, codes_handle_delete);
  std::size_t count = 0;
  {
    const auto lock = grib2::lock_definitions();
    handle.reset(codes_handle_new_from_message(nullptr, message.data(), message.size()));
    if (handle == nullptr) return {Code::corrupt, "ecCodes does not read it"};
    if (const int error = codes_get_size(handle.get(), "values", &count); error != CODES_SUCCESS)
      return {Code::corrupt, cat("ecCodes does not tell how many values it has: ", grib2::reason(error))};
    if (static_cast<Index>(count) != points) return wrong("values", points, static_cast<Index>(count));
    if (const int error = codes_set_double(handle.get(), "missingValue", missing); error != CODES_SUCCESS)
      return {Code::corrupt, cat("ecCodes does not mark its missing values: ", grib2::reason(error))};
  }
  memory.resize(count * sizeof(double));
  const int error =
      codes_get_double_array(handle.get(), "values", reinterpret_cast<double*>(memory.data()), &count);
  if (error != CODES_SUCCESS)
    return {Code::corrupt, cat("ecCodes does not decode its values: ", grib2::reason(error))};
  if (static_cast<Index>(count) != points) return wrong("decoded values", points, static_cast<Index>(count));
  return {};
}

template <typename Value>
Index copy_part(const double* from, double missing, const std::vector<Index>& shape, const layout::Box& cut,
                Value* to) {
  Index holes = 0;
  for_each_row(shape, cut, [&](Index first, Index count) {
    for (Index i = 0; i < count; ++i) {
      const double value = from[first + i];
      const bool is_hole = value == missing;
      holes += is_hole ? 1 : 0;
      to[i] = is_hole ? std::numeric_limits<Value>::quiet_NaN() : static_cast<Value>(value);
    }
    to += count;
  });
  return holes;
}

/// What the headers say of the number of points is what the inventory says.
Status check_points(Octets message, const GribField& field, const Grid& grid, Index points) {
  if (field.edition == 1) return {};
  const std::string* const type = codec::find_key(grid.keys, "gridType");
  if (type != nullptr && *type == "sh") return {};
  const auto got = static_cast<Index>(number(section_of(message, field, 3), 6, 4));
  if (got != points) return wrong("points of its grid", points, got);
  const auto values = static_cast<Index>(number(section_of(message, field, 5), 5, 4));
  if (values > points) return wrong("packed values, at most", points, values);
  return {};
}

Status check_cut(const Grid& grid, const layout::Box& cut) {
  bool fits =
      !grid.shape.empty() && cut.lower.size() == grid.shape.size() && cut.upper.size() == grid.shape.size();
  for (std::size_t d = 0; fits && d < grid.shape.size(); ++d)
    fits = cut.lower[d] >= 0 && cut.upper[d] <= grid.shape[d];
  return fits ? Status()
              : layout::layout_error("a part of a record does not lie in its grid ",
                                     layout::extents(grid.shape));
}

template <typename Value>
Result<Index> decode_as(Octets message, const GribField& field, const Grid& grid, const layout::Box& cut,
                        Value* to, ByteVector& memory) {
  const Index points = layout::product(grid.shape);
  TR_TRY(check_points(message, field, grid, points));
  Result<std::optional<Packed>> packed =
      field.edition == 1 ? packed_1(message, field, points) : packed_2(message, field, points);
  TR_TRY(packed.status());
  if (*packed) return store(**packed, grid, cut, section_of(message, field, 7), memory, to);
  constexpr double missing = -std::numeric_limits<double>::max();
  const ByteVector single =
      field.number == 0 && field.edition == 1 ? ByteVector() : single_message(message, field);
  TR_TRY(decode_by_eccodes(single.empty() ? message : Octets(single), points, missing, memory));
  return copy_part(reinterpret_cast<const double*>(memory.data()), missing, grid.shape, cut, to);
}

}  // namespace

Bytes decoding_bytes(const Grid& grid) {
  return layout::product(grid.shape) * static_cast<Bytes>(sizeof(double));
}

Result<Index> decode_grib(Octets message, const GribField& field, const Grid& grid, const layout::Box& cut,
                          ElementType type, std::byte* values, ByteVector& memory) {
  TR_TRY(check_cut(grid, cut));
  if (type == ElementType::f32)
    return decode_as(message, field, grid, cut, reinterpret_cast<float*>(values), memory);
  if (type == ElementType::f64)
    return decode_as(message, field, grid, cut, reinterpret_cast<double*>(values), memory);
  return Status(Code::argument, cat("values are read as float32 or float64, not as ", name_of(type)));
}

}  // namespace tailrace::sources
