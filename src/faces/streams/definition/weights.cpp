// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// The weights of fields that are means or sums over some of their dimensions (weights=).
#include <algorithm>
#include <cmath>

#include "engine/operations/elements.hpp"
#include "faces/streams/definition/fields.hpp"
#include "formats/codec/missing.hpp"
#include "ground/base/shape_text.hpp"
#include "ground/base/text.hpp"

namespace tailrace::streams {

namespace {

/// Returns how far the values of `weights` are apart along each dimension of `layout`: 0 along one that they
/// lack. Returns nothing if they have another shape or other dimensions, or, where no names tell the elements
/// apart, another section than the field's.
std::optional<std::vector<Index>> strides_in(const codec::FieldDefinition& weights,
                                             const PlacedLayout& layout, const codec::Section& section) {
  const std::vector<Index> shape = layout.shape();
  std::vector<Index> strides(shape.size());
  const bool has_names = !weights.dimensions.empty() && !layout.dimensions.empty();
  if (!has_names && (weights.shape != shape || !(weights.section == section))) return {};
  Index stride = 1;
  for (std::size_t j = weights.shape.size(); j-- > 0;) {
    std::size_t i = j;
    if (has_names)
      i = static_cast<std::size_t>(std::ranges::find(layout.dimensions, weights.dimensions[j]) -
                                   layout.dimensions.begin());
    if (i >= shape.size() || shape[i] != weights.shape[j]) return {};
    strides[i] = stride;
    stride *= weights.shape[j];
  }
  return strides;
}

std::string text_of(const codec::FieldDefinition& field, const std::vector<Index>& shape,
                    const std::vector<std::string>& dimensions, std::size_t levels) {
  std::string text = field.shape.empty() && shape.empty() ? "no dimension" : extents(shape);
  std::string names;
  for (const std::string& each : dimensions) names += cat(names.empty() ? " (" : ", ", each);
  if (!names.empty()) text += cat(names, ")");
  return levels > 1 ? cat(text, " on ", counted(levels, "level")) : text;
}

Status other_shape(const Field& weights, const Field& field, const PlacedLayout& layout) {
  const codec::FieldDefinition& its = weights.definition;
  return {Code::settings,
          cat("weights=", its.name, ": it has ",
              text_of(its, its.shape, its.dimensions, weights.levels.size()), ", and the field has ",
              text_of(field.definition, layout.shape(), layout.dimensions, field.levels.size()),
              ": weights lie on the layout of the field, with the same section=, or have some of its "
              "dimensions, by the names that tr_layout_dimensions gives them")};
}

/// Returns an error if the field has been given on other levels than its weights, or in another order:
/// weights are found by the position of a level.
Status check_same_levels(const Field& weights, const Field& field) {
  const codec::FieldDefinition& definition = field.definition;
  const std::string& type =
      definition.reduction.level_type.empty() ? definition.levels.type : definition.reduction.level_type;
  const std::string& its_type = weights.definition.levels.type;
  if (its_type == type && weights.levels == field.levels) return {};
  const auto text = [](const std::string& type_of_all, const std::vector<double>& values) {
    std::string list;
    for (const double each : values) list += cat(list.empty() ? ":" : ",", each);
    return cat(type_of_all, list);
  };
  return {Code::settings,
          cat("weights=", weights.definition.name, ": it has levels=", text(its_type, weights.levels),
              ", and the field has levels=", text(type, field.levels),
              ": give both the same levels, in the same order")};
}

}  // namespace

bool Fields::is_weights(const std::string& field) const {
  return std::ranges::any_of(fields_,
                             [&](const Field& each) { return each.definition.reduction.weights == field; });
}

/// Returns an error if this rank has put a value that can be no weight.
Status Fields::check_weights(const Field& weights) const {
  if (!weights.no_weight) return {};
  return {Code::data,
          cat("field '", weights.definition.name, "' has the weights of another (weights=), and the value ",
              *weights.no_weight, ": weights are numbers from 0 on; missing ones count as 0")};
}

/// Finds the weights of a field of which over= has taken dimensions.
Status Fields::prepare_weights(const FieldRequest& request, const PlacedLayout& layout, Field& out) {
  if (request.weights.empty()) return {};
  const std::string what = cat("weights=", request.weights);
  const std::optional<int> number = number_of(request.weights);
  if (!number) return no_such_field(what, request.weights, names());
  const Field& its = fields_[static_cast<std::size_t>(*number)];
  const codec::FieldDefinition& weights = its.definition;
  if (weights.has_time)
    return {Code::settings, cat(what, ": the field has time: define it with time=none, and put it once")};
  if (is_complex(weights.type) || is_text(weights.type))
    return {Code::settings, cat(what, ": the field is of ", name_of(weights.type),
                                ", and weights are integers or real numbers")};
  TR_TRY(check_weights(its));
  codec::Reduction& reduction = out.definition.reduction;
  reduction.weights = request.weights;
  const bool are_of_levels = its.levels.size() > 1 && !reduction.level_type.empty();
  if (are_of_levels) return prepare_weights_of_levels(its, layout, out);
  if (!reduction.is_within_level())
    return {Code::settings, cat(what,
                                ": it has one level, and over= has levels alone: the weights of levels "
                                "are a field with as many levels")};
  const std::size_t levels = its.levels.size();
  std::optional<std::vector<Index>> strides = strides_in(weights, layout, out.definition.section);
  if (!strides || (levels > 1 && levels != out.levels.size())) return other_shape(its, out, layout);
  if (levels > 1) TR_TRY(check_same_levels(its, out));
  bool has_lost = false;
  for (std::size_t i = 0; i < strides->size(); ++i)
    has_lost = has_lost || (reduction.is_lost[i] != 0 && ((*strides)[i] > 0 || reduction.shape[i] == 1));
  if (!has_lost)
    return {Code::settings,
            cat(what, ": it has none of the dimensions of over=, along which weights differ")};
  reduction.weight_strides = std::move(*strides);
  reduction.weight_level = levels > 1 ? weights.elements() : 0;
  if (session_.rank() != 0 || its.weights_drawn) return {};
  const Bytes each = weights.whole_bytes() +
                     weights.elements() * static_cast<Bytes>(levels) * static_cast<Bytes>(sizeof(double));
  const Bytes all = each * session_.topology().roster().servers();
  auto drawn = std::make_unique<node::Draw>(session_.memory().budget(), node::Use::coordinates);
  TR_TRY(drawn->take(all).in(cat(what, ": each server keeps the weights, which takes ", size_text(all),
                                 ": set TAILRACE_MEMORY to more")));
  out.weights_drawn = std::move(drawn);
  return {};
}

/// The ranks join levels, and so each of them keeps the weights of what it owns.
Status Fields::prepare_weights_of_levels(const Field& weights, const PlacedLayout& layout, Field& out) const {
  const codec::FieldDefinition& its = weights.definition;
  const std::string what = cat("weights=", its.name);
  if (out.definition.reduction.is_within_level())
    return {Code::settings,
            cat(what,
                ": it has levels, and over= has other dimensions, too, which are joined later and "
                "without the weights of levels: write the mean over levels, or over the others")};
  const bool is_scalar = weights.layout->is_scalar;
  const bool fits =
      weights.levels.size() == out.levels.size() && (is_scalar || weights.layout->id == layout.id);
  if (!fits) return other_shape(weights, out, layout);
  TR_TRY(check_same_levels(weights, out));
  out.level_weights = weights.level_weights;
  if (!weights.level_weights) {
    if (weights.is_put)
      return {Code::state, cat(what,
                               ": its values were put already, and each rank keeps those of levels: "
                               "define this field before tr_stream_put of '",
                               its.name, "'")};
    const auto count = static_cast<std::size_t>(is_scalar ? 1 : weights.count) * weights.levels.size();
    auto drawn = std::make_unique<node::Draw>(session_.memory().budget(), node::Use::coordinates);
    TR_TRY(drawn->take(static_cast<Bytes>(count * sizeof(double))).in(what));
    out.level_weights = std::make_shared<std::vector<double>>(count);
    out.level_weights_drawn = std::move(drawn);
  }
  return {};
}

/// Gives the weights what prepare_weights() has made for them, once all ranks have agreed on the field.
void Fields::keep_weights(Field& field) {
  const std::optional<int> number = number_of(field.definition.reduction.weights);
  if (!number) return;
  Field& weights = fields_[static_cast<std::size_t>(*number)];
  if (field.weights_drawn) weights.weights_drawn = std::move(field.weights_drawn);
  if (!field.level_weights_drawn) return;
  weights.level_weights = field.level_weights;
  weights.level_weights_drawn = std::move(field.level_weights_drawn);
}

/// Looks at the values of a field without time that this rank owns, and keeps them if they are the weights of
/// levels.
Status Fields::take_weights(Field& field, const std::vector<arrays::OwnPart>& parts) const {
  const codec::FieldDefinition& definition = field.definition;
  const double missing = definition.missing ? codec::missing_in(definition.type, *definition.missing) : 0;
  field.no_weight.reset();
  std::size_t at = 0;
  operations::with_type(definition.type, [&](auto zero) {
    for (const arrays::OwnPart& part : parts) {
      for (std::size_t i = 0; i < part.values.size(); i += sizeof zero, ++at) {
        auto value = static_cast<double>(operations::load<decltype(zero)>(part.values.data() + i));
        const bool is_missing = value == missing || (value != value && missing != missing);
        if (definition.missing && is_missing) value = 0;
        if (!(value >= 0) || std::isinf(value)) field.no_weight = field.no_weight.value_or(value);
        if (field.level_weights && at < field.level_weights->size()) (*field.level_weights)[at] = value;
      }
    }
  });
  return is_weights(definition.name) ? check_weights(field) : Status();
}

}  // namespace tailrace::streams
