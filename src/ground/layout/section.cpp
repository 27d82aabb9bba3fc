// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <algorithm>
#include <mutex>

#include "ground/base/text.hpp"
#include "ground/layout/array.hpp"
#include "ground/layout/memory.hpp"
#include "ground/layout/rule.hpp"

namespace tailrace::layout {
namespace {

Index ceil_divide(Index a, Index b) { return a <= 0 ? 0 : (a - 1) / b + 1; }

/// A section whose indices have been checked against a layout.
struct Selection {
  Section section;
  std::vector<Index> from;     // shape of the layout
  std::vector<Index> shape;    // shape of the section
  std::vector<Index> strides;  // strides of the section's shape

  /// Returns the box of the section's own indices whose elements, start + index*stride, lie in `box`.
  [[nodiscard]] Box clipped(const Box& box) const {
    Box out;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const Index start = section.start[d], stride = section.stride[d];
      const Index first = std::min(ceil_divide(box.lower[d] - start, stride), shape[d]);
      out.lower.push_back(first);
      out.upper.push_back(std::clamp(ceil_divide(box.upper[d] - start, stride), first, shape[d]));
    }
    return out;
  }
  /// Returns the number that element `global` of the layout has in the section, or -1 if it is not selected.
  [[nodiscard]] Index number_of(Index global) const {
    Index number = 0;
    for (std::size_t d = shape.size(); d-- > 0;) {
      const Index distance = global % from[d] - section.start[d];
      if (distance < 0 || distance % section.stride[d] != 0 || distance / section.stride[d] >= shape[d])
        return -1;
      number += distance / section.stride[d] * strides[d];
      global /= from[d];
    }
    return number;
  }
  /// Returns the global element of the layout that has the number `number` in the section.
  [[nodiscard]] Index element(Index number) const {
    Index global = 0, step = 1;
    for (std::size_t d = shape.size(); d-- > 0;) {
      global += (section.start[d] + number % shape[d] * section.stride[d]) * step;
      number /= shape[d];
      step *= from[d];
    }
    return global;
  }
};

Result<Selection> select(const std::vector<Index>& from, const Section& section) {
  auto shape = section.shape();
  if (!shape.is_ok()) return shape.status();
  if (shape->size() != from.size())
    return layout_error("a section of ", counted(shape->size(), "dimension"), " was taken of an array of ",
                        from.size());
  for (std::size_t d = 0; d < from.size(); ++d)
    if (section.stop[d] > from[d])
      return layout_error("the section stops at ", section.stop[d], " in ", dimension_text(d, from.size()),
                          ", beyond the array's extent ", from[d],
                          told_order() == Order::c ? " (stop is exclusive)" : "");
  auto strides = strides_of(*shape);
  return Selection{section, from, *std::move(shape), std::move(strides)};
}

/// Calls visit(position, number) for each selected element of `rank`, in packed order. `position` counts the
/// elements that the rank owns, `number` those of the section.
template <typename Visit>
void for_each_selected(const Layout& layout, int rank, const Selection& selection, const Visit& visit) {
  Index position = 0;
  for (const Rows& rows : layout.rows(rank))
    for (Index r = 0; r < rows.rows; ++r)
      for (Index i = 0; i < rows.count; ++i, ++position) {
        const Index number = selection.number_of(rows.global + r * rows.stride + i);
        if (number >= 0) visit(position, number);
      }
}

class SectionRule final : public Layout::Rule {
 public:
  SectionRule(Layout parent, Selection selection)
      : Rule(selection.shape, parent.ranks()), parent_(std::move(parent)), selection_(std::move(selection)) {}

  [[nodiscard]] std::string_view name() const override { return "section"; }
  [[nodiscard]] bool is_box() const override { return parent_.is_box(); }
  [[nodiscard]] Box box(int rank) const override {
    return is_box() ? selection_.clipped(parent_.box(rank)) : empty_box();
  }
  [[nodiscard]] bool is_tiled() const override { return parent_.is_tiled(); }
  [[nodiscard]] std::vector<Box> tiles(int rank) const override {
    std::vector<Box> tiles = parent_.tiles(rank);
    for (Box& tile : tiles) tile = selection_.clipped(tile);
    std::erase_if(tiles, [](const Box& tile) { return box_count(tile) == 0; });
    return tiles;
  }
  [[nodiscard]] bool has_unowned() const override { return !gaps().empty(); }
  [[nodiscard]] std::vector<Box> unowned() const override { return gaps(); }
  [[nodiscard]] Index count(int rank) const override {
    if (is_box()) return box_count(box(rank));
    if (is_tiled()) return tiles_count(tiles(rank));
    Index count = 0;
    for_each_selected(parent_, rank, selection_, [&](Index, Index) { ++count; });
    return count;
  }
  [[nodiscard]] std::vector<Rows> rows(int rank) const override {
    if (is_box()) return box_rows(shape(), box(rank));
    if (is_tiled()) return tiles_rows(shape(), tiles(rank));
    RowsBuilder rows;
    for_each_selected(parent_, rank, selection_, [&](Index, Index number) { rows.add(number, 1); });
    return rows.take();
  }
  [[nodiscard]] int owner(Index global) const override { return parent_.owner(selection_.element(global)); }
  [[nodiscard]] Status validate() const override { return parent_.validate(); }
  void pack(Packer& out) const override {
    const Section& section = selection_.section;
    out.put(Kind::section).put_list<Index>(section.start).put_list<Index>(section.stop);
    out.put_list<Index>(section.stride);
    parent_.pack(out);
  }

