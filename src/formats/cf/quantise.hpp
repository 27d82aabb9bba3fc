// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "formats/cf/model.hpp"
#include "formats/codec/definition.hpp"

namespace tailrace::cf {

/// How the values of a field lose bits that nobody needs, so that they compress well.
struct Quantisation {
  double step = 0;          // 0 = none; values become multiples of it, a power of two
  std::optional<int> kept;  // bits of the mantissa behind its first one

  [[nodiscard]] bool keeps_all() const { return step == 0 && !kept; }
};

/// Returns the quantisation that a field's accuracy=, relative_accuracy= or bits= asks for. Integers keep all
/// bits, which satisfies each of them.
Quantisation quantisation_of(const codec::FieldDefinition& field);

/// Returns the attributes that tell of it in the file.
std::vector<Attribute> attributes_of(const Quantisation& how, const codec::FieldDefinition& field);
/// Returns Code::argument if one of the names is that of such an attribute.
Status check_quantisation_names(const codec::Keys& attributes);

/// Quantises values in place. NaN, Inf and `missing` stay as they are.
void quantise(std::span<float> values, const Quantisation& how, std::optional<double> missing);
void quantise(std::span<double> values, const Quantisation& how, std::optional<double> missing);
/// The same for bytes that are values of the field's type. Nothing happens unless they are to lose bits.
void quantise(std::span<std::byte> values, ElementType type, const Quantisation& how,
              std::optional<double> missing);

}  // namespace tailrace::cf
