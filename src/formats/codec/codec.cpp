// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "formats/codec/codec.hpp"

#include <cmath>

#include "ground/base/text.hpp"

namespace tailrace::codec {

namespace {

Status check_values(const FieldDefinition& field) {
  if (size_of(field.type) == 0)
    return {Code::argument, cat("element type ", static_cast<std::int32_t>(field.type), " is unknown")};
  if (field.elements() <= 0)
    return {Code::argument, "a record has no elements, or more than 2^63: check the shape"};
  if (field.levels.values.empty()) return {Code::argument, "a field needs at least one level"};
  if (!field.levels.bottoms.empty() && field.levels.bottoms.size() != field.levels.values.size())
    return {Code::argument, cat(field.levels.bottoms.size(), " bottoms for ", field.levels.values.size(),
                                " levels; give one for each, or none")};
  const int given = field.accuracy.has_value() + field.information.has_value() +
                    field.relative_accuracy.has_value() + field.bits.has_value();
  if (given > 1)
    return {Code::argument, "accuracy, relative accuracy and bits exclude one another: give one of them"};
  for (const auto& limit : {field.accuracy, field.relative_accuracy}) {
    if (limit && !(*limit > 0 && std::isfinite(*limit)))
      return {Code::argument, cat("accuracy is ", *limit, "; it must be positive and finite")};
  }
  if (field.information && !(*field.information > 0 && *field.information <= 1))
    return {Code::argument, cat("information is ", *field.information, "; it must be above 0 and at most 1")};
  if (field.missing && std::isinf(*field.missing))
    return {Code::argument, "missing is infinite; give a finite value or NaN"};
  return {};
}

}  // namespace

Status check_field(const FieldDefinition& field) {
  if (field.name.empty()) return {Code::argument, "a field needs a name"};
  return check_values(field).in(cat("field '", field.name, "'"));
}

}  // namespace tailrace::codec
