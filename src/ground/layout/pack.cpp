// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "ground/layout/array.hpp"
#include "ground/layout/copy_runs.hpp"

namespace tailrace::layout {
namespace {

/// The number of output rows that one pass over strided memory fills: a cache line of float32.
constexpr Index gang = 16;

/// A piece is written past the caches if it has at least `piece_past_caches` bytes, in runs of on average at
/// least `run_past_caches` bytes. Measured in steps of a model, milliseconds of the copying rank, plain and
/// past the caches: 2.1 and 1.2 for 12 MiB in runs of 400 bytes, 20 and 17.5 for 108 MiB in runs of 64 bytes,
/// 21 and 14 in runs of 128, 20 and 15 in runs of 400. Another core later reads the bytes from memory, at 100
/// microseconds a MiB instead of 67 from the writer's caches.
constexpr Bytes piece_past_caches = 4096;
constexpr Bytes run_past_caches = 64;

/// Calls row(memory) for each turn of the outer loops, slowest first. Nests of one or two loops, by far the
/// most frequent, cost no recursion.
template <typename Row>
inline void for_each_row(std::span<const Loop> outer, const std::byte* memory, Row& row) {
  if (outer.empty()) return row(memory);
  const Loop loop = outer.front();
  if (outer.size() == 1) {
    for (Index i = 0; i < loop.count; ++i) row(memory + i * loop.stride);
    return;
  }
  for (Index i = 0; i < loop.count; ++i) for_each_row(outer.subspan(1), memory + i * loop.stride, row);
}

/// Copies `across` rows of `count` elements each. Neighbours across rows lie closer in memory than neighbours
/// along a row. So a gang of rows is copied at once: each line of memory is touched once, not once for each
/// row. If this function is inlined into its caller, it takes 6 % longer.
template <Bytes size>
[[gnu::noinline]] void pack_across(const std::byte* memory, Loop along, Loop across, std::byte* out) {
  const Bytes pitch = along.count * size;
  for (Index first = 0; first < across.count; first += gang) {
    const Index width = std::min(gang, across.count - first);
    const auto from = memory + first * across.stride;
    const auto to = out + first * pitch;
    for (Index i = 0; i < along.count; ++i)
      for (Index k = 0; k < width; ++k)
        std::memcpy(to + k * pitch + i * size, from + i * along.stride + k * across.stride, size);
  }
}

template <Bytes size>
void pack_strided(std::span<const Loop> loops, const std::byte* memory, std::byte* out) {
  const Loop inner = loops.back();
  if (loops.size() > 1 && std::abs(loops[loops.size() - 2].stride) < std::abs(inner.stride)) {
    const Loop across = loops[loops.size() - 2];
    auto block = [&](const std::byte* at) {
      pack_across<size>(at, inner, across, out);
      out += inner.count * across.count * size;
    };
    return for_each_row(loops.first(loops.size() - 2), memory, block);
  }
  auto row = [&](const std::byte* at) {
    for (Index i = 0; i < inner.count; ++i) std::memcpy(out + i * size, at + i * inner.stride, size);
    out += inner.count * size;
  };
  for_each_row(loops.first(loops.size() - 1), memory, row);
}

bool goes_past_caches(const MemoryMap& map) {
  const Bytes bytes = map.count() * map.element;
  if (bytes < piece_past_caches) return false;
  Index runs = 0;
  for (const Nest& nest : map.nests) runs += turns_of(runs_of(nest, map.element).loops);
  return bytes >= runs * run_past_caches;
}

void pack_nest(const Nest& nest, Bytes element, const std::byte* memory, std::byte* out) {
  if (nest.loops.back().stride != element && is_size_of_number(element))
    return with_size(element, [&](auto size) { pack_strided<size>(nest.loops, memory, out); });
  const auto [loops, length] = runs_of(nest, element);
  auto row = [&out, bytes = length](const std::byte* at) {
    copy_run(out, at, bytes);
    out += bytes;
  };
  for_each_row(loops, memory, row);
}

}  // namespace

void pack(const MemoryMap& map, const std::byte* base, Index level, std::byte* out) {
  for (const Nest& nest : map.nests) {
    pack_nest(nest, map.element, base + level * map.level_stride + nest.offset, out);
    out += turns_of(nest.loops) * map.element;
  }
}

void pack_past_caches(const MemoryMap& map, const std::byte* base, Index level, std::byte* out) {
  if (!goes_past_caches(map)) return pack(map, base, level, out);
  StreamWriter writer(out);
  for (const Nest& nest : map.nests) {
    const auto [loops, length] = runs_of(nest, map.element);
    auto row = [&, bytes = length](const std::byte* at) { writer.append(at, bytes); };
    for_each_row(loops, base + level * map.level_stride + nest.offset, row);
  }
  writer.finish();  // one fence at the end: a fence after each run would take longer than the runs
}

}  // namespace tailrace::layout
