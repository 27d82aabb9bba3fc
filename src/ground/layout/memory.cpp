// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/layout/memory.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "ground/base/text.hpp"
#include "ground/layout/array.hpp"
#include "ground/layout/shape.hpp"

namespace tailrace::layout {
namespace {

/// Returns the error for a level dimension that the array does not have. Fortran counts dimensions from 1,
/// the fastest first.
Status wrong_axis(int axis, int dims) {
  const std::string range =
      told_order() == Order::c
          ? cat("level_axis is ", axis, ", expected 0 (slowest) to ", dims, " (fastest)")
          : cat("level_dim is ", dims + 1 - axis, ", expected 1 (fastest) to ", dims + 1, " (slowest)");
  return layout_error(range, " of an array that has ", counted(dims, "dimension"), " besides");
}

Status check_levels(const Allocation& allocation, std::size_t dims) {
  if (allocation.levels < 1)
    return layout_error("a field of ", counted(allocation.levels, "level"), ": expected at least 1");
  if (allocation.nproma < 0)
    return layout_error("nproma is ", allocation.nproma, ": expected a block length, or 0 for none");
  if (allocation.level_axis < 0) {
    if (allocation.level_axis == -1 && allocation.levels == 1) return {};
    return layout_error("level_axis is ", allocation.level_axis, " (no level dimension) for a field of ",
                        counted(allocation.levels, "level"),
                        ": tell which dimension of the array is the level");
  }
  if (allocation.nproma == 0 && static_cast<std::size_t>(allocation.level_axis) > dims)
    return wrong_axis(allocation.level_axis, static_cast<int>(dims));
  return {};
}

Status check_halo(const Layout& layout, const Allocation& allocation) {
  const auto& halo = allocation.halo;
  if (halo.empty()) return {};
  const bool none = std::all_of(halo.begin(), halo.end(), [](Index width) { return width == 0; });
  if (!none && ((!layout.is_box() && !layout.is_tiled()) || allocation.nproma > 0))
    return layout_error("halo ", tuple(halo), " with ",
                        allocation.nproma > 0 ? "NPROMA blocks" : cat("a layout of kind ", layout.kind()),
                        ": only arrays that hold boxes can have a halo");
  if (halo.size() != layout.shape().size())
    return layout_error("halo ", tuple(halo), " has ", halo.size(), " entries, expected ",
                        layout.shape().size(), ", one for each dimension of the layout");
  for (std::size_t d = 0; d < halo.size(); ++d)
    if (halo[d] < 0)
      return layout_error("halo ", halo[d], " of ", dimension_text(d, halo.size()), " is negative");
  return {};
}

/// Returns how many dimensions the array of a rank has, without the level dimension.
std::size_t array_dims(const Layout& layout) {
  if (layout.is_box()) return layout.shape().size();
  return layout.is_tiled() ? layout.shape().size() + 1 : 1;
}

/// Returns the extents of a box with its halo. The caller has checked the halo.
Result<std::vector<Index>> extents_with_halo(const Box& box, const std::vector<Index>& halos) {
  std::vector<Index> extents;
  for (std::size_t d = 0; d < box.lower.size(); ++d) {
    const Index halo = halos.empty() ? 0 : halos[d];
    Index both = 0, extent = 0;
    if (__builtin_add_overflow(halo, halo, &both) ||
        __builtin_add_overflow(both, box.upper[d] - box.lower[d], &extent))
      return layout_error("halo ", halo, " of ", dimension_text(d, box.lower.size()),
                          " is too wide for 64-bit numbers");
    extents.push_back(extent);
  }
  return extents;
}

/// Returns the extents of the array of `rank`. The caller has checked the halo.
Result<std::vector<Index>> all_extents(const Layout& layout, int rank, const Allocation& allocation) {
  std::vector<Index> extents;
  if (allocation.nproma > 0) {
    const Index count = layout.count(rank);
    extents = {count == 0 ? 0 : (count - 1) / allocation.nproma + 1, allocation.nproma};
  } else if (!layout.is_box()) {
    extents = {layout.count(rank)};
  } else {
    auto with_halo = extents_with_halo(layout.box(rank), allocation.halo);
    if (!with_halo.is_ok()) return with_halo;
    extents = *std::move(with_halo);
  }
  // Under NPROMA the level dimension is always between block and nproma.
  if (allocation.level_axis >= 0)
    extents.insert(extents.begin() + (allocation.nproma > 0 ? 1 : allocation.level_axis), allocation.levels);
  return extents;
}

Status check_allocation(const Layout& layout, int rank, const Allocation& allocation) {
  if (rank < 0 || rank >= layout.ranks())
    return layout_error("rank ", rank, " is outside of the layout's ", counted(layout.ranks(), "rank"));
  TR_TRY(check_levels(allocation, array_dims(layout)));
  return check_halo(layout, allocation);
}

Status too_large(const std::vector<Index>& extents_) {
  return layout_error("an array of ", extents(extents_),
                      " elements spans more bytes than 64-bit numbers count");
}

/// Returns the strides of all dimensions: the given ones, or those of a contiguous array.
Result<std::vector<Bytes>> all_strides(const std::vector<Index>& extents, Bytes element,
                                       const Allocation& allocation) {
  std::vector<Bytes> strides(extents.size());
  if (!allocation.strides.empty()) {
    if (allocation.strides.size() != extents.size())
      return layout_error(counted(allocation.strides.size(), "stride"), " for an array of ",
                          counted(extents.size(), "dimension"), " (", layout::extents(extents), ", ",
                          order_text(), ", level dimension included)");
    strides = allocation.strides;
  } else {
    Bytes stride = element;
    for (std::size_t d = extents.size(); d-- > 0;) {
      strides[d] = stride;
      if (__builtin_mul_overflow(stride, std::max<Index>(extents[d], 1), &stride)) return too_large(extents);
    }
  }
  Bytes span = element;
  for (std::size_t d = 0; d < extents.size(); ++d) {
    Bytes step = 0;
    if (strides[d] == INT64_MIN ||
        __builtin_mul_overflow(std::abs(strides[d]), std::max<Index>(extents[d], 1), &step) ||
        __builtin_add_overflow(span, step, &span))
      return too_large(extents);
  }
  return strides;
}

/// The extents of a rank's tiles with their halos.
struct TileExtents {
  std::vector<std::vector<Index>> tiles;
  Index elements = 0;  // of all tiles together
  bool are_equal = true;
};

Result<TileExtents> tile_extents(const Layout& layout, int rank, const Allocation& allocation) {
  TileExtents all;
  for (const Box& tile : layout.tiles(rank)) {
    auto extents = extents_with_halo(tile, allocation.halo);
    TR_TRY(extents.status());
    Index elements = 1;
    for (const Index extent : *extents)
      if (__builtin_mul_overflow(elements, extent, &elements)) return too_large(*extents);
    if (__builtin_add_overflow(all.elements, elements, &all.elements)) return too_large(*extents);
    all.tiles.push_back(*std::move(extents));
    all.are_equal = all.are_equal && all.tiles.back() == all.tiles.front();
  }
  return all;
}

/// Returns the extents of the array in which equal tiles are one more dimension, without the levels.
std::vector<Index> stacked_extents(const TileExtents& all) {
  std::vector<Index> extents = all.tiles.front();
  extents.insert(extents.begin(), std::ssize(all.tiles));
  return extents;
}

/// Equal tiles are one more dimension of the array.
Result<std::vector<Array>> stacked_tiles(const TileExtents& all, Bytes element,
                                         const Allocation& allocation) {
  std::vector<Index> extents = stacked_extents(all);
  if (allocation.level_axis >= 0) extents.insert(extents.begin() + allocation.level_axis, allocation.levels);
  auto strides = all_strides(extents, element, allocation);
  TR_TRY(strides.status());
  Array array;
  array.element = element;
  if (allocation.level_axis >= 0) {
    const auto axis = strides->begin() + allocation.level_axis;
    array.level_stride = *axis;
    strides->erase(axis);
  }
  const Bytes pitch = strides->front();
  array.strides.assign(strides->begin() + 1, strides->end());
  for (std::size_t d = 0; d < allocation.halo.size(); ++d)
    array.offset += allocation.halo[d] * array.strides[d];
  std::vector<Array> arrays;
  for (std::size_t i = 0; i < all.tiles.size(); ++i, array.offset += pitch) arrays.push_back(array);
  return arrays;
}

/// The tiles lie one after another in a list of elements. The level dimension is the slowest or the fastest.
Result<std::vector<Array>> listed_tiles(const TileExtents& all, Bytes element, const Allocation& allocation) {
  const std::vector<Index> one{all.elements};
  std::vector<Index> extents = one;
  const bool has_levels = allocation.level_axis >= 0, are_slowest = allocation.level_axis == 0;
  if (has_levels) extents.insert(are_slowest ? extents.begin() : extents.end(), allocation.levels);
  const auto strides = all_strides(extents, element, allocation);
  TR_TRY(strides.status());
  const Bytes step = has_levels && are_slowest ? strides->back() : strides->front();
  const Bytes level_stride = !has_levels ? 0 : are_slowest ? strides->front() : strides->back();
  std::vector<Array> arrays;
  Bytes begin = 0;
  for (const std::vector<Index>& tile : all.tiles) {
    Array array{element, begin, std::vector<Bytes>(tile.size()), level_stride, 0};
    Bytes stride = step;
    for (std::size_t d = tile.size(); d-- > 0; stride *= tile[d]) array.strides[d] = stride;
    for (std::size_t d = 0; d < allocation.halo.size(); ++d)
      array.offset += allocation.halo[d] * array.strides[d];
    begin += stride;
    arrays.push_back(std::move(array));
  }
  return arrays;
}

/// Appends the nest to the one before if both are one loop over elements side by side.
void join_last_nests(MemoryMap& map) {
  if (map.nests.size() < 2) return;
  const Nest& last = map.nests.back();
  Nest& before = map.nests[map.nests.size() - 2];
  if (last.loops.size() != 1 || before.loops.size() != 1) return;
  Loop& loop = before.loops.front();
  if (loop.stride != map.element || last.loops.front().stride != map.element ||
      before.offset + loop.count * map.element != last.offset)
    return;
  loop.count += last.loops.front().count;
  map.nests.pop_back();
}

/// Adds the nest of a box that lies in memory as `array` says.
void add_box(MemoryMap& map, const Box& box, const Array& array) {
  std::vector<Loop> loops;
  for (std::size_t d = 0; d < array.strides.size(); ++d)
    loops.push_back({box.upper[d] - box.lower[d], array.strides[d]});
  add_nest(map, array.offset, std::move(loops));
}

Result<MemoryMap> tiles_map(const Layout& layout, int rank, ElementType type, const Allocation& allocation) {
  const auto arrays = describe_tiles(layout, rank, type, allocation);
  TR_TRY(arrays.status());
  const std::vector<Box> tiles = layout.tiles(rank);
  MemoryMap map{size_of(type), arrays->empty() ? 0 : arrays->front().level_stride, {}};
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    add_box(map, tiles[i], (*arrays)[i]);
    join_last_nests(map);
  }
  return map;
}

/// Returns the extents that an array of the rank may have.
Result<std::vector<std::vector<Index>>> possible_extents(const Layout& layout, int rank,
                                                         const Allocation& allocation) {
  if (!layout.is_tiled() || allocation.nproma > 0) {
    auto extents = all_extents(layout, rank, allocation);
    TR_TRY(extents.status());
    return std::vector<std::vector<Index>>{*std::move(extents)};
  }
  const auto all = tile_extents(layout, rank, allocation);
  TR_TRY(all.status());
  std::vector<std::vector<Index>> possible;
  const int axis = allocation.level_axis;
  const bool is_fastest = axis == static_cast<int>(layout.shape().size()) + 1;
  if (all->are_equal) {
    possible.push_back(stacked_extents(*all));
    if (axis >= 0) possible.back().insert(possible.back().begin() + axis, allocation.levels);
  }
  if (axis <= 0 || is_fastest) {
    possible.push_back({all->elements});
    std::vector<Index>& list = possible.back();
    if (axis >= 0) list.insert(is_fastest ? list.end() : list.begin(), allocation.levels);
  }
  if (possible.empty())
    return layout_error("the boxes of rank ", rank,
                        " have different extents: the level dimension must be the slowest or the fastest");
  return possible;
}

Status check_type(ElementType type) {
  if (size_of(type) != 0) return {};
  return {Code::argument, cat("element type ", static_cast<std::int32_t>(type),
                              " is none of TR_I8 .. TR_U64 and TR_TEXT(1) .. TR_TEXT(", most_text, ")")};
}

}  // namespace

