// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstring>
#include <map>
#include <vector>

#include "ground/layout/memory.hpp"
#include "random_layouts.hpp"

namespace tailrace::layout::test {

/// A caller's array for one rank. It computes the address of each element by itself from the definition of
/// Allocation: the simplest form of what the library computes with nested loops.
struct NaiveArray {
  const Layout& layout;
  int rank;
  Bytes element;
  Allocation allocation;
  std::vector<Index> extents;  // of the array, with the dimension of levels
  std::vector<Bytes> strides;  // in bytes
  Bytes before = 0;            // bytes of the buffer that lie below the base
  std::vector<Index> owned;    // global elements in packed order
  std::vector<std::byte> buffer;

  NaiveArray(Generator& generator, const Layout& of, int of_rank, ElementType type)
      : layout(of), rank(of_rank), element(size_of(type)), owned(expand(of.rows(of_rank))) {
    choose_allocation(generator);
    choose_strides(generator);
  }
  std::byte* base() { return buffer.data() + before; }

  /// Returns the offset from the base of the element at packed position `position` on `level`.
  Bytes offset(Index position, Index level) const {
    std::vector<Index> at;
    if (allocation.nproma > 0) {
      at = {position / allocation.nproma, position % allocation.nproma};
    } else if (layout.is_box()) {
      at = index_tuple(owned[static_cast<std::size_t>(position)], layout.shape());
      const Box box = layout.box(rank);
      for (std::size_t d = 0; d < at.size(); ++d)
        at[d] += (allocation.halo.empty() ? 0 : allocation.halo[d]) - box.lower[d];
    } else if (layout.is_tiled()) {
      at = place_in_tiles(position);
    } else {
      at = {position};
    }
    if (allocation.level_axis >= 0) at.insert(at.begin() + axis(), level);
    Bytes sum = 0;
    for (std::size_t d = 0; d < at.size(); ++d) sum += at[d] * strides[d];
    return sum;
  }

 private:
  bool is_stacked = false;  // tiles are a dimension of the array; otherwise it is a list of elements
  int axis() const {
    if (allocation.nproma > 0) return 1;
    return layout.is_tiled() && !is_stacked ? std::min(allocation.level_axis, 1) : allocation.level_axis;
  }

  Index halo(std::size_t d) const { return allocation.halo.empty() ? 0 : allocation.halo[d]; }
  std::vector<Index> extents_of(const Box& tile) const {
    std::vector<Index> all(tile.lower.size());
    for (std::size_t d = 0; d < all.size(); ++d) all[d] = tile.upper[d] - tile.lower[d] + 2 * halo(d);
    return all;
  }
  static Index count(const std::vector<Index>& all) {
    return std::accumulate(all.begin(), all.end(), Index{1}, std::multiplies<>());
  }
  std::vector<Index> place_in_tiles(Index position) const {
    const std::vector<Index> global = index_tuple(owned[static_cast<std::size_t>(position)], layout.shape());
    Index number = 0, before_tile = 0;
    for (const Box& tile : layout.tiles(rank)) {
      const std::vector<Index> all = extents_of(tile);
      bool inside = true;
      std::vector<Index> at{number++};
      Index flat = 0;
      for (std::size_t d = 0; d < all.size(); ++d) {
        inside = inside && global[d] >= tile.lower[d] && global[d] < tile.upper[d];
        at.push_back(global[d] - tile.lower[d] + halo(d));
        flat = flat * all[d] + at.back();
      }
      if (inside) return is_stacked ? at : std::vector<Index>{before_tile + flat};
      before_tile += count(all);
    }
    return {};
  }
  void choose_tiles(Generator& generator) {
    const auto dims = layout.shape().size();
    if (generator.chance())
      for (std::size_t d = 0; d < dims; ++d) allocation.halo.push_back(generator.between(0, 2));
    const std::vector<Box> tiles = layout.tiles(rank);
    is_stacked = !tiles.empty();
    Index all = 0;
    for (const Box& tile : tiles) {
      is_stacked = is_stacked && extents_of(tile) == extents_of(tiles.front());
      all += count(extents_of(tile));
    }
    const auto last = static_cast<Index>(dims) + 1;
    allocation.level_axis = static_cast<int>(generator.between(allocation.levels == 1 ? -1 : 0, last));
    if (!is_stacked && allocation.level_axis > 0) allocation.level_axis = static_cast<int>(last);
    extents = is_stacked ? extents_of(tiles.front()) : std::vector<Index>{all};
    if (is_stacked) extents.insert(extents.begin(), static_cast<Index>(tiles.size()));
  }

