// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/grib2/packing.hpp"

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>

namespace tailrace::grib2 {

namespace {

constexpr int largest_scale = 127;  // ecCodes takes E from -127 to 127
constexpr Index block =
    2048;  // values packed at a time; a multiple of 8, so that each block ends on a whole octet

double power_of_ten(int exponent) {
  // Multiplies repeatedly, as ecCodes does. pow() would round differently.
  double power = 1;
  for (; exponent > 0; --exponent) power *= 10;
  for (; exponent < 0; ++exponent) power /= 10;
  return power;
}

// Returns the smallest E with which the largest code still fits `bits`, or nothing if ecCodes does not take
// this E.
std::optional<int> binary_scale(double range, int bits) {
  const double largest_code = std::ldexp(1.0, bits) - 1;
  const auto fits = [&](int scale) { return std::floor(std::ldexp(range, -scale) + 0.5) <= largest_code; };
  int scale = std::ilogb(range) - bits;
  while (!fits(scale)) ++scale;
  while (fits(scale - 1)) --scale;
  if (scale < -largest_scale || scale > largest_scale) return std::nullopt;
  return scale;
}

void store_big_endian(std::byte* to, std::uint32_t value) {
  if constexpr (std::endian::native == std::endian::little) value = __builtin_bswap32(value);
  std::memcpy(to, &value, sizeof value);
}

void store_codes(const std::uint32_t* codes, Index count, int bits, std::byte* to) {
  if (bits == 24) {
    // Stores four octets at a time. The next code overwrites the fourth one, and `to` has room for the last.
    for (Index i = 0; i < count; ++i, to += 3) store_big_endian(to, codes[i] << 8);
    return;
  }
  std::uint64_t pending = 0;
  int held = 0;
  for (Index i = 0; i < count; ++i) {
    pending = pending << bits | codes[i];
    held += bits;
    if (held >= 32) {
      held -= 32;
      store_big_endian(to, static_cast<std::uint32_t>(pending >> held));
      to += 4;
    }
  }
  for (; held >= 8; ++to) {
    held -= 8;
    *to = static_cast<std::byte>(pending >> held & 0xff);
  }
  if (held > 0) *to = static_cast<std::byte>(pending << (8 - held) & 0xff);
}

}  // namespace

Coding::Coding(const Scaling& scaling)
    : factor(power_of_ten(scaling.decimal)),
      reference(scaling.reference),
      divisor(std::ldexp(1.0, -scaling.binary)),
      bits(scaling.bits) {}

template <typename Value>
Index compact(Value* values, Index count, double missing, ByteVector& bitmap) {
  bitmap.assign(static_cast<std::size_t>((count + 7) / 8), std::byte{0});
  const bool missing_is_nan = std::isnan(missing);
  Index there = 0;
  for (Index i = 0; i < count; ++i) {
    const Value x = values[i];
    const bool absent = missing_is_nan ? std::isnan(x) : static_cast<double>(x) == missing;
    bitmap[static_cast<std::size_t>(i / 8)] |= static_cast<std::byte>((absent ? 0 : 0x80) >> i % 8);
    values[there] = x;
    there += absent ? 0 : 1;
  }
  if (there == count) bitmap.clear();
  return there;
}

double reference_below(double value) {
  if (value == 0) return 0;
  if (std::fabs(value) < FLT_MIN) return value > 0 ? 0.0 : -static_cast<double>(FLT_MIN);
  float nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) > value) nearest = std::nextafter(nearest, -FLT_MAX);
  return static_cast<double>(nearest);
}

std::optional<Scaling> scaling_for(const Range& range, int bits, const References& references) {
  // Like ecCodes, scales by powers of ten (D) until an E from -127 to 127 can express the range.
  const double codes = std::ldexp(1.0, bits) - 1;
  const double narrowest = std::ldexp(codes, -largest_scale);
  const double widest = std::ldexp(codes, largest_scale);
  Scaling scaling;
  scaling.bits = bits;
  double decimal = 1, least = range.least, most = range.most;
  while (most - least < narrowest) {
    ++scaling.decimal;
    decimal *= 10;
    least = range.least * decimal;
    most = range.most * decimal;
  }
  while (most - least > widest) {
    --scaling.decimal;
    decimal /= 10;
    least = range.least * decimal;
    most = range.most * decimal;
  }
  if (std::fabs(least) > references.largest) return std::nullopt;
  scaling.reference = references.below(least);
  const std::optional<int> scale = binary_scale(most - scaling.reference, bits);
  if (!scale) return std::nullopt;
  scaling.binary = *scale;
  return scaling;
}

