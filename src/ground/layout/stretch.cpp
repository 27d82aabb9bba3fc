// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/layout/stretch.hpp"

#include <algorithm>

#include "ground/base/byte_order.hpp"
#include "ground/layout/array.hpp"
#include "ground/layout/copy_runs.hpp"

namespace tailrace::layout {

namespace {

/// The shortest rows for which copying in stretches pays: place_stretch() finds the place of each row by
/// divisions.
constexpr Index shortest_row = 16;
/// About the number of elements in a stretch: 256 KiB of them are put together at once (pipeline::Writing).
constexpr Index usual_stretch = Index{64} << 10;

/// Copies `length` bytes of a piece, beginning at its byte `at`.
void copy_packed(const PackedRuns& piece, Bytes at, Bytes length, Bytes scalar, std::byte* out) {
  while (length > 0) {
    Index run = at / piece.run;
    const Bytes within = at - run * piece.run;
    const Bytes bytes = std::min(length, piece.run - within);
    const std::byte* from = piece.base + within;
    for (auto loop = piece.loops.rbegin(); loop != piece.loops.rend(); ++loop) {
      from += run % loop->count * loop->stride;
      run /= loop->count;
    }
    if (scalar == 1)
      copy_run(out, from, bytes);
    else
      copy_reversed(out, from, bytes, scalar);
    at += bytes;
    out += bytes;
    length -= bytes;
  }
}

/// Returns the element behind the last of an entry's rows.
Index end_of(const Rows& rows) { return rows.global + (rows.rows - 1) * rows.stride + rows.count; }

/// Calls visit(row, first, end) for each row of `rows` that meets the stretch, and the elements of it that
/// lie there.
template <typename Visit>
void for_each_row_in(const Rows& rows, const Stretch& stretch, const Visit& visit) {
  if (rows.global >= stretch.end || end_of(rows) <= stretch.first) return;
  // The first row that ends behind the stretch's first element.
  const Index skipped = stretch.first - rows.global - rows.count;
  Index row = rows.rows > 1 && skipped >= 0 ? skipped / rows.stride + 1 : 0;
  for (; row < rows.rows; ++row) {
    const Index global = rows.global + row * rows.stride;
    const Index first = std::max(global, stretch.first), end = std::min(global + rows.count, stretch.end);
    if (first >= end) break;
    visit(row, first, end);
  }
}

}  // namespace

std::optional<PackedRuns> packed_runs(const MemoryMap& map, const std::byte* base, Index level) {
  if (map.nests.size() != 1) return std::nullopt;
  const Nest& nest = map.nests.front();
  if (nest.loops.back().stride != map.element) return std::nullopt;
  const auto [loops, length] = runs_of(nest, map.element);
  return PackedRuns{base + level * map.level_stride + nest.offset, loops, length};
}

Reach reach_of(std::span<const Rows> rows) {
  if (rows.empty()) return {};
  Reach reach{rows.front().global, 0};
  for (const Rows& entry : rows) {
    reach.first = std::min(reach.first, entry.global);
    reach.end = std::max(reach.end, end_of(entry));
  }
  return reach;
}

bool come_in_stretches(std::span<const Rows> rows) {
  return std::ranges::all_of(rows, [](const Rows& entry) { return entry.count >= shortest_row; });
}

double entries_looked_at(std::span<const Rows> rows, Index elements) {
  const Reach reach = reach_of(rows);
  const auto share =
      static_cast<double>(reach.end - reach.first + usual_stretch) / static_cast<double>(elements);
  return static_cast<double>(rows.size()) * std::min(share, 1.0);
}

void place_stretch(std::span<const Rows> all, const PackedRuns& piece, const Stretch& stretch) {
  Index before = 0;  // elements of the piece before the current entry
  for (const Rows& rows : all) {
    for_each_row_in(rows, stretch, [&](Index row, Index first, Index end) {
      const Index into = row * rows.count + first - (rows.global + row * rows.stride);
      copy_packed(piece, (before + into) * stretch.element, (end - first) * stretch.element, stretch.scalar,
                  stretch.out + (first - stretch.first) * stretch.element);
    });
    before += rows.rows * rows.count;
  }
}

void fill_stretch(std::span<const Rows> all, std::span<const std::byte> value, const Stretch& stretch) {
  for (const Rows& rows : all)
    for_each_row_in(rows, stretch, [&](Index, Index first, Index end) {
      const Rows part{first - stretch.first, end - first, 0, 1};
      fill_rows({&part, 1}, value, stretch.out);
    });
}

}  // namespace tailrace::layout
