// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <optional>

#include "faces/streams/definition/placed_layout.hpp"
#include "formats/codec/definition.hpp"
#include "ground/layout/memory.hpp"
#include "ground/node/budget.hpp"

namespace tailrace::streams {

/// A section of a layout, as a stream has it: of the program's arrays the owners and the places in memory
/// stay, and the files have the part alone.
struct LayoutPart {
  layout::Section section;
  std::shared_ptr<const PlacedLayout> whole;  // without its place on the globe
  PlacedLayout part;                          // with that of the section's points, numbered by the section
  codec::Section told;                        // for definitions of fields
  std::unique_ptr<node::Draw> drawn{};        // on rank 0: memory of the part's coordinates
  // The part keeps what the layout said when it was made: the program may change that before the next field.
  codec::Georeference georeference{};
  std::optional<codec::Coordinates> coordinates{};  // without the values
  std::vector<std::string> dimensions{};
  std::vector<codec::Axis> axes{};
  bool is_on_map = false;  // the coordinates of both dimensions follow from keys

  /// Returns true if this is the section of `layout` as it is now.
  [[nodiscard]] bool is_of(const PlacedLayout& layout, const layout::Section& wanted) const;
};

}  // namespace tailrace::streams