Result<std::vector<Array>> describe_tiles(const Layout& layout, int rank, ElementType type,
                                          const Allocation& allocation) {
  TR_TRY(check_type(type));
  TR_TRY(check_allocation(layout, rank, allocation));
  const auto all = tile_extents(layout, rank, allocation);
  TR_TRY(all.status());
  if (all->tiles.empty()) return std::vector<Array>();
  const int axis = allocation.level_axis;
  const std::size_t strides = allocation.strides.size(), own = strides - (axis >= 0 ? 1 : 0);
  const bool is_between = axis > 0 && axis <= static_cast<int>(layout.shape().size());
  if (!is_between && (strides == 0 || own == 1)) return listed_tiles(*all, size_of(type), allocation);
  if (all->are_equal) return stacked_tiles(*all, size_of(type), allocation);
  return layout_error("the boxes of rank ", rank, " have different extents: ",
                      strides == 0
                          ? "the level dimension must be the slowest or the fastest of all"
                          : "their array is a list of elements, with one stride and that of the levels");
}

Result<Array> describe_array(const Layout& layout, int rank, ElementType type, const Allocation& allocation) {
  Array array;
  TR_TRY(check_type(type));
  array.element = size_of(type);
  TR_TRY(check_allocation(layout, rank, allocation));
  auto extents = all_extents(layout, rank, allocation);
  if (!extents.is_ok()) return extents.status();
  auto strides = all_strides(*extents, array.element, allocation);
  if (!strides.is_ok()) return strides.status();
  array.strides = *std::move(strides);
  array.nproma = allocation.nproma;
  if (allocation.level_axis >= 0) {
    const auto axis = array.strides.begin() + (allocation.nproma > 0 ? 1 : allocation.level_axis);
    array.level_stride = *axis;
    array.strides.erase(axis);
  }
  if (!allocation.halo.empty() && layout.is_box() && allocation.nproma == 0)
    for (std::size_t d = 0; d < allocation.halo.size(); ++d)
      array.offset += allocation.halo[d] * array.strides[d];
  return array;
}

