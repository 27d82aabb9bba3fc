// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "formats/codec/definition.hpp"
#include "ground/comm/line.hpp"
#include "ground/layout/memory.hpp"
#include "ground/node/budget.hpp"

namespace tailrace::arrays {

/// This rank's part of the coordinates of a layout's points, in arrays allocated as `allocation` says. Arrays
/// of bounds have the corners of a cell as their fastest dimension.
struct GivenCoordinates {
  const double* latitudes = nullptr;
  const double* longitudes = nullptr;
  Index corners = 0;
  const double* latitude_bounds = nullptr;
  const double* longitude_bounds = nullptr;
  Result<layout::Allocation> allocation{layout::Allocation{}};
};

struct GatheredCoordinates {
  std::shared_ptr<const codec::Coordinates> coordinates;
  std::unique_ptr<node::Draw> drawn;  // the memory of the values
};

/// Collective over `line`, whose ranks vote by `agree`. Blocks until all have called it. Sends all values to
/// rank 0, in portions. Rank 0 gets the coordinates with their values, the other ranks without. Returns the
/// same Status on every rank: Code::data if a value is no place on the globe, Code::memory if `budget` is too
/// small.
Result<GatheredCoordinates> gather_coordinates(comm::Line& line,
                                               const std::function<comm::Verdict(comm::Vote)>& agree,
                                               node::Budget& budget, const std::string& call,
                                               const layout::Layout& layout, const GivenCoordinates& given);

}  // namespace tailrace::arrays
