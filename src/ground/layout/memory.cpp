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
  if (!none && (!layout.is_box() || allocation.nproma > 0))
    return layout_error("halo ", tuple(halo), " with ",
                        allocation.nproma > 0 ? "NPROMA blocks" : cat("a layout of kind ", layout.kind()),
                        ": only arrays that hold one box can have a halo");
  if (halo.size() != layout.shape().size())
    return layout_error("halo ", tuple(halo), " has ", halo.size(), " entries, expected ",
                        layout.shape().size(), ", one for each dimension of the layout");
  for (std::size_t d = 0; d < halo.size(); ++d)
    if (halo[d] < 0)
      return layout_error("halo ", halo[d], " of ", dimension_text(d, halo.size()), " is negative");
  return {};
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
    const Box box = layout.box(rank);
    for (std::size_t d = 0; d < box.lower.size(); ++d) {
      const Index halo = allocation.halo.empty() ? 0 : allocation.halo[d];
      Index both = 0, extent = 0;
      if (__builtin_add_overflow(halo, halo, &both) ||
          __builtin_add_overflow(both, box.upper[d] - box.lower[d], &extent))
        return layout_error("halo ", halo, " of ", dimension_text(d, box.lower.size()),
                            " is too wide for 64-bit numbers");
      extents.push_back(extent);
    }
  }
  // Under NPROMA the level dimension is always between block and nproma.
  if (allocation.level_axis >= 0)
    extents.insert(extents.begin() + (allocation.nproma > 0 ? 1 : allocation.level_axis), allocation.levels);
  return extents;
}

Status check_allocation(const Layout& layout, int rank, const Allocation& allocation) {
  if (rank < 0 || rank >= layout.ranks())
    return layout_error("rank ", rank, " is outside of the layout's ", counted(layout.ranks(), "rank"));
  TR_TRY(check_levels(allocation, layout.is_box() ? layout.shape().size() : 1));
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

}  // namespace

Result<Array> describe_array(const Layout& layout, int rank, ElementType type, const Allocation& allocation) {
  Array array;
  array.element = size_of(type);
  if (array.element == 0)
    return Status(Code::argument,
                  cat("element type ", static_cast<std::int32_t>(type),
                      " is none of TR_I8 .. TR_U64 and TR_TEXT(1) .. TR_TEXT(", most_text, ")"));
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
    const Box box = layout.box(rank);
    std::vector<Loop> loops;
    for (std::size_t d = 0; d < strides.size(); ++d)
      loops.push_back({box.upper[d] - box.lower[d], strides[d]});
    add_nest(map, array->offset, std::move(loops));
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
      const auto wanted = all_extents(layout, rank, candidate);
      if (!wanted.is_ok()) return wanted.status();
      if (*wanted == got) return candidate;
      const std::string text = layout::extents(*wanted);
      if (std::find(expected.begin(), expected.end(), text) == expected.end()) expected.push_back(text);
    }
  }
  std::string either = expected.front();
  for (std::size_t i = 1; i < expected.size(); ++i) either += " or " + expected[i];
  return layout_error("the array of rank ", rank, " has extents ", layout::extents(got), ", expected ",
                      either, " (", order_text(), ": what the rank owns, with or without its halo)");
}

}  // namespace tailrace::layout