Index MemoryMap::count() const {
  Index total = 0;
  for (const Nest& nest : nests) total += turns_of(nest.loops);
  return total;
}

void merge_loops(std::vector<Loop>& loops, Bytes unit) {
  std::vector<Loop> merged;
  for (const Loop& loop : loops) {
    if (loop.count == 1) continue;
    Bytes whole = 0;
    if (!merged.empty() && !__builtin_mul_overflow(loop.count, loop.stride, &whole) &&
        merged.back().stride == whole)
      merged.back() = {merged.back().count * loop.count, loop.stride};
    else
      merged.push_back(loop);
  }
  if (merged.empty()) merged.push_back({1, unit});
  loops = std::move(merged);
}

void add_nest(MemoryMap& map, Bytes offset, std::vector<Loop> loops) {
  for (const Loop& loop : loops)
    if (loop.count == 0) return;
  merge_loops(loops, map.element);
  map.nests.push_back({offset, std::move(loops)});
}

Result<MemoryMap> memory_map(const Layout& layout, int rank, ElementType type, const Allocation& allocation) {
  if (layout.is_tiled() && allocation.nproma == 0) return tiles_map(layout, rank, type, allocation);
  const auto array = describe_array(layout, rank, type, allocation);
  if (!array.is_ok()) return array.status();
  MemoryMap map{array->element, array->level_stride, {}};
  const std::vector<Bytes>& strides = array->strides;
  const Index count = layout.count(rank);
  if (array->nproma > 0) {
    const Index full = count / array->nproma;
    add_nest(map, 0, {{full, strides[0]}, {array->nproma, strides[1]}});
    add_nest(map, full * strides[0], {{count % array->nproma, strides[1]}});
  } else if (layout.is_box()) {
    add_box(map, layout.box(rank), *array);
  } else {
    add_nest(map, 0, {{count, strides[0]}});
  }
  return map;
}