double step_of(const Scaling& scaling) {
  return std::ldexp(1.0, scaling.binary) * power_of_ten(-scaling.decimal);
}

double error_of(const Scaling& scaling, const Range& range) {
  const double rounding = 4 * DBL_EPSILON * std::max(std::fabs(range.least), std::fabs(range.most));
  if (scaling.bits == 0)
    return std::fabs(range.least - scaling.reference) + std::fabs(range.most - range.least);
  return step_of(scaling) / 2 + rounding;
}

std::optional<Scaling> scaling_within(const Range& range, double accuracy, const References& references) {
  // The number of steps of twice the accuracy in the range gives a lower bound of the bits. From there on
  // each number of bits is tried.
  const double steps = (range.most - range.least) / 2 / accuracy;
  int bits = steps > 1 ? std::min(std::ilogb(steps), most_bits) : 1;
  for (bits = std::max(bits, 1); bits <= most_bits; ++bits) {
    const std::optional<Scaling> scaling = scaling_for(range, bits, references);
    if (scaling && error_of(*scaling, range) <= accuracy) return scaling;
  }
  return std::nullopt;
}

Bytes packed_length(Index count, int bits) { return count / 8 * bits + (count % 8 * bits + 7) / 8; }

template <typename Value, typename Code>
void write_codes(const Value* values, Index count, const Scaling& scaling, Code* to) {
  compute_codes(values, count, Coding(scaling), to);
}

namespace {

/// Appends codes of 8, 16 or 32 bits. They are computed where they belong. The vector grows by a block at a
/// time: what it fills with zeros is in the nearest cache when the codes come.
template <typename Code, typename Value>
void append_octets(const Value* values, Index count, const Coding& coding, ByteVector& out) {
  for (Index at = 0; at < count; at += block) {
    const Index here = std::min(block, count - at);
    const std::size_t size = out.size();
    out.resize(size + static_cast<std::size_t>(here) * sizeof(Code));
    pack_codes<Code>(values + at, here, coding, out.data() + size);
  }
}

}  // namespace

template <typename Value>
void append_packed(const Value* values, Index count, const Scaling& scaling, ByteVector& out) {
  const Coding coding(scaling);
  if (scaling.bits == 8) return append_octets<std::uint8_t>(values, count, coding, out);
  if (scaling.bits == 16) return append_octets<std::uint16_t>(values, count, coding, out);
  if (scaling.bits == 32) return append_octets<std::uint32_t>(values, count, coding, out);
  std::byte packed[block * 4 + 4];
  for (Index at = 0; at < count; at += block) {
    const Index here = std::min(block, count - at);
    std::uint32_t codes[block];
    compute_codes(values + at, here, coding, codes);
    store_codes(codes, here, scaling.bits, packed);
    out.insert(out.end(), packed, packed + packed_length(here, scaling.bits));
  }
}

template Index compact(float*, Index, double, ByteVector&);
template Index compact(double*, Index, double, ByteVector&);
template void write_codes(const float*, Index, const Scaling&, std::uint8_t*);
template void write_codes(const float*, Index, const Scaling&, std::uint16_t*);
template void write_codes(const float*, Index, const Scaling&, std::uint32_t*);
template void write_codes(const double*, Index, const Scaling&, std::uint8_t*);
template void write_codes(const double*, Index, const Scaling&, std::uint16_t*);
template void write_codes(const double*, Index, const Scaling&, std::uint32_t*);
template void append_packed(const float*, Index, const Scaling&, ByteVector&);
template void append_packed(const double*, Index, const Scaling&, ByteVector&);

}  // namespace tailrace::grib2
