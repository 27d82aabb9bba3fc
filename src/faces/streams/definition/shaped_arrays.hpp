// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "engine/arrays/type_text.hpp"
#include "faces/streams/definition/placed_layout.hpp"
#include "ground/base/text.hpp"
#include "ground/layout/memory.hpp"

namespace tailrace::streams {

/// Keeps what a field needs to know of arrays that come with their shape: a `Made`, such as the map of where
/// the field's elements lie. Programs give arrays of the same shape again and again, so a `Made` is made only
/// when the shape changes.
template <typename Made>
class ShapedArrays {
 public:
  /// Local. Returns what `make` returns for the allocation of an array of this shape that holds a field
  /// defined with `type` and `allocation`. `rank` is the rank whose part of the layout the array has. It
  /// stays until the next call with another shape. Code::argument if the array does not hold the field.
  template <typename Make>
  Result<const Made*> find(const ArrayShape& shape, ElementType type, const layout::Layout& layout, int rank,
                           layout::Allocation allocation, const Make& make) {
    if (shape.type != type)
      return Status(Code::argument, cat("the array holds ", type_text(shape.type),
                                        ", the field was defined as ", type_text(type),
                                        "; give its definition the type of the array (in Fortran a field "
                                        "without type= is TR_REAL)"));
    if (made_ && extents_ == shape.extents && strides_ == shape.strides) return &*made_;
    if (allocation.nproma == 0) {
      Result<layout::Allocation> matched =
          layout::match_extents(layout, rank, std::move(allocation), shape.extents);
      TR_TRY(matched.status());
      allocation = std::move(*matched);
    }
    allocation.strides = shape.strides;
    Result<Made> made = make(allocation);
    TR_TRY(made.status());
    extents_ = shape.extents;
    strides_ = shape.strides;
    made_ = std::move(*made);
    return &*made_;
  }

 private:
  std::vector<Index> extents_;  // of the last shape
  std::vector<Bytes> strides_;
  std::optional<Made> made_;
};

}  // namespace tailrace::streams