Result<Allocation> match_extents(const Layout& layout, int rank, Allocation allocation,
                                 std::span<const Index> extents) {
  TR_TRY(check_allocation(layout, rank, allocation));
  if (layout.count(rank) == 0) return allocation;
  const std::vector<Index> got(extents.begin(), extents.end());
  Allocation flat = allocation;
  if (flat.levels == 1) flat.level_axis = -1;
  std::vector<std::string> expected;
  for (Allocation candidate : {allocation, flat}) {
    for (const bool with_halo : {true, false}) {
      if (!with_halo) candidate.halo.clear();
      const auto possible = possible_extents(layout, rank, candidate);
      if (!possible.is_ok()) return possible.status();
      for (const std::vector<Index>& wanted : *possible) {
        if (wanted == got) return candidate;
        const std::string text = layout::extents(wanted);
        if (std::find(expected.begin(), expected.end(), text) == expected.end()) expected.push_back(text);
      }
    }
  }
  std::string either = expected.front();
  for (std::size_t i = 1; i < expected.size(); ++i) either += " or " + expected[i];
  return layout_error("the array of rank ", rank, " has extents ", layout::extents(got), ", expected ",
                      either, " (", order_text(), ": what the rank owns, with or without its halo)");
}

}  // namespace tailrace::layout
