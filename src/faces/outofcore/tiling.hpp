// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "ground/base/status.hpp"
#include "ground/layout/layout.hpp"

namespace tailrace::outofcore {

/// The cut of a global array into portions: boxes of one shape, numbered in C order. Portions at the upper
/// edges may be smaller.
class Tiling {
 public:
  /// `halo` has for each dimension the number of elements on either side; empty: none. Returns Code::layout
  /// or Code::argument if the three do not fit together.
  static Result<Tiling> make(std::vector<Index> shape, std::vector<Index> portion, std::vector<Index> halo);

  [[nodiscard]] const std::vector<Index>& shape() const { return shape_; }
  /// Returns the number of portions; 0 for an array without elements.
  [[nodiscard]] Index count() const;
  /// Returns the elements of a portion.
  [[nodiscard]] layout::Box own(Index number) const;
  /// Returns the elements of a portion and of its halo, as far as the halo lies inside of the array.
  [[nodiscard]] layout::Box held(Index number) const;
  /// Returns a number of elements that no portion exceeds, halo included.
  [[nodiscard]] Index most_held() const;
  /// "portion 7 of 12, from (0, 64) to below (32, 96)"
  [[nodiscard]] std::string text(Index number) const;

 private:
  Tiling(std::vector<Index> shape, std::vector<Index> portion, std::vector<Index> halo)
      : shape_(std::move(shape)), portion_(std::move(portion)), halo_(std::move(halo)) {}
  [[nodiscard]] std::vector<Index> counts() const;

  std::vector<Index> shape_;
  std::vector<Index> portion_;  // no extent is above that of the array, unless that is 0
  std::vector<Index> halo_;     // not above the extent of the array
};

}  // namespace tailrace::outofcore
