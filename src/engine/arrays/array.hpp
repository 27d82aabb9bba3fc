// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ground/layout/memory.hpp"
#include "ground/layout/transfer_map.hpp"

namespace tailrace::arrays {

/// A distributed array, or a section of it, as an argument of a call. The caller keeps the memory it points
/// to.
struct Array {
  std::byte* data = nullptr;  // a call that writes a file only reads it
  ElementType type = ElementType::f64;
  const layout::Layout* layout = nullptr;
  std::int64_t layout_number = 0;  // the same number means the same layout, on every rank
  const std::vector<Index>* halo = nullptr;
  bool in_parts = false;       // each rank knows its own elements only
  Index levels = 0;            // > 0: the array has this many levels as its slowest dimension
  std::vector<Bytes> strides;  // of the memory, in C order, the stride of the levels first; empty: contiguous
  std::optional<layout::Section> section;

  /// Returns a text that is the same on every rank that passes the same array.
  [[nodiscard]] std::string text() const;
  /// Returns the extents of the layout or the section, behind the number of levels if there are levels.
  [[nodiscard]] Result<std::vector<Index>> shape() const;
  /// Returns the shape and the section as text.
  [[nodiscard]] std::string extents_text() const;
};

/// Everything that is needed to move an array. An array or section that is moved again and again has one
/// plan. Immutable.
struct ArrayPlan {
  layout::Layout layout;  // of the section, if it is one
  Bytes element = 0;
  layout::TransferMap mine;
  bool everywhere = false;        // every rank has the whole array (replicated arrays)
  bool in_parts = false;          // each rank alone knows its own part
  layout::TransferMap unowned{};  // the elements that no rank owns: files have zeros there

  [[nodiscard]] Bytes bytes() const { return layout.elements() * element; }
};

enum class Direction { write, read };

/// Checks what every use of `array` on `rank` needs: a layout, a known element type, and memory if the rank
/// owns elements. Errors: Code::argument.
Status check(const Array& array, int rank);
/// Returns the plan of `array` for `rank` in a global file. Errors: Code::argument, Code::layout.
Result<std::shared_ptr<const ArrayPlan>> make_plan(const Array& array, int rank, Direction direction);
/// Returns the plan for a file of the rank's own, which holds the rank's elements one after another.
Result<std::shared_ptr<const ArrayPlan>> make_local_plan(const Array& array, int rank);

/// The elements of an array or section that one rank owns, and their places in its memory.
struct Owned {
  std::vector<Index> shape;        // of the array or section
  std::vector<layout::Rows> rows;  // in packed order
  Bytes element = 0;
  layout::TransferMap packed;  // its file offsets count packed bytes

  [[nodiscard]] Bytes bytes() const { return packed.end(); }
};
/// Returns what `rank` owns. Rank 0 owns the whole of a replicated array. Errors: as make_plan.
Result<Owned> find_owned(const Array& array, int rank);

}  // namespace tailrace::arrays
