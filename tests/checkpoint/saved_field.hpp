// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "files/fixture.hpp"

// A field in any layout that can check its own values, and functions that save and load checkpoints of it.
namespace tailrace::files_test {

struct LayoutFree {
  void operator()(tr_layout* layout) const { tr_layout_free(&layout); }
};
using Layout = std::unique_ptr<tr_layout, LayoutFree>;

/// Makes a layout of kind `kind`, from 0 to `kinds` - 1, over a shape. Only layouts of boxes use the halo.
constexpr int kinds = 5;
inline Layout layout_of(int kind, const std::vector<tr_index>& shape, const std::vector<tr_index>& halo) {
  tr_layout* made = nullptr;
  const int dims = static_cast<int>(shape.size());
  int code = TR_OK;
  if (kind == 0) code = tr_layout_block(dims, shape.data(), halo.data(), &made);
  if (kind == 1) {
    // Blocks of three rows go round the ranks.
    const std::vector<tr_index> block(shape.size(), 3);
    std::vector<int> grid(shape.size(), 1);
    grid[0] = size();
    code = tr_layout_block_cyclic(dims, shape.data(), block.data(), grid.data(), &made);
  }
  if (kind == 2) code = tr_layout_replicated(dims, shape.data(), &made);
  if (kind == 3) {
    // Elements are dealt out one by one, from the last on.
    tr_index all = 1;
    for (const tr_index extent : shape) all *= extent;
    std::vector<tr_index> mine;
    for (tr_index e = all - 1; e >= 0; --e) {
      if (e % size() == rank()) mine.push_back(e);
    }
    code = tr_layout_indexed(dims, shape.data(), static_cast<tr_index>(mine.size()), mine.data(), 0, &made);
  }
  if (kind == 4) {
    // The last rank has all elements.
    std::vector<tr_index> lower(shape.size(), 0), upper = shape;
    if (rank() != size() - 1) upper = lower;
    code = tr_layout_box(dims, shape.data(), halo.data(), lower.data(), upper.data(), &made);
  }
  if (!CHECK_EQ(code, TR_OK)) std::fprintf(stderr, "  %s\n", tr_error());
  return Layout(made);
}

/// This rank's array with its halo, and for each of its elements the number of the global element (-1: halo).
struct Field {
  Layout layout;
  std::vector<tr_index> global;
  std::vector<double> values;

  Field(int kind, const std::vector<tr_index>& shape, tr_index width) {
    const std::vector<tr_index> halo(shape.size(), width);
    layout = layout_of(kind, shape, halo);
    tr_index all = 1;
    for (const tr_index extent : shape) all *= extent;
    if (kind == 0 || kind == 4) {
      boxes(shape, width);
    } else if (kind == 2) {
      for (tr_index e = 0; e < all; ++e) global.push_back(e);
    } else if (kind == 3) {
      for (tr_index e = all - 1; e >= 0; --e) {
        if (e % size() == rank()) global.push_back(e);
      }
    } else {
      const tr_index row = all / shape[0];
      for (tr_index e = 0; e < all; ++e) {
        if (e / row / 3 % size() == rank()) global.push_back(e);
      }
    }
    values.resize(global.size());
  }
  void boxes(const std::vector<tr_index>& shape, tr_index width) {
    std::vector<tr_index> lower(shape.size()), upper(shape.size());
    CHECK_EQ(tr_layout_bounds(layout.get(), 0, lower.data(), upper.data()), TR_OK);
    bool empty = false;
    for (std::size_t d = 0; d < shape.size(); ++d) empty = empty || lower[d] >= upper[d];
    if (empty) return;
    std::vector<tr_index> at = lower;
    for (auto& each : at) each -= width;
    while (true) {
      tr_index number = 0;
      bool inside = true;
      for (std::size_t d = 0; d < shape.size(); ++d) {
        inside = inside && at[d] >= lower[d] && at[d] < upper[d];
        number = number * shape[d] + at[d];
      }
      global.push_back(inside ? number : -1);
      std::size_t d = shape.size();
      while (d-- > 0) {
        if (++at[d] < upper[d] + width) break;
        at[d] = lower[d] - width;
        if (d == 0) return;
      }
    }
  }
  void fill(double salt) {
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = global[i] < 0 ? -7.5 : salt + static_cast<double>(global[i]);
  }
  void clear() { values.assign(values.size(), -99); }
  [[nodiscard]] bool holds(double salt) const {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (global[i] >= 0 && values[i] != salt + static_cast<double>(global[i])) return false;
      if (global[i] == -1 && values[i] != -99) return false;  // the halo is not loaded
    }
    return true;
  }
};

inline tr_checkpoint* create(const std::string& name, const std::string& options = "") {
  tr_checkpoint* cp = nullptr;
  if (!CHECK_EQ(tr_checkpoint_create(name.c_str(), options.c_str(), &cp), TR_OK))
    std::fprintf(stderr, "  %s\n", tr_error());
  return cp;
}

/// Saves the step and one field.
inline int save(tr_checkpoint* cp, std::int64_t step, Field& field) {
  const int begun = tr_checkpoint_begin(cp, TR_SAVE, nullptr);
  tr_checkpoint_item(cp, "step", &step, TR_I64, nullptr);
  tr_checkpoint_item(cp, "t", field.values.data(), TR_F64, field.layout.get());
  const int ended = tr_checkpoint_end(cp);
  return begun != TR_OK ? begun : ended;
}

/// Loads the step and one field. Returns the step, or 0 if there was no checkpoint, or -1 after an error.
inline std::int64_t load(tr_checkpoint* cp, Field& field) {
  std::int64_t step = -1;
  int found = 0;
  if (tr_checkpoint_begin(cp, TR_LOAD, &found) != TR_OK) {
    tr_checkpoint_end(cp);
    return -1;
  }
  if (found != 0) {
    tr_checkpoint_item(cp, "t", field.values.data(), TR_F64, field.layout.get());
    tr_checkpoint_item(cp, "step", &step, TR_I64, nullptr);
  }
  const int ended = tr_checkpoint_end(cp);
  return ended != TR_OK ? -1 : found != 0 ? step : 0;
}

}  // namespace tailrace::files_test
