// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <vector>

#include "ground/layout/layout.hpp"
#include "ground/layout/memory.hpp"
#include "ground/layout/transfer_map.hpp"

namespace tailrace::input {

/// The part of each level that one rank gets, and its place in the rank's array.
struct Share {
  layout::TransferMap map;  // the map's "file" is the node's box, in C order
  Bytes level_stride = 0;
};

/// Local. Returns the smallest box around all elements that `rank` gets: those it owns and, in layouts of one
/// box for each rank, the halo within the global array. Of a replicated array each rank gets everything.
layout::Box box_of(const layout::Layout& layout, int rank, const std::vector<Index>& halo);

/// Local. Returns the smallest box around both boxes.
layout::Box joined(const layout::Box& a, const layout::Box& b);

/// Local. Returns the share of `rank` in an array allocated as `allocation` says, with the allocation's halo.
/// `cut` is the node's box and contains box_of() of the rank. Errors: as of layout::memory_map.
Result<Share> make_share(const layout::Layout& layout, int rank, ElementType type,
                         const layout::Allocation& allocation, const layout::Box& cut);

}  // namespace tailrace::input
