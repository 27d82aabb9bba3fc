// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "formats/cf/model.hpp"
#include "formats/codec/codec.hpp"

namespace tailrace::cf {

/// How the values of a field are rounded, so that they compress well: to multiples of `step`, to `kept` bits,
/// in each record to those bits that carry the share `information` of its information, or not at all.
struct Quantisation {
  double step = 0;          // a power of two; 0: values are not rounded to multiples
  std::optional<int> kept;  // bits of the mantissa that stay behind its leading bit
  double information = 0;   // 0: the bits do not depend on the values
  Index row = 0;            // elements in a row of neighbours, whose information counts

  [[nodiscard]] bool keeps_all() const { return step == 0 && !kept && information == 0; }
};

/// Returns the quantisation that a field's accuracy=, information=, relative_accuracy= or bits= asks for.
/// Integers keep all bits, whatever is asked for.
Quantisation quantisation_of(const codec::FieldDefinition& field);

/// Returns the predicted cost of finding the bits that a record of so many bytes keeps, in nanoseconds.
double cost(const Quantisation& how, ElementType type, double bytes);

/// Returns the attributes by which a file tells readers about the quantisation.
std::vector<Attribute> attributes_of(const Quantisation& how, const codec::FieldDefinition& field);
/// Returns Code::argument if the program sets an attribute of this kind itself.
Status check_quantisation_names(const codec::Keys& attributes);

/// Quantises the values of a record in place. NaN, Inf and `missing` stay as they are, and no other value
/// becomes `missing`. Returns the bits that the record keeps, if they depend on its values.
std::optional<codec::KeptBits> quantise(std::span<float> values, const Quantisation& how,
                                        std::optional<double> missing);
std::optional<codec::KeptBits> quantise(std::span<double> values, const Quantisation& how,
                                        std::optional<double> missing);
/// Quantises bytes that are values of `type` (f32 or f64, unless `how` keeps all bits).
std::optional<codec::KeptBits> quantise(std::span<std::byte> values, ElementType type,
                                        const Quantisation& how, std::optional<double> missing);

}  // namespace tailrace::cf
