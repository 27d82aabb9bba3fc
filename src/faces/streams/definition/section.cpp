// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
// The fields of a stream whose files have a section of the program's array (section=).
#include <algorithm>

#include "faces/streams/definition/fields.hpp"
#include "formats/cf/grid.hpp"
#include "formats/grids/grids.hpp"
#include "formats/sections/sections.hpp"
#include "ground/base/text.hpp"

namespace tailrace::streams {

namespace {

/// The elements of a dimension that a field's records have: of `name` as the program calls it.
struct Slice {
  std::string name;
  Index whole = 0, start = 0, stride = 1, count = 0;
  std::vector<Index> of_map{};  // start, stride and count of all dimensions, where a map names both at once
  friend bool operator==(const Slice&, const Slice&) = default;
};

bool has_map(const LayoutPart& made) {
  if (made.coordinates) return false;
  const Result<codec::Keys> keys = grids::keys_of(made.part.georeference);
  const Result<cf::Grid> grid =
      keys.is_ok() ? cf::grid_of(*keys, made.part.layout.shape()) : Result<cf::Grid>(keys.status());
  return grid.is_ok() && grid->kind != cf::Grid::Kind::unknown;
}

Slice slice_of(const LayoutPart& made, std::size_t d) {
  const std::vector<Index>& shape = made.part.layout.shape();
  Slice slice{made.whole->dimensions[d], made.told.whole[d], made.told.start[d], made.told.stride[d],
              shape[d]};
  for (std::size_t i = 0; made.is_on_map && i < shape.size(); ++i) {
    const Index numbers[] = {made.told.start[i], made.told.stride[i], shape[i]};
    slice.of_map.insert(slice.of_map.end(), std::begin(numbers), std::end(numbers));
  }
  return slice;
}

/// The indices of a layout of which each rank knows its own part, or nothing.
Result<std::vector<Index>> own_part(const PlacedLayout& layout, const layout::Section& section) {
  if (!layout.in_parts) return std::vector<Index>();
  return layout::section_indices(layout.layout.shape(), section, layout.own_indices);
}

}  // namespace

bool LayoutPart::is_of(const PlacedLayout& layout, const layout::Section& wanted) const {
  const std::shared_ptr<const codec::Coordinates>& now = layout.georeference.coordinates;
  const bool same_points = now && coordinates ? coordinates->are_those_of(*now) : !now && !coordinates;
  return whole->id == layout.id && section == wanted && same_points &&
         georeference.keys == layout.georeference.keys && georeference.sample == layout.georeference.sample &&
         dimensions == layout.dimensions && axes == layout.axes;
}

/// Collective if ranks have to hear of each other's parts of the layout, or of its coordinates: then blocks
/// until they agree. Returns the section that the field asks for, nullptr for the whole array, or an error
/// that is not yet that of all ranks. If it is, because the ranks could not agree on the part, sets
/// `was_refused`: no rank then agrees on the field, too.
Result<std::shared_ptr<const LayoutPart>> Fields::part_of(const FieldRequest& request,
                                                          const PlacedLayout& layout, const std::string& call,
                                                          bool& was_refused) {
  if (request.section.empty()) return std::shared_ptr<const LayoutPart>();
  const Result<std::optional<layout::Section>> section = resolve_section(request.section, layout.shape());
  if (section.is_ok() && !section->has_value()) return std::shared_ptr<const LayoutPart>();
  if (section.is_ok()) {
    const auto known =
        std::ranges::find_if(layout_parts_, [&](const auto& each) { return each->is_of(layout, **section); });
    if (known != layout_parts_.end()) return *known;
  }
  std::shared_ptr<LayoutPart> made;
  Status mine = section.status();
  if (mine.is_ok()) mine = guarded([&] { return prepare_part(**section, layout, made); });
  if (layout.in_parts || layout.georeference.coordinates)
    mine = agree_on_part(mine.in(call), cat(call, " for the section of layout ", layout.id), layout, made,
                         was_refused);
  TR_TRY(mine);
  return std::shared_ptr<const LayoutPart>(made);
}

/// Collective. The ranks hear which of them own nothing of the part, and from rank 0 the checksum of its
/// coordinates. `made` is not looked at if `mine` is an error.
Status Fields::agree_on_part(const Status& mine, const std::string& call, const PlacedLayout& layout,
                             const std::shared_ptr<LayoutPart>& made, bool& was_refused) {
  const std::shared_ptr<const codec::Coordinates>& points = layout.georeference.coordinates;
  const bool is_idle = mine.is_ok() && layout.in_parts && made->part.own_indices.empty();
  comm::Vote vote{mine, call, {}};
  if (mine.is_ok() && points && session_.rank() == 0) {
    const std::uint64_t sum = made->part.georeference.coordinates->checksum;
    vote.contribution = Packer().put(static_cast<std::int8_t>(is_idle)).put(sum).take();
  } else if (is_idle) {
    vote.contribution = Packer().put(std::int8_t{1}).take();
  }
  const comm::Verdict verdict = session_.agree(std::move(vote));
  was_refused = !verdict.status.is_ok();
  TR_TRY(verdict.status);
  return guarded([&]() -> Status {
    if (points && session_.rank() != 0) {
      const auto sum = Unpacker(std::span(verdict.contributions[0]).subspan(1)).get<std::uint64_t>();
      made->part.georeference.coordinates = std::make_shared<const codec::Coordinates>(
          codec::Coordinates{made->part.layout.shape(), points->corners, sum, {}});
    }
    if (!layout.in_parts) return {};
    std::vector<int> idle;
    for (std::size_t rank = 0; rank < verdict.contributions.size(); ++rank)
      if (Unpacker(verdict.contributions[rank]).get<std::int8_t>() != 0)
        idle.push_back(static_cast<int>(rank));
    Result<layout::Layout> own =
        layout::Layout::indexed_part(made->part.layout.shape(), session_.rank(), layout.layout.ranks(),
                                     made->part.own_indices, std::move(idle));
    TR_TRY(own.status());
    made->part.layout = std::move(*own);
    return {};
  });
}

/// Makes what this rank knows of a section by itself. Rank 0 has the values of coordinates.
Status Fields::prepare_part(const layout::Section& section, const PlacedLayout& layout,
                            std::shared_ptr<LayoutPart>& out) {
  Result<layout::Layout> cut = layout::section_layout(layout.layout, section);
  TR_TRY(cut.status());
  Result<std::vector<Index>> own = own_part(layout, section);
  TR_TRY(own.status());
  const std::vector<Index> shape = cut->shape();
  const std::shared_ptr<const codec::Coordinates>& points = layout.georeference.coordinates;
  PlacedLayout whole = layout;
  whole.georeference = {};
  whole.own_indices.clear();
  whole.axes.clear();
  codec::Section told{layout.shape(), section.start, section.stop, section.stride, {}};
  sections::SectionGrid grid = sections::section_grid(layout.georeference, told, shape);
  told.no_grid = std::move(grid.no_grid);
  PlacedLayout part{std::move(*cut), number_of_part(layout.id, section),
                    layout.halo,     std::move(grid.georeference),
                    std::move(*own), layout.in_parts};
  out = std::make_shared<LayoutPart>(LayoutPart{
      section, std::make_shared<const PlacedLayout>(std::move(whole)), std::move(part), std::move(told)});
  out->georeference = {layout.georeference.sample, layout.georeference.keys, nullptr};
  if (points) out->coordinates = points->facts();
  out->dimensions = layout.dimensions;
  out->axes = layout.axes;
  out->is_on_map = has_map(*out);
  name_dimensions(*out);
  if (!points || session_.rank() != 0) return {};
  const codec::Coordinates facts{shape, points->corners, 0, {}};
  const Bytes bytes = facts.bytes().value_or(0);
  out->drawn = std::make_unique<node::Draw>(session_.memory().budget(), node::Use::coordinates);
  TR_TRY(out->drawn->take(bytes).in(cat("while the stream is open the coordinates of the section take ",
                                        size_text(bytes),
                                        ": set TAILRACE_MEMORY to more, or close other streams before")));
  out->part.georeference.coordinates =
      std::make_shared<const codec::Coordinates>(sections::section_coordinates(*points, out->told, shape));
  return {};
}

/// Layouts that the program makes have numbers from 0 on. Sections are numbered within the stream.
std::int64_t Fields::number_of_part(std::int64_t layout, const layout::Section& section) const {
  std::int64_t lowest = 0;
  for (const auto& each : layout_parts_) {
    if (each->whole->id == layout && each->section == section) return each->part.id;
    lowest = std::min(lowest, each->part.id);
  }
  return lowest - 1;
}

/// Gives the dimensions of a section their names, and their coordinates. A dimension that is cut has the name
/// that the program gave the whole one; if a field before has other elements under this name, a number stands
/// behind it that makes the name of no other dimension.
void Fields::name_dimensions(LayoutPart& part) const {
  part.part.dimensions = part.dimensions;
  if (part.dimensions.empty()) return;
  std::vector<std::pair<std::string, Slice>> known;  // by the names in the file
  for (const Field& field : fields_) {
    if (field.part) {
      for (std::size_t d = 0; d < field.part->dimensions.size(); ++d)
        known.emplace_back(field.part->part.dimensions[d], slice_of(*field.part, d));
      continue;
    }
    for (std::size_t d = 0; d < field.dimensions.size(); ++d) {
      const Index extent = field.layout->layout.shape()[d];
      known.emplace_back(field.dimensions[d], Slice{field.dimensions[d], extent, 0, 1, extent});
    }
  }
  const std::vector<Index>& shape = part.part.layout.shape();
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const bool is_cut = shape[d] != part.told.whole[d];
    const Slice slice = slice_of(part, d);
    std::string& name = part.part.dimensions[d];
    const auto is_taken = [&] {
      for (std::size_t other = 0; other < shape.size(); ++other)
        if (other != d && (name == part.dimensions[other] || name == part.part.dimensions[other]))
          return true;
      return std::ranges::any_of(
          known, [&](const auto& each) { return each.first == name && !(each.second == slice); });
    };
    for (int number = 2; (is_cut || part.is_on_map) && is_taken(); ++number)
      name = cat(part.dimensions[d], "_", number);
    for (const codec::Axis& axis : part.axes) {
      if (axis.dimension != part.dimensions[d]) continue;
      part.part.axes.push_back(sections::section_axis(axis, slice.start, slice.stride, slice.count));
      part.part.axes.back().dimension = name;
    }
  }
}

/// Gives the definition the shape of its section. over= names dimensions as the program does.
void Fields::take_part(const LayoutPart& part, FieldRequest& request) {
  request.definition.shape = part.part.layout.shape();
  request.definition.section = part.told;
  for (std::string& lost : request.lost) {
    const auto found = std::ranges::find(part.dimensions, lost);
    if (found != part.dimensions.end())
      lost = part.part.dimensions[static_cast<std::size_t>(found - part.dimensions.begin())];
  }
}

Result<layout::MemoryMap> Field::map_in(const layout::Allocation& array, int rank) const {
  if (!part) return layout::memory_map(layout->layout, rank, definition.type, array);
  return layout::section_map(part->whole->layout, rank, definition.type, array, part->section);
}

}  // namespace tailrace::streams
