// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <span>

#include "engine/exchange/node_ranks.hpp"
#include "ground/base/types.hpp"

namespace tailrace::shared {

/// Computes which page of a global array or shared file belongs to which rank: page p to rank p % ranks. The
/// pages of a node's ranks are numbered in the order of their numbers, from 0 on without gaps; with one node
/// both numbers are the same. The elements of a shared file are its bytes.
class PageDeal {
 public:
  /// The most pages of a global array. Divisions of 32-bit numbers are faster than of 64-bit ones.
  static constexpr Index most_pages = std::numeric_limits<std::uint32_t>::max();

  /// A page by its owner, and by its number among the pages of the owner's node.
  struct PagePlace {
    int owner = 0;
    Index near = 0;
  };
  /// An element by its owner, and by its number among the elements of the owner's node.
  struct ElementPlace {
    int owner = 0;
    Index near = 0;
  };

  /// `page_elements` is a power of 2. `ranks` must outlive the deal.
  PageDeal(Index page_elements, const exchange::NodeRanks& ranks)
      : shift_(std::countr_zero(static_cast<std::uint64_t>(page_elements))), ranks_(ranks) {}

  [[nodiscard]] int ranks() const { return ranks_.ranks(); }
  [[nodiscard]] Index page_elements() const { return Index{1} << shift_; }
  [[nodiscard]] Index pages(Index count) const { return (count >> shift_) + ((count & mask()) != 0 ? 1 : 0); }
  [[nodiscard]] bool are_near(int one, int other) const {
    return ranks_.seat(one).node == ranks_.seat(other).node;
  }

  /// Returns the place of any page of a file.
  [[nodiscard]] PagePlace place_of_page(Index page) const {
    return page <= most_pages ? dealt<std::uint32_t>(page) : dealt<std::uint64_t>(page);
  }
  /// Returns the place of an element of a global array.
  [[nodiscard]] ElementPlace place(Index element) const {
    const PagePlace page = dealt<std::uint32_t>(element >> shift_);
    return {page.owner, (page.near << shift_) | (element & mask())};
  }

  /// Returns the page whose number is `near` among the pages of the rank's node.
  [[nodiscard]] Index page_of_near(int rank, Index near) const {
    const std::span<const int> members = ranks_.of(ranks_.seat(rank).node);
    return near / std::ssize(members) * ranks() +
           members[static_cast<std::size_t>(near % std::ssize(members))];
  }

  /// Returns how many pages of `count` elements belong to the ranks of the node of `rank`.
  [[nodiscard]] Index pages_of_node_of(int rank, Index count) const {
    const Index all = pages(count);
    const Index rows = all / ranks();
    Index some = rows * ranks_.seat(rank).ranks;
    for (int each = 0; each < all % ranks(); ++each) some += are_near(each, rank) ? 1 : 0;
    return some;
  }

 private:
  template <typename Number>
  [[nodiscard]] PagePlace dealt(Index of) const {
    const auto page = static_cast<Number>(of);
    const auto ranks = static_cast<Number>(ranks_.ranks());
    const Number row = page / ranks;
    const Number rank = page - row * ranks;
    const exchange::NodeRanks::Seat& owner = ranks_.seat(static_cast<int>(rank));
    return {static_cast<int>(rank), static_cast<Index>(row) * owner.ranks + owner.number};
  }
  [[nodiscard]] Index mask() const { return page_elements() - 1; }

  int shift_;
  const exchange::NodeRanks& ranks_;
};

}  // namespace tailrace::shared
