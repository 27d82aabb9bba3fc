// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <map>
#include <vector>

#include "base/types.hpp"

namespace tailrace::shared {

/// How the pages of a global array or shared file are dealt out: page p belongs to rank p % ranks. In a node
/// the pages of its ranks follow one another by their numbers, so that with one node they are one array. The
/// elements of a file are its bytes.
class PageDeal {
 public:
  /// The most pages of a global array: smaller numbers are divided faster.
  static constexpr Index most_pages = std::numeric_limits<std::uint32_t>::max();

  /// A page by its owner, and by its number among the pages of the owner's node.
  struct PagePlace {
    int owner = 0;
    Index near = 0;
  };
  /// An element by its owner, and by its number among the elements of the owner's node.
  struct Place {
    int owner = 0;
    Index near = 0;
  };

  /// `nodes` has the node of each rank, named by the lowest of its ranks. `page_elements` is a power of 2.
  PageDeal(Index page_elements, const std::vector<int>& nodes)
      : shift_(std::countr_zero(static_cast<std::uint64_t>(page_elements))), owners_(nodes.size()) {
    std::map<int, Index> ranks_of;
    for (std::size_t rank = 0; rank < nodes.size(); ++rank)
      owners_[rank] = {nodes[rank], 0, ranks_of[nodes[rank]]++};
    for (Owner& owner : owners_) owner.ranks = ranks_of[owner.node];
  }

  [[nodiscard]] int ranks() const { return static_cast<int>(owners_.size()); }
  [[nodiscard]] Index page_elements() const { return Index{1} << shift_; }
  [[nodiscard]] Index pages(Index count) const { return (count >> shift_) + ((count & mask()) != 0 ? 1 : 0); }
  [[nodiscard]] bool are_near(int one, int other) const { return owner(one).node == owner(other).node; }

  /// Any page of a file.
  [[nodiscard]] PagePlace place_of_page(Index page) const {
    return page <= most_pages ? dealt<std::uint32_t>(page) : dealt<std::uint64_t>(page);
  }
  /// An element of a global array.
  [[nodiscard]] Place place(Index element) const {
    const PagePlace page = dealt<std::uint32_t>(element >> shift_);
    return {page.owner, (page.near << shift_) | (element & mask())};
  }

  /// Returns how many of the pages of `count` elements belong to the ranks of a rank's node.
  [[nodiscard]] Index pages_of_node_of(int rank, Index count) const {
    const Index all = pages(count);
    const Index rows = all / ranks();
    Index some = rows * owner(rank).ranks;
    for (int each = 0; each < all % ranks(); ++each) some += are_near(each, rank) ? 1 : 0;
    return some;
  }

 private:
  struct Owner {
    int node = 0;
    Index ranks = 1;   // of the node
    Index number = 0;  // among them
  };
  [[nodiscard]] const Owner& owner(int rank) const { return owners_[static_cast<std::size_t>(rank)]; }
  template <typename Number>
  [[nodiscard]] PagePlace dealt(Index of) const {
    const auto page = static_cast<Number>(of);
    const auto ranks = static_cast<Number>(owners_.size());
    const Number row = page / ranks;
    const Number rank = page - row * ranks;
    const Owner& owner = owners_[rank];
    return {static_cast<int>(rank), static_cast<Index>(row) * owner.ranks + owner.number};
  }
  [[nodiscard]] Index mask() const { return page_elements() - 1; }

  int shift_;
  std::vector<Owner> owners_;
};

}  // namespace tailrace::shared
