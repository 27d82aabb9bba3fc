// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/cf/quantise.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "formats/codec/missing.hpp"
#include "formats/information/choose.hpp"
#include "ground/base/text.hpp"

namespace tailrace::cf {

namespace {

// netCDF-C uses the first of these names for rounding to bits (netcdf.h, NC_QUANTIZE_BITROUND_ATT_NAME).
constexpr std::string_view bits_name = "_QuantizeBitRoundNumberOfSignificantBits",
                           error_name = "quantization_maximum_absolute_error",
                           step_name = "quantization_step", information_name = "quantization_information";

/// Rounds to a multiple of `step`, a power of two, ties to even. A float can hold the result for a float,
/// because the result needs no more bits of the mantissa than the value.
template <typename Real>
Real to_multiple(Real value, double step, double inverse) {
  // Adding this number to a double moves the digits behind the point out of the mantissa.
  constexpr double shift = 6755399441055744.0;  // 1.5 * 2^52
  const double scaled = static_cast<double>(value) * inverse;
  const double rounded = (scaled + shift) - shift;
  // Larger numbers have no digits behind the point. NaN stays, because it compares false.
  return std::fabs(scaled) < 2251799813685248.0 ? static_cast<Real>(rounded * step) : value;
}

template <typename Real>
using BitsOf = std::conditional_t<sizeof(Real) == 4, std::uint32_t, std::uint64_t>;

/// Rounds away the last `dropped` bits of the mantissa, ties to even. Cuts them off if the value would become
/// infinite.
template <typename Real>
Real to_bits(Real value, int dropped) {
  using Bits = BitsOf<Real>;
  const auto bits = std::bit_cast<Bits>(value);
  const Bits kept = ~((Bits{1} << dropped) - 1);
  const Bits half = (Bits{1} << (dropped - 1)) - 1 + ((bits >> dropped) & 1);
  const auto rounded = std::bit_cast<Real>(static_cast<Bits>((bits + half) & kept));
  if (!std::isfinite(value)) return value;
  return std::isfinite(rounded) ? rounded : std::bit_cast<Real>(static_cast<Bits>(bits & kept));
}

/// Returns the missing value in the type of the values.
template <typename Real>
std::optional<Real> missing_as(std::optional<double> missing) {
  if (!missing) return std::nullopt;
  constexpr ElementType type = sizeof(Real) == 4 ? ElementType::f32 : ElementType::f64;
  return static_cast<Real>(codec::missing_in(type, *missing));
}

template <typename Real, typename Round>
void round_all(std::span<Real> values, std::optional<double> missing, Round round) {
  if (!missing || std::isnan(*missing)) {
    for (Real& value : values) value = round(value);
    return;
  }
  // A value that would be rounded to the missing value keeps all its bits: it must not become missing.
  const Real kept = *missing_as<Real>(missing);
  for (Real& value : values) {
    const Real rounded = round(value);
    value = value == kept || rounded == kept ? value : rounded;
  }
}

template <typename Real>
std::optional<codec::KeptBits> quantise_all(std::span<Real> values, const Quantisation& how,
                                            std::optional<double> missing) {
  if (how.information > 0) {
    const codec::KeptBits found = information::kept_of(std::span<const Real>(values),
                                                       missing_as<Real>(missing), how.row, how.information);
    if (!found.is_whole) quantise_all(values, {.step = 0, .kept = found.bits}, missing);
    return found;
  }
  if (how.step > 0) {
    const double inverse = 1 / how.step;
    round_all(values, missing, [&](Real value) { return to_multiple(value, how.step, inverse); });
  } else if (how.kept) {
    const int dropped = std::numeric_limits<Real>::digits - 1 - *how.kept;
    if (dropped > 0) round_all(values, missing, [&](Real value) { return to_bits(value, dropped); });
  }
  return std::nullopt;
}

}  // namespace

Quantisation quantisation_of(const codec::FieldDefinition& field) {
  Quantisation how;
  const bool is_float = field.type == ElementType::f32;
  if (!is_float && field.type != ElementType::f64) return how;
  const int most =
      is_float ? std::numeric_limits<float>::digits - 1 : std::numeric_limits<double>::digits - 1;
  if (field.accuracy && *field.accuracy > 0) {
    int exponent = 0;
    std::frexp(*field.accuracy, &exponent);  // accuracy = m * 2^exponent, 0.5 <= m < 1
    // Beyond these exponents the step or its inverse would not be a normal number.
    if (exponent > -1000 && exponent < 1000) how.step = std::ldexp(1.0, exponent);
  }
  if (field.information) {
    how.information = *field.information;
    how.row = codec::row_of(field.shape);
  }
  std::optional<int> kept;
  if (field.bits) kept = *field.bits;
  if (field.relative_accuracy && *field.relative_accuracy > 0) {
    // Rounding to `kept` bits changes a value by at most 2^-(kept + 1) of itself.
    int exponent = 0;
    std::frexp(*field.relative_accuracy, &exponent);
    kept = std::max(0, -exponent);
  }
  if (kept && *kept < most) how.kept = kept;
  return how;
}

double cost(const Quantisation& how, ElementType type, double bytes) {
  // Measured: docs/design/035-precision-by-information.md.
  return how.information > 0
             ? bytes / static_cast<double>(size_of(type)) * (type == ElementType::f32 ? 0.8 : 1.7)
             : 0;
}

std::vector<Attribute> attributes_of(const Quantisation& how, const codec::FieldDefinition& field) {
  if (how.kept) return {Attribute::number(std::string(bits_name), Type::int32, *how.kept)};
  if (how.step > 0)
    return {Attribute::number(std::string(error_name), Type::float64, *field.accuracy),
            Attribute::number(std::string(step_name), Type::float64, how.step)};
  if (how.information > 0)
    return {Attribute::number(std::string(information_name), Type::float64, how.information)};
  return {};
}

Status check_quantisation_names(const codec::Keys& attributes) {
  for (const std::string_view name : {bits_name, error_name, step_name, information_name}) {
    if (codec::find_key(attributes, name) != nullptr)
      return {Code::argument,
              cat("attribute '", name, "' tells of rounding, and a file has it by itself: leave it out")};
  }
  return {};
}

std::optional<codec::KeptBits> quantise(std::span<float> values, const Quantisation& how,
                                        std::optional<double> missing) {
  return quantise_all(values, how, missing);
}
std::optional<codec::KeptBits> quantise(std::span<double> values, const Quantisation& how,
                                        std::optional<double> missing) {
  return quantise_all(values, how, missing);
}

std::optional<codec::KeptBits> quantise(std::span<std::byte> values, ElementType type,
                                        const Quantisation& how, std::optional<double> missing) {
  if (how.keeps_all()) return std::nullopt;
  const std::size_t count = values.size() / static_cast<std::size_t>(size_of(type));
  if (type == ElementType::f32)
    return quantise(std::span(reinterpret_cast<float*>(values.data()), count), how, missing);
  return quantise(std::span(reinterpret_cast<double*>(values.data()), count), how, missing);
}

}  // namespace tailrace::cf
