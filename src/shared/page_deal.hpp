// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "base/types.hpp"
#include "exchange/node_ranks.hpp"

namespace tailrace::shared {

/// How the pages of a global array are dealt out: page p belongs to rank p % ranks. In a node the pages of
/// its ranks follow one another by their numbers, so that with one node they are one array.
class PageDeal {
 public:
  /// Page numbers are divided as 32-bit numbers, which is faster.
  static constexpr Index most_pages = std::numeric_limits<std::uint32_t>::max();

  /// An element by its owner, and by its number among the elements of the owner's node.
  struct Place {
    int owner = 0;
    Index near = 0;
  };

  /// `page_elements` is a power of 2. `ranks` must outlive it.
  PageDeal(Index page_elements, const exchange::NodeRanks& ranks)
      : shift_(std::countr_zero(static_cast<std::uint64_t>(page_elements))), ranks_(ranks) {}

  [[nodiscard]] int ranks() const { return ranks_.ranks(); }
  [[nodiscard]] Index page_elements() const { return Index{1} << shift_; }
  [[nodiscard]] Index pages(Index count) const { return (count >> shift_) + ((count & mask()) != 0 ? 1 : 0); }
  [[nodiscard]] bool are_near(int one, int other) const {
    return ranks_.seat(one).node == ranks_.seat(other).node;
  }

  [[nodiscard]] Place place(Index element) const {
    const auto page = static_cast<std::uint32_t>(element >> shift_);
    const auto ranks = static_cast<std::uint32_t>(ranks_.ranks());
    const std::uint32_t row = page / ranks;
    const std::uint32_t rank = page - row * ranks;
    const exchange::NodeRanks::Seat& owner = ranks_.seat(static_cast<int>(rank));
    const Index slot = Index{row} * owner.ranks + owner.number;
    return {static_cast<int>(rank), (slot << shift_) | (element & mask())};
  }

  /// Returns how many of the pages of `count` elements belong to the ranks of a rank's node.
  [[nodiscard]] Index pages_of_node_of(int rank, Index count) const {
    const Index all = pages(count);
    const Index rows = all / ranks();
    Index some = rows * ranks_.seat(rank).ranks;
    for (int each = 0; each < all % ranks(); ++each) some += are_near(each, rank) ? 1 : 0;
    return some;
  }

 private:
  [[nodiscard]] Index mask() const { return page_elements() - 1; }

  int shift_;
  const exchange::NodeRanks& ranks_;
};

}  // namespace tailrace::shared
