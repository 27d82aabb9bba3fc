// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "layout/copy.hpp"
#include "layout/memory.hpp"

namespace tailrace::layout {
namespace {

template <bool taking>
void run(std::span<const Rows> all, Side<taking> record, Bytes element, Side<!taking> piece) {
  for (const Rows& rows : all) {
    auto at = record + rows.global * element;
    const Bytes stride = rows.stride * element;
    if (rows.count == 1) {  // scattered elements: unstructured grids, sections with a stride
      with_size(element, [&](auto size) {
        for (Index r = 0; r < rows.rows; ++r) move_element<size, taking>(at + r * stride, piece + r * size);
      });
      piece += rows.rows * element;
      continue;
    }
    const Bytes length = rows.count * element;
    for (Index r = 0; r < rows.rows; ++r, piece += length) move_run<taking>(at + r * stride, piece, length);
  }
}

}  // namespace

void place_rows(std::span<const Rows> rows, const std::byte* piece, Bytes element, std::byte* record) {
  run<false>(rows, record, element, piece);
}

void take_rows(std::span<const Rows> rows, const std::byte* record, Bytes element, std::byte* piece) {
  run<true>(rows, record, element, piece);
}

void place_rows_f32_to_f64(std::span<const Rows> rows, const float* piece, double* record) {
  for (const Rows& entry : rows)
    for (Index r = 0; r < entry.rows; ++r, piece += entry.count) {
      double* __restrict to = record + entry.global + r * entry.stride;
      const float* __restrict from = piece;
      for (Index i = 0; i < entry.count; ++i) to[i] = static_cast<double>(from[i]);
    }
}

}  // namespace tailrace::layout
