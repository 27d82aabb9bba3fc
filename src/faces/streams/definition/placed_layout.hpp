// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include "formats/codec/definition.hpp"
#include "ground/layout/layout.hpp"

namespace tailrace::streams {

/// A layout as the faces hold it: the owners of elements, the arrays' allocation, and the place on the globe.
struct PlacedLayout {
  layout::Layout layout;
  std::int64_t id = 0;  // layouts are made collectively: the same number means the same layout on every rank
  std::vector<Index> halo;
  codec::Georeference georeference;
  std::vector<Index> own_indices;  // for layouts known in parts: what this rank owns, sent to the servers
  bool in_parts = false;
  std::vector<std::string> dimensions{};  // their names, slowest first; empty = none
  std::vector<codec::Axis> axes{};        // coordinates of some of these dimensions
  bool is_scalar = false;                 // without a dimension: `layout` has one element

  /// Returns the shape that callers and files see: of a scalar none.
  [[nodiscard]] std::vector<Index> shape() const { return is_scalar ? std::vector<Index>() : layout.shape(); }
};

/// The caller's description of the array that it hands over.
struct ArrayShape {
  ElementType type = ElementType::f32;
  std::vector<Index> extents;  // C order, level axis included
  std::vector<Bytes> strides;  // empty = contiguous

  /// Returns the shape on a scalar's layout, which has a dimension of one element.
  [[nodiscard]] ArrayShape of_scalar() const {
    ArrayShape out = *this;
    out.extents.push_back(1);
    if (!strides.empty()) out.strides.push_back(size_of(type));
    return out;
  }
};

}  // namespace tailrace::streams