 private:
  /// The section may lie beside all gaps of the layout.
  [[nodiscard]] const std::vector<Box>& gaps() const {
    std::call_once(gaps_once_, [this] {
      if (!parent_.has_unowned()) return;
      gaps_ = Rule::unowned_of(parent_);
      for (Box& box : gaps_) box = selection_.clipped(box);
      std::erase_if(gaps_, [](const Box& box) { return box_count(box) == 0; });
    });
    return gaps_;
  }

  Layout parent_;
  Selection selection_;
  // Found when somebody first asks.
  mutable std::once_flag gaps_once_;
  mutable std::vector<Box> gaps_;
};

/// Adds the nests of selected positions in a one-dimensional or NPROMA array to a map, one block after
/// another.
class PositionNests {
 public:
  PositionNests(const Array& array, MemoryMap& map) : array_(array), map_(map) {}
  void add(Index position) {
    const Index block = array_.nproma > 0 ? position / array_.nproma : 0;
    if (block != block_) close();
    block_ = block;
    rows_.add(array_.nproma > 0 ? position % array_.nproma : position, 1);
  }
  void close() {
    const Bytes step = array_.strides.back();
    for (const Rows& rows : rows_.take())
      add_nest(map_, block_ * array_.strides.front() + rows.global * step,
               {{rows.rows, rows.stride * step}, {rows.count, step}});
  }

 private:
  const Array& array_;
  MemoryMap& map_;
  RowsBuilder rows_;
  Index block_ = 0;
};

/// Adds the nest of the selected elements of `box`, which lie in memory as `array` says.
void add_selected(const Selection& selection, const Box& box, const Array& array, MemoryMap& map) {
  const Section& section = selection.section;
  const Box part = selection.clipped(box);
  Bytes offset = array.offset;
  std::vector<Loop> loops;
  for (std::size_t d = 0; d < section.start.size(); ++d) {
    const Index first = section.start[d] + part.lower[d] * section.stride[d] - box.lower[d];
    if (part.lower[d] < part.upper[d]) offset += first * array.strides[d];
    // For a single element the step is never taken. It is set to 1, so that a huge stride cannot overflow.
    const Index step = part.upper[d] - part.lower[d] > 1 ? section.stride[d] : 1;
    loops.push_back({part.upper[d] - part.lower[d], step * array.strides[d]});
  }
  add_nest(map, offset, std::move(loops));
}

}  // namespace

Result<std::vector<Index>> Section::shape() const {
  if (stop.size() != start.size() || stride.size() != start.size())
    return layout_error("a section has ", counted(start.size(), "start"), ", ", counted(stop.size(), "stop"),
                        " and ", counted(stride.size(), "stride"),
                        ": expected one of each for every dimension");
  std::vector<Index> extents;
  for (std::size_t d = 0; d < start.size(); ++d) {
    const std::string which = cat("the section ", told_index(start[d]), ":", stop[d], ":", stride[d], " of ",
                                  dimension_text(d, start.size()));
    if (stride[d] < 1) return layout_error(which, " has a stride below 1");
    if (start[d] < 0) return layout_error(which, " starts below ", told_index(0));
    if (stop[d] < start[d]) return layout_error(which, " stops before it starts");
    extents.push_back(ceil_divide(stop[d] - start[d], stride[d]));
  }
  return extents;
}

Result<Layout> section_layout(const Layout& layout, const Section& section) {
  auto selection = select(layout.shape(), section);
  if (!selection.is_ok()) return selection.status();
  return Layout::Rule::wrap(std::make_shared<SectionRule>(layout, *std::move(selection)));
}

Result<std::vector<Index>> section_indices(const std::vector<Index>& shape, const Section& section,
                                           std::span<const Index> indices) {
  const auto selection = select(shape, section);
  if (!selection.is_ok()) return selection.status();
  std::vector<Index> numbers;
  for (const Index index : indices)
    if (const Index number = selection->number_of(index); number >= 0) numbers.push_back(number);
  return numbers;
}

Result<Layout> unpack_section(Unpacker& in) {
  Section section{in.get_list<Index>(), in.get_list<Index>(), in.get_list<Index>()};
  const auto parent = Layout::unpack(in);
  if (!parent.is_ok()) return parent;
  return section_layout(*parent, section);
}

Result<MemoryMap> section_map(const Layout& layout, int rank, ElementType type, const Allocation& allocation,
                              const Section& section) {
  const auto selection = select(layout.shape(), section);
  if (layout.is_tiled() && allocation.nproma == 0) {
    const auto arrays = describe_tiles(layout, rank, type, allocation);
    if (!arrays.is_ok()) return arrays.status();
    if (!selection.is_ok()) return selection.status();
    MemoryMap map{size_of(type), arrays->empty() ? 0 : arrays->front().level_stride, {}};
    const std::vector<Box> tiles = layout.tiles(rank);
    for (std::size_t i = 0; i < tiles.size(); ++i) add_selected(*selection, tiles[i], (*arrays)[i], map);
    return map;
  }
  const auto array = describe_array(layout, rank, type, allocation);
  if (!array.is_ok()) return array.status();
  if (!selection.is_ok()) return selection.status();
  MemoryMap map{array->element, array->level_stride, {}};
  if (!layout.is_box() || array->nproma > 0) {
    PositionNests nests(*array, map);
    for_each_selected(layout, rank, *selection, [&](Index position, Index) { nests.add(position); });
    nests.close();
    return map;
  }
  add_selected(*selection, layout.box(rank), *array, map);
  return map;
}

}  // namespace tailrace::layout
