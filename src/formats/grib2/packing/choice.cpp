// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/grib2/packing/choice.hpp"

#include <algorithm>
#include <cmath>

#include "formats/codec/missing.hpp"
#include "ground/base/text.hpp"

namespace tailrace::grib2 {

namespace {

constexpr int default_bits = 16;

}  // namespace

int widest(const codec::FieldDefinition& field) {
  if (field.bits) return *field.bits;
  if (field.information) return informed_bits(field.type);
  return field.accuracy || field.relative_accuracy ? most_bits : default_bits;
}

std::string place(const Field& field, Index level) {
  const codec::Levels& levels = field.definition.levels;
  return cat(levels.type, " level ", levels.values[static_cast<std::size_t>(level)]);
}

void Choosing::begin() {
  offending_ = -1;
  kept_bits_.reset();
}

// Finds the first value that is not finite, for the error. Runs only after range_of() has found that there is
// one. Returns success if all such values are NaN and NaN means "no value".
template <typename Value>
Status Choosing::not_finite(const Field& field, Index level, const Value* values, Index count) {
  const auto absent = [&](Value x) {
    return field.definition.missing && std::isnan(*field.definition.missing) && std::isnan(x);
  };
  for (Index i = 0; i < count; ++i) {
    if (std::isfinite(values[i]) || absent(values[i])) continue;
    offending_ = i;
    return {Code::data, cat(place(field, level), ", index ", i, ": the value is ",
                            std::isnan(values[i]) ? "NaN" : "infinite", ", which ", edition_.name,
                            " cannot hold; correct it, or define the field with missing=")};
  }
  return {};
}

// Returns the scaling of a record whose values are all equal. Such a record has only its reference value, and
// no codes, unless the field's accuracy asks for more.
std::optional<Scaling> Choosing::constant_scaling(const Field& field, const Range& range,
                                                  double accuracy) const {
  const Scaling alone{edition_.references.below(range.least), 0, 0, 0};
  const double off = range.least - alone.reference;
  if (accuracy <= 0 || off <= accuracy) return alone;
  if (field.ccsds) return std::nullopt;
  // Equal codes hold the difference between the constant and its reference value.
  int binary = std::ilogb(accuracy) + 1;
  Scaling rest{alone.reference, std::max(binary, -127), 0, 0};
  rest.bits = std::max(1, std::ilogb(std::ldexp(off, -rest.binary) + 0.5) + 1);
  if (rest.bits > most_bits || error_of(rest, range) > accuracy) return std::nullopt;
  return rest;
}

template <typename Value>
Result<Choice> Choosing::choose(const Field& field, Index level, Value* values, Index count) {
  const codec::FieldDefinition& definition = field.definition;
  bitmap_.clear();
  Index coded = count;
  if (definition.missing) {
    // The error for an infinity, or a NaN that is not the missing value, names its index. compact() moves
    // values, so the index must be found before.
    const Range before = range_of(values, count);
    if (!before.finite) TR_TRY(not_finite(field, level, values, count));
    coded = compact(values, count, codec::missing_in(definition.type, *definition.missing), bitmap_);
  }
  if (coded > 0) return choose_scaling(field, level, values, coded);
  if (definition.information) kept_bits_ = codec::KeptBits::all(0);
  return Choice{0, Scaling{0, 0, 0, widest(definition)}, false};
}

template <typename Value>
Result<Choice> Choosing::choose_scaling(const Field& field, Index level, const Value* values, Index coded) {
  const codec::FieldDefinition& definition = field.definition;
  const References& references = edition_.references;
  const Range range = range_of(values, coded);
  if (!range.finite) return not_finite(field, level, values, coded);
  if (range.least < -references.largest || range.least > references.largest)
    return Status(Code::data,
                  cat(place(field, level), ": the value ", range.least, " is beyond ", references.largest,
                      ", the largest reference that ", edition_.name, " holds"));

  double accuracy = definition.accuracy.value_or(0);
  if (definition.relative_accuracy)
    accuracy = *definition.relative_accuracy * std::max(std::fabs(range.least), std::fabs(range.most));
  const bool constant = range.least == range.most;
  const std::optional<Scaling> scaling =
      constant                 ? constant_scaling(field, range, accuracy)
      : definition.information ? informed_.choose(definition, range, values, coded, bitmap_, references)
      : accuracy > 0           ? scaling_within(range, accuracy, references)
                               : scaling_for(range, widest(definition), references);
  if (definition.information) kept_bits_ = constant ? codec::KeptBits::all(0) : informed_.kept_bits();
  if (scaling) return Choice{coded, *scaling, constant};
  return Status(Code::data,
                cat(place(field, level), ": values from ", range.least, " to ", range.most, " do not fit ",
                    accuracy > 0 ? cat("an accuracy of ", accuracy, " in at most ", most_bits, " bits")
                                 : cat(widest(definition), " bits"),
                    constant ? cat(" (constants are kept as ", references.type, "); ") : "; ",
                    definition.information ? "give bits= in place of accuracy=auto, or scale the field"
                                           : "ask for less accuracy, or scale the field"));
}

template Result<Choice> Choosing::choose(const Field&, Index, float*, Index);
template Result<Choice> Choosing::choose(const Field&, Index, double*, Index);

}  // namespace tailrace::grib2
