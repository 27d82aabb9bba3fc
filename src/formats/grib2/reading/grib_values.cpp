// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// Every decoder here gives ecCodes' numbers: value = (code * 2^E + R) * 10^-D in float64, in this order, with
// the powers that ecCodes computes. tests/unit/formats/grib2/reading compares them over all widths.
#include "formats/grib2/reading/grib_values.hpp"

#include <eccodes.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <type_traits>

#include "formats/grib2/handle.hpp"
#include "formats/grib2/reading/grib_codes.hpp"
#include "formats/grib2/reading/grib_groups.hpp"
#include "formats/grib2/sections.hpp"
#include "ground/base/text.hpp"
#include "ground/layout/shape.hpp"

namespace tailrace::sources {

namespace {

using Octets = std::span<const std::byte>;

std::uint64_t number(Octets section, std::size_t at, int width) {
  return grib2::get_number(&section[at], width);
}

/// Returns a number of two octets: a sign bit and a magnitude.
int signed_number(Octets section, std::size_t at) {
  const auto value = static_cast<int>(number(section, at, 2));
  return (value & 0x8000) != 0 ? -(value & 0x7fff) : value;
}

/// Returns an IBM float: a sign, an exponent of 16, and 24 bits of mantissa.
double ibm_number(Octets section, std::size_t at) {
  const auto exponent = static_cast<int>(number(section, at, 1) & 0x7f);
  const double magnitude = std::ldexp(static_cast<double>(number(section, at + 1, 3)), 4 * (exponent - 70));
  return (number(section, at, 1) & 0x80) != 0 ? -magnitude : magnitude;
}

/// Returns 10^exponent with ecCodes' rounding: it multiplies or divides step by step.
double power_of_10(int exponent) {
  double power = 1;
  for (; exponent < 0; ++exponent) power /= 10;
  for (; exponent > 0; --exponent) power *= 10;
  return power;
}

/// The packing of a field that is decoded here.
struct Packed {
  Codes codes;
  Index count = 0;  // of the codes
  Octets bitmap;    // empty: all points have values
  Octets groups;    // section 5 of packings that are decoded as a whole; else empty
  std::optional<CcsdsParameters> ccsds;
};

Octets section_of(Octets message, const GribField& field, int number) {
  const GribSection& section = field.sections[static_cast<std::size_t>(number)];
  return message.subspan(static_cast<std::size_t>(section.offset), static_cast<std::size_t>(section.length));
}

Status set_bitmap(Octets bits, Index points, Packed& packed) {
  if (static_cast<Index>(bits.size()) * 8 < points)
    return contradiction("bits of its bitmap", points, static_cast<Index>(bits.size()) * 8);
  packed.bitmap = bits;
  return {};
}

/// Checks that each point with a value has one code, and that the codes fit into their octets.
Status check_count(const Packed& packed, Index points, Octets data) {
  if (packed.codes.bits == 0 && packed.groups.empty())
    return {};  // some writers count no value where all are equal
  const Index expected = packed.bitmap.empty() ? points : count_bits(packed.bitmap, 0, points);
  if (packed.count != expected) return contradiction("packed values", expected, packed.count);
  if (packed.ccsds || !packed.groups.empty()) return {};
  const auto octets = static_cast<Bytes>(data.size());
  if (packed.count * packed.codes.bits > octets * 8)
    return contradiction("octets of packed values", (packed.count * packed.codes.bits + 7) / 8, octets);
  return {};
}

/// Returns nothing if ecCodes has to decode the packing.
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

/// Checks the parameters before libaec may get them: it divides by some of them without a check.
Status check_ccsds(const CcsdsParameters& parameters) {
  constexpr unsigned is_signed = 1;
  const bool is_block =
      parameters.block >= 8 && parameters.block <= 64 && std::has_single_bit(parameters.block);
  if (is_block && parameters.interval >= 1 && parameters.interval <= 4096 &&
      (parameters.flags & is_signed) == 0)
    return {};
  return {Code::corrupt,
          cat("parameters of CCSDS packing: expected unsigned codes, blocks of 8, 16, 32 or 64 and "
              "intervals of 1 to 4096 blocks, got flags ",
              parameters.flags, ", blocks of ", parameters.block, " and intervals of ", parameters.interval)};
}

Status set_scale(Octets representation, Codes& codes) {
  codes.bits = static_cast<int>(number(representation, 19, 1));
  if (codes.bits > 64) return contradiction("bits of a packed value, at most", 64, codes.bits);
  codes.reference = std::bit_cast<float>(static_cast<std::uint32_t>(number(representation, 11, 4)));
  codes.unit = std::ldexp(1.0, signed_number(representation, 15));
  codes.factor = power_of_10(-signed_number(representation, 17));
  return {};
}

/// Returns false if the message refers to a predefined bitmap, which it does not hold.
Result<bool> take_bitmap_2(Octets section, Index points, Packed& packed) {
  constexpr std::uint64_t own = 0, as_before = 254, none = 255;
  const std::uint64_t indicator = number(section, 5, 1);
  if (indicator == none) return true;
  if (indicator != own && indicator != as_before) return false;
  TR_TRY(set_bitmap(section.subspan(6), points, packed));
  return true;
}

Result<std::optional<Packed>> packed_2(Octets message, const GribField& field, Index points) {
  constexpr std::uint64_t simple = 0, ieee = 4, ccsds = 42;
  const Octets representation = section_of(message, field, 5), data = section_of(message, field, 7);
  const std::uint64_t packing = number(representation, 9, 2);
  const bool has_groups = is_complex(representation);
  if (packing != simple && packing != ccsds && packing != ieee && !has_groups) return {std::nullopt};
  const std::size_t least = packing == ccsds ? 25 : packing == ieee ? 12 : 21;
  if (representation.size() < least)
    return contradiction("octets of section 5", static_cast<Index>(least),
                         static_cast<Index>(representation.size()));
  Packed packed;
  Codes& codes = packed.codes;
  codes.octets = data.data() + 5;
  if (has_groups || packing == ieee) packed.groups = representation;
  if (packing != ieee) TR_TRY(set_scale(representation, codes));
  const bool is_scaled_constant = codes.bits == 0 && codes.factor != 1 && packed.groups.empty();
  if (codes.bits > most_code_bits || is_scaled_constant) return {std::nullopt};
  if (packing == ccsds && codes.bits > 0) {
    packed.ccsds = ccsds_parameters({representation.begin(), representation.end()});
    TR_TRY(check_ccsds(*packed.ccsds));
    if (!decompresses(*packed.ccsds)) return {std::nullopt};
  }
  const Result<bool> has_bitmap = take_bitmap_2(section_of(message, field, 6), points, packed);
  TR_TRY(has_bitmap.status());
  if (!*has_bitmap) return {std::nullopt};
  packed.count = static_cast<Index>(number(representation, 5, 4));
  TR_TRY(check_count(packed, points, data.subspan(5)));
  return std::optional(packed);
}

/// The order of the points of a record in the file.
struct Points {
  const std::vector<Index>& shape;
  /// Length of a row, if every second row is stored from its end; 0 = all rows go the same way.
  Index turning_row = 0;
};

/// Returns Points::turning_row of the grid. Rows of an array all go the same way; a file with
/// alternativeRowScanning stores every second row the other way round (GRIB2, flag table 3.4, bit 4).
Result<Index> turning_row(const Grid& grid) {
  const std::string* const alternates = codec::find_key(grid.keys, "alternativeRowScanning");
  if (alternates == nullptr || *alternates == "0") return 0;
  const std::string* const is_by_columns = codec::find_key(grid.keys, "jPointsAreConsecutive");
  const bool rows_are_columns = is_by_columns != nullptr && *is_by_columns != "0";
  const std::string* const length = codec::find_key(grid.keys, rows_are_columns ? "Nj" : "Ni");
  const std::optional<double> points = length == nullptr ? std::nullopt : grib2::as_number(*length);
  const Index all = layout::product(grid.shape);
  if (points && *points >= 1 && *points <= static_cast<double>(all) && all % static_cast<Index>(*points) == 0)
    return static_cast<Index>(*points);
  return Status(Code::unsupported,
                "its rows go in alternating directions and have different lengths, which is not read");
}

/// Calls `run` for each part of a box whose points lie together in the file, in C order, with its first point
/// and number of points. The third argument, `is_turned`, is true if the file holds the part from its last
/// point to its first.
template <typename Run>
void for_each_run(const Points& points, const layout::Box& cut, const Run& run) {
  const std::vector<Index>& shape = points.shape;
  const std::size_t last = shape.size() - 1;
  for (std::size_t d = 0; d <= last; ++d) {
    if (cut.lower[d] >= cut.upper[d]) return;
  }
  const Index row = points.turning_row;
  const auto each = [&](Index first, Index count) {
    if (row == 0) return run(first, count, false);
    for (const Index end = first + count; first < end;) {
      const Index begin = first - first % row, here = std::min(end, begin + row) - first;
      const bool is_turned = first / row % 2 == 1;
      run(is_turned ? begin + row - (first - begin) - here : first, here, is_turned);
      first += here;
    }
  };
  const std::vector<Index> strides = layout::strides_of(shape);
  std::vector<Index> at = cut.lower;
  while (true) {
    Index first = 0;
    for (std::size_t d = 0; d <= last; ++d) first += at[d] * strides[d];
    each(first, cut.upper[last] - cut.lower[last]);
    std::size_t d = last;
    while (d > 0 && ++at[d - 1] == cut.upper[d - 1]) {
      at[d - 1] = cut.lower[d - 1];
      --d;
    }
    if (d == 0) return;
  }
}

/// Stores the points of a record without bitmap.
template <typename Value>
void store_all(const Codes& codes, const Points& points, const layout::Box& cut, Value* to) {
  for_each_run(points, cut, [&](Index first, Index count, bool is_turned) {
    decode_codes(codes, first, count, to);
    if (is_turned) std::reverse(to, to + count);
    to += count;
  });
}

/// Returns the number of points before a given one that have a value. It counts from the point of the last
/// call, so calls in the order of the file are fastest.
class CodesBefore {
 public:
  explicit CodesBefore(Octets bitmap) : bitmap_(bitmap) {}
  Index operator()(Index point) {
    code_ = point < point_ ? code_ - count_bits(bitmap_, point, point_ - point)
                           : code_ + count_bits(bitmap_, point_, point - point_);
    point_ = point;
    return code_;
  }

