// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/grib2/packing/information.hpp"

#include <cmath>

#include "formats/information/choose.hpp"

namespace tailrace::grib2 {

/// Moves the codes of a record that lacks values to their places, from the last one on. The others become 0,
/// which has no part in the information.
void InformedScaling::spread(Index coded, std::span<const std::byte> bitmap) {
  for (Index at = std::ssize(codes_) - 1, from = coded; at >= 0; --at) {
    const bool is_there =
        (bitmap[static_cast<std::size_t>(at / 8)] << at % 8 & std::byte{0x80}) != std::byte{};
    codes_[static_cast<std::size_t>(at)] = is_there ? codes_[static_cast<std::size_t>(--from)] : 0;
  }
}

template <typename Value>
std::optional<Scaling> InformedScaling::choose(const codec::FieldDefinition& field, const Range& range,
                                               const Value* values, Index coded,
                                               std::span<const std::byte> bitmap,
                                               const References& references) {
  if (is_integer(field.type)) {
    const std::optional<Scaling> whole = scaling_within(range, 0.75, references);
    if (whole) kept_bits_ = codec::KeptBits::all(whole->bits);
    return whole;
  }
  const int bits = informed_bits(field.type);
  const std::optional<Scaling> fine = scaling_for(range, bits, references);
  if (!fine) return std::nullopt;
  const auto elements = static_cast<std::size_t>(field.elements());
  if (codes_.capacity() < elements) {  // resize() alone would hold the old memory beside twice as much
    std::vector<std::uint32_t>().swap(codes_);
    codes_.reserve(elements);
  }
  codes_.resize(elements);
  write_codes(values, coded, *fine, codes_.data());
  if (!bitmap.empty()) spread(coded, bitmap);
  std::uint32_t zero = 0;
  const Value nothing = 0;
  if (range.least < 0 && range.most > 0) write_codes(&nothing, 1, *fine, &zero);
  kept_bits_ = information::kept_of(codes_, bits, zero, codec::row_of(field.shape), *field.information);
  // Fewer bits may come with another power of ten.
  const double widest_step = std::ldexp(step_of(*fine), bits - kept_bits_.bits);
  for (int fewer = kept_bits_.bits; fewer < bits; ++fewer) {
    const std::optional<Scaling> scaling = scaling_for(range, fewer, references);
    if (!scaling || step_of(*scaling) > widest_step) continue;
    kept_bits_.bits = fewer;
    return scaling;
  }
  kept_bits_.bits = bits;
  return fine;
}

template std::optional<Scaling> InformedScaling::choose(const codec::FieldDefinition&, const Range&,
                                                        const float*, Index, std::span<const std::byte>,
                                                        const References&);
template std::optional<Scaling> InformedScaling::choose(const codec::FieldDefinition&, const Range&,
                                                        const double*, Index, std::span<const std::byte>,
                                                        const References&);

}  // namespace tailrace::grib2
