// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ground/layout/layout.hpp"

namespace tailrace::checkpoint {

/// The first element that lies in no group of rows, or in two.
struct Misplaced {
  Index element = 0;
  bool twice = false;  // it lies in two groups; otherwise in none
};

/// Local. Returns the first element of [0, elements) that `groups` do not name exactly once, or, with `gaps`,
/// that they name twice; or nothing if there is none. `groups` must name no elements outside of this range.
/// `runs` limits the work: each run that is looked at counts it down, and at 0 the rest counts as right.
///
/// For n groups of a regular layout, memory is O(n) and time O(n log n), however many rows they have: of
/// groups with one stride that lie side by side, one stride is looked at. Groups of different strides that
/// interleave are looked at run by run.
std::optional<Misplaced> find_misplaced(std::vector<layout::Rows> groups, Index elements, std::int64_t& runs,
                                        bool gaps = false);

}  // namespace tailrace::checkpoint
