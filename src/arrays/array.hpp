// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "layout/memory.hpp"
#include "layout/transfer_map.hpp"

namespace tailrace::arrays {

/// A distributed array, or a section of it, as an argument of a call. What it points to lives on in the
/// caller.
struct Array {
  std::byte* data = nullptr;  // only read when it is written to a file
  ElementType type = ElementType::f64;
  const layout::Layout* layout = nullptr;
  std::int64_t layout_number = 0;  // the same number is the same layout, on every rank
  const std::vector<Index>* halo = nullptr;
  bool in_parts = false;  // each rank knows its own elements only
  Index levels = 0;       // > 0: so many arrays of the layout, one after another (a slowest dimension more)
  std::vector<Bytes> strides;  // of the memory, in C order, that of the levels first; empty: contiguous
  std::optional<layout::Section> section;

  /// The same text on every rank that passes the same array.
  [[nodiscard]] std::string text() const;
  /// Extents of what it names: the layout's, or the section's, behind the number of levels if it has such.
  [[nodiscard]] Result<std::vector<Index>> shape() const;
  /// Its shape, and the section.
  [[nodiscard]] std::string extents_text() const;
};

/// What moving an array takes to know of it. The same array or section, moved again and again, has one plan.
/// Immutable.
struct ArrayPlan {
  layout::Layout layout;  // of the section, if it is one
  Bytes element = 0;
  layout::TransferMap mine;
  bool everywhere = false;  // every rank has the whole: replicated arrays
  bool in_parts = false;    // a rank's part is known to that rank alone

  [[nodiscard]] Bytes bytes() const { return layout.elements() * element; }
};

enum class Direction { write, read };

/// The plan of `array` for `rank` in a global file. Errors: Code::argument, Code::layout.
Result<std::shared_ptr<const ArrayPlan>> make_plan(const Array& array, int rank, Direction direction);
/// The same for a file of the rank's own, which holds the rank's elements one after another.
Result<std::shared_ptr<const ArrayPlan>> make_local_plan(const Array& array, int rank);

/// What one rank owns of an array or section: which elements, and where they lie in its memory.
struct Owned {
  std::vector<Index> shape;        // of the array or section
  std::vector<layout::Rows> rows;  // in packed order
  Bytes element = 0;
  layout::TransferMap packed;  // "file" counts the bytes of the packed elements

  [[nodiscard]] Bytes bytes() const { return packed.end(); }
};
/// What `rank` owns; of a replicated array rank 0 owns the whole. Errors: as make_plan.
Result<Owned> find_owned(const Array& array, int rank);

}  // namespace tailrace::arrays
