// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// The fields of a stream that are means, sums or extremes over some of their dimensions (over=).
#include <algorithm>
#include <array>

#include "faces/streams/definition/fields.hpp"
#include "formats/cf/grid.hpp"
#include "formats/grids/grids.hpp"
#include "ground/base/text.hpp"

namespace tailrace::streams {

namespace {

/// Returns the names by which over= knows the dimensions of a layout: those that the program has given, or
/// those of a map. None if nothing names them.
Result<std::vector<std::string>> names_of(const PlacedLayout& layout, bool& is_map) {
  const Result<codec::Keys> keys = grids::keys_of(layout.georeference);
  TR_TRY(keys.status());
  const std::vector<Index> shape = layout.shape();
  const Result<cf::Grid> grid = cf::grid_of(*keys, shape, layout.georeference.coordinates);
  TR_TRY(grid.status());
  using Kind = cf::Grid::Kind;
  is_map = grid->kind != Kind::unknown && grid->kind != Kind::told;
  if (!layout.dimensions.empty() || !is_map) return layout.dimensions;
  if (grid->is_projected()) return std::vector<std::string>{"y", "x"};
  if (grid->kind == Kind::rotated) return std::vector<std::string>{"rlat", "rlon"};
  return std::vector<std::string>{"lat", "lon"};
}

/// Returns the names of the dimensions, or where the program gives it the standard_name of the coordinate:
/// cell_methods names a dimension by it that the variable lacks.
std::vector<std::string> standard_names(std::vector<std::string> names,
                                        const std::vector<codec::Axis>& axes) {
  for (const codec::Axis& axis : axes) {
    const std::string* const standard = codec::find_key(axis.attributes, "standard_name");
    if (standard != nullptr) std::ranges::replace(names, axis.dimension, *standard);
  }
  return names;
}

Status no_such_dimension(const std::string& name, const std::vector<std::string>& names, bool has_levels) {
  std::string list;
  for (const std::string& each : names) list += cat(list.empty() ? "'" : ", '", each, "'");
  if (has_levels) list += cat(list.empty() ? "'" : ", '", "levels'");
  const std::string why = names.empty() ? ": name the layout's dimensions by tr_layout_dimensions" : "";
  return {Code::settings, cat("over=: the field has no dimension '", name, "'; it has ",
                              list.empty() ? "none with a name" : list, why)};
}

}  // namespace

/// Takes the dimensions out of the definition that over= names. On a map the field keeps its place on the
/// globe, since that tells where the dimensions lie that are left.
Status Fields::prepare_reduction(const FieldRequest& request, const PlacedLayout& layout, Field& out) {
  if (request.lost.empty()) return {};
  codec::FieldDefinition& field = out.definition;
  TR_TRY(operations::check_operation(operations::Operation::mean, field.type, field.missing));
  bool is_map = false;
  const Result<std::vector<std::string>> names = names_of(layout, is_map);
  TR_TRY(names.status());
  codec::Reduction& reduction = field.reduction;
  reduction.shape = field.shape;
  if (is_map)
    reduction.dimensions = layout.dimensions;
  else if (out.part)  // a number behind a lost dimension's name would name none of the file
    reduction.dimensions = standard_names(out.part->dimensions, out.part->axes);
  else
    reduction.dimensions = standard_names(layout.dimensions, layout.axes);
  reduction.is_lost.assign(field.shape.size(), 0);
  if (field.elements() <= 0) return {Code::settings, "over=: the field has no elements"};
  const bool has_levels = field.levels.values.size() > 1;
  const auto is_named = [&](const std::string& name) { return std::ranges::count(*names, name) > 0; };
  for (const std::string& name : request.lost) {
    if (name == "levels" && has_levels) {
      if (is_named(name))
        return {Code::settings, "over=: a dimension of the layout is called levels: give it another name"};
      reduction.level_type = field.levels.type;
    } else if (is_named(name) && names->size() != field.shape.size()) {
      return {Code::settings,
              "over=: the layout has the points of a map in one dimension: give it the map's two"};
    } else if (is_named(name)) {
      reduction.is_lost[static_cast<std::size_t>(std::ranges::find(*names, name) - names->begin())] = 1;
    } else {
      return no_such_dimension(name, *names, has_levels);
    }
  }
  if (!reduction.level_type.empty()) field.levels = {};
  if (!reduction.is_within_level()) return {};
  field.shape.clear();
  field.dimensions.clear();
  for (std::size_t i = 0; i < reduction.shape.size(); ++i) {
    if (reduction.is_lost[i] != 0) continue;
    field.shape.push_back(reduction.shape[i]);
    if (!layout.dimensions.empty()) field.dimensions.push_back(layout.dimensions[i]);
  }
  // Coordinates that the program gives are those of points, which are gone.
  if (!is_map) field.georeference = {};
  return {};
}

/// Makes what joins the levels of a field, if over= names them.
Status Fields::prepare_joining(Field& out) {
  const codec::Reduction& reduction = out.definition.reduction;
  if (reduction.level_type.empty()) return {};
  using operations::Operation;
  constexpr std::array as_of_steps{Operation::instant, Operation::mean, Operation::accum, Operation::minimum,
                                   Operation::maximum};
  operations::Accumulated what{as_of_steps[static_cast<std::size_t>(reduction.operation)],
                               out.definition.type, out.definition.missing, 1, out.count};
  const bool is_weighted = out.level_weights != nullptr;
  if (is_weighted) what.levels = std::ssize(out.levels);
  const Bytes bytes =
      is_weighted ? operations::WeightedLevels::bytes_of(what) : operations::Accumulator::bytes_of(what);
  const auto drawn = std::make_shared<node::Draw>(session_.memory().budget(), node::Use::intervals);
  TR_TRY(drawn->take(bytes).in(cat("over= takes ", counted(bytes, "byte"), " on this rank")));
  if (is_weighted) {
    out.weighted_levels = std::make_unique<operations::WeightedLevels>(what);
    out.joining_drawn = drawn;
    return {};
  }
  out.over_levels = std::make_unique<operations::Accumulator>(what);
  out.over_levels->memory()->drawn = drawn;
  return {};
}

Status Field::join_levels(const layout::MemoryMap& map_of_array, const std::byte* data, int rank) {
  Status status;
  Index offending = -1;
  if (weighted_levels) {
    status = weighted_levels->join(map_of_array, data, *level_weights);
    offending = weighted_levels->offending();
  } else {
    over_levels->begin();
    for (std::size_t level = 0; level < levels.size(); ++level)
      over_levels->add(map_of_array, data + static_cast<Index>(level) * map_of_array.level_stride);
    status = over_levels->finish();
    offending = over_levels->offending();
  }
  if (status.is_ok()) return {};
  return status.in(cat("over ", counted(levels.size(), "level"), ": ", place_of(offending, rank)));
}

}  // namespace tailrace::streams