  void choose_allocation(Generator& generator) {
    allocation.levels = generator.between(1, 4);
    const bool box = layout.is_box();
    const auto dims = box ? static_cast<Index>(layout.shape().size()) : 1;
    allocation.level_axis = static_cast<int>(generator.between(allocation.levels == 1 ? -1 : 0, dims));
    if (generator.between(0, 3) == 0) allocation.nproma = generator.between(1, 9);
    const auto count = static_cast<Index>(owned.size());
    if (allocation.nproma > 0) {
      extents = {(count + allocation.nproma - 1) / allocation.nproma, allocation.nproma};
    } else if (layout.is_tiled()) {
      choose_tiles(generator);
    } else if (box) {
      const Box mine = layout.box(rank);
      for (std::size_t d = 0; d < mine.lower.size(); ++d) {
        allocation.halo.push_back(generator.between(0, 2));
        extents.push_back(mine.upper[d] - mine.lower[d] + 2 * allocation.halo[d]);
      }
      if (generator.chance()) no_halo();
    } else {
      extents = {count};
    }
    if (allocation.level_axis >= 0) extents.insert(extents.begin() + axis(), allocation.levels);
  }
  void no_halo() {
    for (std::size_t d = 0; d < allocation.halo.size(); ++d) extents[d] -= 2 * allocation.halo[d];
    allocation.halo.clear();
  }
  /// Makes the array contiguous; or gives the dimensions a random order in memory, with gaps, and some a
  /// negative stride.
  void choose_strides(Generator& generator) {
    std::vector<std::size_t> order(extents.size());
    std::iota(order.rbegin(), order.rend(), 0U);  // fastest first
    strides.resize(extents.size());
    const bool odd = generator.chance();
    if (odd) generator.shuffle(order);
    Bytes stride = odd ? element * generator.between(1, 2) : element, size = element;
    for (const std::size_t d : order) {
      strides[d] = stride;
      if (extents[d] > 0) size += (extents[d] - 1) * stride;
      stride *= std::max<Index>(extents[d], 1);
      if (odd) stride += generator.between(0, 3);  // not even aligned
      if (odd && generator.between(0, 3) == 0 && extents[d] > 0) {
        before += (extents[d] - 1) * strides[d];
        strides[d] = -strides[d];
      }
    }
    if (odd) allocation.strides = strides;
    buffer.assign(static_cast<std::size_t>(size), std::byte{0xEE});
  }
};

/// Writes the bytes of element `global` on `level`. They differ between neighbours, levels, and bytes of an
/// element.
inline void fill_value(std::byte* to, Bytes element, Index global, Index level) {
  for (Bytes b = 0; b < element; ++b)
    to[b] = static_cast<std::byte>((global * 131 + level * 31 + b * 7 + (global >> 5)) & 0x7F);
}

inline ElementType any_type(Generator& generator) {
  return static_cast<ElementType>(generator.between(1, 9));
}

inline Section any_section(Generator& generator, const std::vector<Index>& shape) {
  Section section;
  for (const Index extent : shape) {
    section.start.push_back(generator.between(0, extent / 2));
    section.stop.push_back(generator.between(section.start.back(), extent));
    section.stride.push_back(generator.between(1, 3));
  }
  return section;
}

}  // namespace tailrace::layout::test
