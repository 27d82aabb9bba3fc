// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/grib2/edition1/second_order.hpp"

#include <array>
#include <utility>

#include "formats/grib2/edition1/sections.hpp"
#include "formats/grib2/sections.hpp"
#include "ground/base/text.hpp"

namespace tailrace::grib2::edition1 {

namespace {

// ecCodes 2.28 fails an assertion with fewer: it takes differences of the second order.
constexpr Index fewest_values = 8;
constexpr std::byte complex_packing{0x40};  // among the flags of section 4

Status failed(std::string_view what, int error) {
  return {Code::data, cat("ecCodes does not pack the values in second order (", what, "): ", reason(error))};
}

int signed_number(const std::byte* from) {
  const auto value = static_cast<int>(get_number(from, 2));
  return (value & 0x8000) != 0 ? -(value & 0x7fff) : value;
}

/// Returns section 4 of a message.
std::span<const std::byte> data_of(std::span<const std::byte> message) {
  if (message.size() < least_head) return {};
  std::size_t at = product_at + static_cast<std::size_t>(get_number(&message[product_at], 3));
  if (at + 3 > message.size()) return {};
  at += static_cast<std::size_t>(get_number(&message[at], 3));  // section 2; there is no section 3
  if (at + static_cast<std::size_t>(data_header + end_length) > message.size()) return {};
  const Lengths lengths = lengths_of(get_number(&message[total_length_at], 3), get_number(&message[at], 3),
                                     static_cast<Bytes>(at));
  if (lengths.data < data_header || lengths.data > std::ssize(message) - static_cast<Bytes>(at) - end_length)
    return {};
  return message.subspan(at, static_cast<std::size_t>(lengths.data));
}

/// Returns the number of `width` bits from bit `first` on, or 0 where the octets end before.
std::uint64_t bits_at(std::span<const std::byte> octets, Bytes first, int width) {
  std::uint64_t value = 0;
  for (Bytes at = first; at < first + width; ++at) {
    if (at / 8 >= std::ssize(octets)) return 0;
    value = value << 1 |
            (std::to_integer<std::uint64_t>(octets[static_cast<std::size_t>(at / 8)]) >> (7 - at % 8) & 1);
  }
  return value;
}

/// Returns how many bits of a section 4 in general extended packing hold something. ecCodes leaves octets
/// behind them, as many as earlier records of the handle decide.
Bytes used_bits(std::span<const std::byte> data) {
  constexpr std::size_t least = 26;
  if (data.size() < least) return 0;
  const auto octet = [&](std::size_t number) { return std::to_integer<Bytes>(data[number - 1]); };
  const auto octets_of = [](Bytes bits) { return (bits + 7) / 8; };
  const Bytes groups = (octet(21) << 16) + (octet(17) << 8) + octet(18);
  const Bytes order = octet(14) & 3;
  const int width_of_widths = static_cast<int>(octet(22)), width_of_lengths = static_cast<int>(octet(23));
  const Bytes widths = 25 + (order > 0 ? 1 + octets_of((order + 1) * octet(26)) : 0);
  const Bytes lengths = widths + octets_of(groups * width_of_widths);
  const Bytes firsts = lengths + octets_of(groups * width_of_lengths);
  Bytes used = (firsts + octets_of(groups * octet(11))) * 8;
  for (Bytes group = 0; group < groups; ++group)
    used += static_cast<Bytes>(bits_at(data, widths * 8 + group * width_of_widths, width_of_widths) *
                               bits_at(data, lengths * 8 + group * width_of_lengths, width_of_lengths));
  return octets_of(used) <= std::ssize(data) ? used : 0;
}

}  // namespace

Status SecondOrder::begin() {
  const auto lock = lock_definitions();
  Result<Handle> sample = Handle::from_sample("GRIB1");
  TR_TRY(sample.status());
  // The packing of a message without codes stays simple. So it gets some first.
  std::array<double, fewest_values> some{};
  some.back() = 1;
  if (const int error = sample->set("bitsPerValue", 8L); error != 0) return failed("bitsPerValue", error);
  if (const int error = sample->set("values", std::span<const double>(some)); error != 0)
    return failed("values", error);
  if (const int error = sample->set("packingType", std::string("grid_second_order")); error != 0)
    return failed("packingType", error);
  handle_ = std::move(*sample);
  return {};
}

Result<Bytes> SecondOrder::append(const double* values, Index count, const Scaling& scaling,
                                  std::size_t start, ByteVector& out) {
  if (count < fewest_values) return 0;
  if (!handle_) TR_TRY(begin());
  // Sets back what the record before may have left in the handle.
  for (const auto& [key, value] :
       {std::pair("bitsPerValue", static_cast<long>(scaling.bits)), std::pair("decimalScaleFactor", 0L)}) {
    const int error = handle_->set(key, value);
    if (error == 0) continue;
    handle_.reset();
    return failed(key, error);
  }
  const std::span<const double> all(values, static_cast<std::size_t>(count));
  if (const int error = handle_->set("values", all); error != 0) {
    handle_.reset();  // its state is unknown now
    return failed(cat(count, " values in ", scaling.bits, " bits"), error);
  }
  const std::span<const std::byte> message = handle_->message(), data = data_of(message);
  const bool is_packed = !data.empty() && (data[3] & complex_packing) != std::byte{};
  if (is_packed) {
    Scaling theirs;
    theirs.binary = signed_number(&data[4]);
    theirs.decimal = signed_number(&message[decimal_at]);
    const Bytes used = used_bits(data);
    const Bytes simple = data_header + packed_length(count, scaling.bits);
    if (used > 0 && (used + 7) / 8 <= simple && step_of(theirs) <= step_of(scaling)) {
      put_signed(&out[start + decimal_at], theirs.decimal, 2);
      const std::size_t section = out.size();
      out.insert(out.end(), data.begin(), data.begin() + (used + 7) / 8);
      out[section + 3] &= std::byte{0xf0};  // the number of unused bits
      return used;
    }
  }
  // ecCodes has changed the packing of the handle.
  if (!is_packed) handle_.reset();
  return 0;
}

}  // namespace tailrace::grib2::edition1
