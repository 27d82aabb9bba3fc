// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ground/layout/layout.hpp"

namespace tailrace::checkpoint {

/// The first element that does not lie in exactly one of the groups of rows among which it was looked for.
struct Misplaced {
  Index element = 0;
  bool twice = false;  // otherwise it lies nowhere
};

/// Local. Finds the first element of [0, elements) that `groups` do not name exactly once. `groups` name no
/// other elements. Memory is O(n) and time O(n log n) for n groups of a regular layout, however many rows
/// they have: groups of one stride that lie side by side are followed over one stride only. Groups of
/// different strides that interleave are followed run by run. `runs` is how many may be followed; it is
/// counted down, and at 0 the rest passes.
std::optional<Misplaced> find_misplaced(std::vector<layout::Rows> groups, Index elements, std::int64_t& runs);

}  // namespace tailrace::checkpoint