 private:
  Octets bitmap_;
  Index point_ = 0;
  Index code_ = 0;
};

/// Stores the points of a record with bitmap, and returns how many are missing.
template <typename Value>
Index store_some(const Packed& packed, const Points& points, const layout::Box& cut, Value* to) {
  Index missing = 0;
  CodesBefore codes_before(packed.bitmap);
  for_each_run(points, cut, [&](Index first, Index count, bool is_turned) {
    const Index code = codes_before(first), there = codes_before(first + count) - code;
    // Values move to their points from the last to the first, so that none is overwritten before it has
    // moved.
    decode_codes(packed.codes, code, there, to);
    Index from = there;
    for (Index i = count - 1; i >= 0; --i)
      to[i] = bit_at(packed.bitmap, first + i) ? to[--from] : std::numeric_limits<Value>::quiet_NaN();
    if (is_turned) std::reverse(to, to + count);
    missing += count - there;
    to += count;
  });
  return missing;
}

/// Decodes all values of a record, for packings in which a value has no fixed place.
Status decode_all(Packed& packed, Octets data, ByteVector& memory) {
  memory.resize(static_cast<std::size_t>(packed.count) * sizeof(double));
  auto* const values = reinterpret_cast<double*>(memory.data());
  packed.codes.values = values;
  return is_complex(packed.groups) ? decode_groups(packed.groups, data, packed.count, packed.codes, values)
                                   : decode_ieee(packed.groups, data, packed.count, values);
}

template <typename Value>
Result<Index> store(Packed& packed, const Points& points, const layout::Box& cut, Octets data,
                    ByteVector& memory, Value* to) {
  if (packed.ccsds)
    TR_TRY(decompress_codes(*packed.ccsds, data.subspan(5), packed.count, packed.codes, memory));
  if (!packed.groups.empty()) TR_TRY(decode_all(packed, data.subspan(5), memory));
  Index missing = 0;
  if (packed.bitmap.empty())
    store_all(packed.codes, points, cut, to);
  else
    missing = store_some(packed, points, cut, to);
  if (packed.groups.empty()) return missing;
  // Complex packing may mark values as missing without a bitmap.
  Index count = 1;
  for (std::size_t d = 0; d < points.shape.size(); ++d)
    count *= std::max<Index>(cut.upper[d] - cut.lower[d], 0);
  return std::count_if(to, to + count, [](Value each) { return std::isnan(each); });
}

/// Lets ecCodes decode the whole field. ecCodes trusts numbers that it should check, so the caller has
/// compared the numbers of points before.
Status decode_by_eccodes(Octets message, Index points, double missing, double* values) {
  std::optional<grib2::Handle> handle;
  std::size_t count = 0;
  {
    const auto lock = grib2::lock_definitions();
    Result<grib2::Handle> opened = grib2::Handle::over_message(message);
    TR_TRY(opened.status());
    handle = std::move(*opened);
    int error = handle->count_values(count);
    if (error != CODES_SUCCESS)
      return {Code::corrupt, cat("ecCodes does not tell how many values it has: ", grib2::reason(error))};
    if (static_cast<Index>(count) != points)
      return contradiction("values", points, static_cast<Index>(count));
    error = handle->set("missingValue", missing);
    if (error != CODES_SUCCESS)
      return {Code::corrupt, cat("ecCodes does not mark its missing values: ", grib2::reason(error))};
  }
  const int error = handle->decode(values, count);
  if (error != CODES_SUCCESS)
    return {Code::corrupt, cat("ecCodes does not decode its values: ", grib2::reason(error))};
  if (static_cast<Index>(count) != points)
    return contradiction("decoded values", points, static_cast<Index>(count));
  return {};
}

template <typename Value>
Index copy_part(const double* from, double missing, const Points& points, const layout::Box& cut, Value* to) {
  Index holes = 0;
  for_each_run(points, cut, [&](Index first, Index count, bool is_turned) {
    for (Index i = 0; i < count; ++i) {
      const double value = from[first + i];
      const bool is_hole = value == missing;
      holes += is_hole ? 1 : 0;
      to[i] = is_hole ? std::numeric_limits<Value>::quiet_NaN() : static_cast<Value>(value);
    }
    if (is_turned) std::reverse(to, to + count);
    to += count;
  });
  return holes;
}

/// Checks that headers and inventory agree on the number of points.
Status check_points(Octets message, const GribField& field, const Grid& grid, Index points) {
  if (field.edition == 1) return {};
  const std::string* const type = codec::find_key(grid.keys, "gridType");
  if (type != nullptr && *type == "sh") return {};
  const auto got = static_cast<Index>(number(section_of(message, field, 3), 6, 4));
  if (got != points) return contradiction("points of its grid", points, got);
  const auto values = static_cast<Index>(number(section_of(message, field, 5), 5, 4));
  if (values > points) return contradiction("packed values, at most", points, values);
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

bool is_whole(const layout::Box& cut, const std::vector<Index>& shape) {
  return cut.upper == shape && std::ranges::all_of(cut.lower, [](Index each) { return each == 0; });
}

/// True if the message holds only this field.
bool is_alone(const GribField& field) {
  const GribSection& last = field.sections[7];
  return field.edition == 1 || (field.number == 0 && last.offset + last.length + 4 == field.length);
}

/// Lets ecCodes decode a packing that is not decoded here, and stores the part inside `cut`.
template <typename Value>
Result<Index> decode_other(Octets message, const GribField& field, const Points& points,
                           const layout::Box& cut, Value* to, ByteVector& memory) {
#ifdef TAILRACE_FUZZING
  return Status(Code::unsupported, "ecCodes' decoders are not what is tested");
#endif
  constexpr double missing = -std::numeric_limits<double>::max();
  const ByteVector single = is_alone(field) ? ByteVector() : single_message(message, field);
  const Octets own = single.empty() ? message : Octets(single);
  const Index count = layout::product(points.shape);
  if constexpr (std::is_same_v<Value, double>) {
    if (is_whole(cut, points.shape) && points.turning_row == 0) {
      TR_TRY(decode_by_eccodes(own, count, missing, to));
      return copy_part(to, missing, points, cut, to);
    }
  }
  memory.resize(static_cast<std::size_t>(count) * sizeof(double));
  auto* const all = reinterpret_cast<double*>(memory.data());
  TR_TRY(decode_by_eccodes(own, count, missing, all));
  return copy_part(all, missing, points, cut, to);
}

template <typename Value>
Result<Index> decode_as(Octets message, const GribField& field, const Grid& grid, const layout::Box& cut,
                        Value* to, ByteVector& memory) {
  const Index count = layout::product(grid.shape);
  TR_TRY(check_points(message, field, grid, count));
  const Result<Index> row = turning_row(grid);
  TR_TRY(row.status());
  const Points points{grid.shape, *row};
  Result<std::optional<Packed>> packed =
      field.edition == 1 ? packed_1(message, field, count) : packed_2(message, field, count);
  TR_TRY(packed.status());
  if (*packed) return store(**packed, points, cut, section_of(message, field, 7), memory, to);
  return decode_other(message, field, points, cut, to, memory);
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
