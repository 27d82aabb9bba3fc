// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <algorithm>
#include <cstdlib>
#include <type_traits>

#include "layout/copy_runs.hpp"
#include "layout/memory.hpp"

namespace tailrace::layout {
namespace {

/// Outputs that one pass over strided memory serves: a cache line of float32.
constexpr Index gang = 16;

/// Pieces and, on average, runs from these lengths on go past the caches. Measured in steps of a model,
/// milliseconds of the copying rank, plain and past the caches: 2.1 and 1.2 for 12 MiB in runs of 400 bytes,
/// 20 and 17.5 for 108 MiB in runs of 64 bytes, 21 and 14 in runs of 128, 20 and 15 in runs of 400. Another
/// core then reads the bytes from memory, at 100 microseconds a MiB instead of 67 from the writer's caches.
constexpr Bytes piece_past_caches = 4096;
constexpr Bytes run_past_caches = 64;

/// Calls row(memory) for each turn of the outer loops, slowest first. One or two loops are by far the most
/// frequent, so that they cost no recursion.
template <typename Pointer, typename Row>
inline void for_each_row(std::span<const Loop> outer, Pointer memory, Row& row) {
  if (outer.empty()) return row(memory);
  const Loop loop = outer.front();
  if (outer.size() == 1) {
    for (Index i = 0; i < loop.count; ++i) row(memory + i * loop.stride);
    return;
  }
  for (Index i = 0; i < loop.count; ++i) for_each_row(outer.subspan(1), memory + i * loop.stride, row);
}

/// Moves `across` rows of `count` elements each, where neighbours across rows lie closer in memory than
/// neighbours along a row: a gang of rows at once, so that every line of memory is touched once and not once
/// per row.
template <Bytes size, bool packing>
void move_across(Side<packing> memory, Loop along, Loop across, Side<!packing> packed, Bytes pitch) {
  for (Index first = 0; first < across.count; first += gang) {
    const Index width = std::min(gang, across.count - first);
    const auto from = memory + first * across.stride;
    const auto to = packed + first * pitch;
    for (Index i = 0; i < along.count; ++i)
      for (Index k = 0; k < width; ++k)
        move_element<size, packing>(from + i * along.stride + k * across.stride, to + k * pitch + i * size);
  }
}

template <Bytes size, bool packing>
void run_strided(const Nest& nest, Side<packing> memory, Side<!packing> packed) {
  const std::span<const Loop> loops(nest.loops);
  const Loop inner = loops.back();
  if (loops.size() > 1 && std::abs(loops[loops.size() - 2].stride) < std::abs(inner.stride)) {
    const Loop across = loops[loops.size() - 2];
    auto block = [&](Side<packing> at) {
      move_across<size, packing>(at, inner, across, packed, inner.count * size);
      packed += inner.count * across.count * size;
    };
    return for_each_row(loops.first(loops.size() - 2), memory, block);
  }
  auto row = [&](Side<packing> at) {
    for (Index i = 0; i < inner.count; ++i)
      move_element<size, packing>(at + i * inner.stride, packed + i * size);
    packed += inner.count * size;
  };
  for_each_row(loops.first(loops.size() - 1), memory, row);
}

template <bool packing>
void run_contiguous(const Nest& nest, Bytes element, Side<packing> memory, Side<!packing> packed) {
  const std::span<const Loop> loops(nest.loops);
  const Bytes length = loops.back().count * element;
  auto row = [&](Side<packing> at) {
    move_run<packing>(at, packed, length);
    packed += length;
  };
  for_each_row(loops.first(loops.size() - 1), memory, row);
}

Index turns_of(std::span<const Loop> loops) {
  Index turns = 1;
  for (const Loop& loop : loops) turns *= loop.count;
  return turns;
}

Index elements_of(const Nest& nest) { return turns_of(nest.loops); }

template <bool packing>
void run_nest(const Nest& nest, Bytes element, Side<packing> memory, Side<!packing> packed) {
  if (nest.loops.back().stride == element) return run_contiguous<packing>(nest, element, memory, packed);
  with_size(element, [&](auto size) { run_strided<size, packing>(nest, memory, packed); });
}

/// The contiguous runs of a nest: the loops over them, and the length of each.
struct Runs {
  std::span<const Loop> loops;
  Bytes length;
};

Runs runs_of(const Nest& nest, Bytes element) {
  const std::span<const Loop> loops(nest.loops);
  if (loops.back().stride != element) return {loops, element};
  return {loops.first(loops.size() - 1), loops.back().count * element};
}

bool goes_past_caches(const MemoryMap& map) {
  const Bytes bytes = map.count() * map.element;
  if (bytes < piece_past_caches) return false;
  Index runs = 0;
  for (const Nest& nest : map.nests) runs += turns_of(runs_of(nest, map.element).loops);
  return bytes >= runs * run_past_caches;
}

template <bool packing>
void run(const MemoryMap& map, Side<packing> memory, Side<!packing> packed) {
  for (const Nest& nest : map.nests) {
    run_nest<packing>(nest, map.element, memory + nest.offset, packed);
    packed += elements_of(nest) * map.element;
  }
}

/// Tells whether the next level lies nearer in memory than the next run, or even than the next element.
enum class Nearness { no_loop, runs, elements };

Nearness nearness_of(const MemoryMap& map, const Nest& nest) {
  const Bytes level = std::abs(map.level_stride);
  const Bytes inner = nest.loops.back().stride;
  if (inner != map.element) return level < std::abs(inner) ? Nearness::elements : Nearness::no_loop;
  return nest.loops.size() > 1 && level < std::abs(nest.loops[nest.loops.size() - 2].stride)
             ? Nearness::runs
             : Nearness::no_loop;
}

/// Levels lie between the runs (i,k,j): all levels of one row, then the next row.
template <bool packing>
void run_levels_of_runs(const Nest& nest, Bytes element, Side<packing> memory, Loop levels,
                        Side<!packing> packed, Bytes pitch) {
  const std::span<const Loop> loops(nest.loops);
  const Bytes length = loops.back().count * element;
  auto row = [&](Side<packing> at) {
    for (Index l = 0; l < levels.count; ++l)
      move_run<packing>(at + l * levels.stride, packed + l * pitch, length);
    packed += length;
  };
  for_each_row(loops.first(loops.size() - 1), memory, row);
}

/// Levels lie between the elements: the array is transposed on the way.
template <Bytes size, bool packing>
void run_levels_of_elements(const Nest& nest, Side<packing> memory, Loop levels, Side<!packing> packed,
                            Bytes pitch) {
  const std::span<const Loop> loops(nest.loops);
  auto row = [&](Side<packing> at) {
    move_across<size, packing>(at, loops.back(), levels, packed, pitch);
    packed += loops.back().count * size;
  };
  for_each_row(loops.first(loops.size() - 1), memory, row);
}

template <bool packing>
void run_levels(const MemoryMap& map, Side<packing> memory, Index count, Side<!packing> packed, Bytes pitch) {
  const Loop levels{count, map.level_stride};
  for (const Nest& nest : map.nests) {
    const auto start = memory + nest.offset;
    switch (count > 1 ? nearness_of(map, nest) : Nearness::no_loop) {
      case Nearness::no_loop:
        for (Index l = 0; l < count; ++l)
          run_nest<packing>(nest, map.element, start + l * levels.stride, packed + l * pitch);
        break;
      case Nearness::runs:
        run_levels_of_runs<packing>(nest, map.element, start, levels, packed, pitch);
        break;
      case Nearness::elements:
        with_size(map.element, [&](auto size) {
          run_levels_of_elements<size, packing>(nest, start, levels, packed, pitch);
        });
    }
    packed += elements_of(nest) * map.element;
  }
}

}  // namespace

void pack(const MemoryMap& map, const std::byte* base, Index level, std::byte* out) {
  run<true>(map, base + level * map.level_stride, out);
}

void pack_past_caches(const MemoryMap& map, const std::byte* base, Index level, std::byte* out) {
  if (!goes_past_caches(map)) return pack(map, base, level, out);
  StreamWriter writer(out);
  for (const Nest& nest : map.nests) {
    const auto [loops, length] = runs_of(nest, map.element);
    auto row = [&, bytes = length](const std::byte* at) { writer.append(at, bytes); };
    for_each_row(loops, base + level * map.level_stride + nest.offset, row);
  }
  writer.finish();  // once: after each run it would take longer than the runs
}

void unpack(const MemoryMap& map, const std::byte* in, Index level, std::byte* base) {
  run<false>(map, base + level * map.level_stride, in);
}

void pack_levels(const MemoryMap& map, const std::byte* base, Index first, Index levels, std::byte* out,
                 Bytes out_stride) {
  run_levels<true>(map, base + first * map.level_stride, levels, out, out_stride);
}

void unpack_levels(const MemoryMap& map, const std::byte* in, Bytes in_stride, Index first, Index levels,
                   std::byte* base) {
  run_levels<false>(map, base + first * map.level_stride, levels, in, in_stride);
}

}  // namespace tailrace::layout
