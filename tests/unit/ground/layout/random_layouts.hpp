// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "ground/layout/layout.hpp"

namespace tailrace::layout::test {

/// Makes small random layouts of every kind. The same seed gives the same layouts.
class Generator {
 public:
  /// With `ranks` above 0 all layouts are for so many ranks.
  explicit Generator(unsigned seed, int ranks = 0) : random_(seed), fixed_ranks_(ranks) {}

  Index between(Index low, Index high) { return std::uniform_int_distribution<Index>(low, high)(random_); }
  bool chance() { return between(0, 1) == 1; }

  std::vector<Index> shape(std::size_t dims) {
    static constexpr Index largest[] = {60, 14, 8, 5, 4, 3, 3};
    std::vector<Index> shape(dims);
    for (Index& extent : shape) extent = between(between(0, 9) == 0 ? 0 : 1, largest[dims - 1]);
    return shape;
  }
  std::vector<Index> shape() { return shape(static_cast<std::size_t>(between(1, 7))); }
  int ranks() { return fixed_ranks_ > 0 ? fixed_ranks_ : static_cast<int>(between(1, 13)); }

  Layout block(std::vector<Index> shape) { return *Layout::block(std::move(shape), ranks()); }
  Layout block_cyclic(const std::vector<Index>& shape) {
    std::vector<Index> block(shape.size());
    for (Index& size : block) size = between(1, 4);
    return *Layout::block_cyclic(shape, ranks(), block);
  }
  Layout weighted(const std::vector<Index>& shape) {
    std::vector<std::vector<double>> weights(shape.size());
    for (auto& list : weights) {
      // With a fixed number of ranks all lie along the first dimension.
      const bool first = &list == &weights.front();
      list.resize(static_cast<std::size_t>(fixed_ranks_ == 0 ? between(1, 3) : first ? fixed_ranks_ : 1));
      for (double& weight : list) weight = static_cast<double>(between(0, 3)) / 3;
      list[static_cast<std::size_t>(between(0, static_cast<Index>(list.size()) - 1))] = 0.7;
    }
    return *Layout::weighted(shape, weights);
  }
  /// Makes a random tree of cuts, dealt to ranks in random order, with a few empty boxes.
  Layout boxes(const std::vector<Index>& shape) {
    std::vector<Box> boxes{{std::vector<Index>(shape.size(), 0), shape}};
    for (Index cuts = fixed_ranks_ > 0 ? fixed_ranks_ - 1 : between(0, 10); cuts > 0; --cuts) {
      const auto which = static_cast<std::size_t>(between(0, static_cast<Index>(boxes.size()) - 1));
      const auto d = static_cast<std::size_t>(between(0, static_cast<Index>(shape.size()) - 1));
      Box upper = boxes[which];
      upper.lower[d] = boxes[which].upper[d] = between(upper.lower[d], upper.upper[d]);
      boxes.push_back(upper);
    }
    std::shuffle(boxes.begin(), boxes.end(), random_);
    return *Layout::boxes(shape, boxes);
  }
  /// Makes a random tree of cuts, and deals its boxes to the ranks.
  std::vector<std::vector<Box>> tile_lists(const std::vector<Index>& shape) {
    const Layout cut = Generator(static_cast<unsigned>(between(0, 1 << 20)), 9).boxes(shape);
    std::vector<std::vector<Box>> lists(static_cast<std::size_t>(ranks()));
    for (int i = 0; i < cut.ranks(); ++i)
      lists[static_cast<std::size_t>(between(0, static_cast<Index>(lists.size()) - 1))].push_back(cut.box(i));
    return lists;
  }
  Layout tiles(const std::vector<Index>& shape) { return *Layout::tiles(shape, tile_lists(shape), false); }
  std::vector<std::vector<Index>> index_lists(const std::vector<Index>& shape) {
    Index elements = 1;
    for (const Index extent : shape) elements *= extent;
    std::vector<std::vector<Index>> lists(static_cast<std::size_t>(ranks()));
    std::vector<Index> all(static_cast<std::size_t>(elements));
    std::iota(all.begin(), all.end(), 0);
    if (chance()) std::shuffle(all.begin(), all.end(), random_);
    // Runs of 1 to 4 elements go to one rank, so that both contiguous and scattered elements occur.
    for (std::size_t i = 0; i < all.size();) {
      auto& list = lists[static_cast<std::size_t>(between(0, static_cast<Index>(lists.size()) - 1))];
      for (Index run = between(1, 4); run > 0 && i < all.size(); --run) list.push_back(all[i++]);
    }
    return lists;
  }
  Layout indexed(const std::vector<Index>& shape) { return *Layout::indexed(shape, index_lists(shape)); }
  Layout replicated(const std::vector<Index>& shape) { return *Layout::replicated(shape, ranks()); }

  Layout any(const std::vector<Index>& shape) {
    switch (between(0, 6)) {
      case 0:
        return block(shape);
      case 1:
        return block_cyclic(shape);
      case 2:
        return weighted(shape);
      case 3:
        return boxes(shape);
      case 4:
        return indexed(shape);
      case 5:
        return tiles(shape);
      default:
        return replicated(shape);
    }
  }
  Layout any() { return any(shape()); }

  template <typename List>
  void shuffle(List& list) {
    std::shuffle(list.begin(), list.end(), random_);
  }

 private:
  std::mt19937 random_;
  int fixed_ranks_ = 0;
};

/// Returns the global elements that `rows` name, one by one.
inline std::vector<Index> expand(const std::vector<Rows>& rows) {
  std::vector<Index> all;
  for (const Rows& entry : rows)
    for (Index r = 0; r < entry.rows; ++r)
      for (Index i = 0; i < entry.count; ++i) all.push_back(entry.global + r * entry.stride + i);
  return all;
}

inline std::vector<Index> index_tuple(Index global, const std::vector<Index>& shape) {
  std::vector<Index> tuple(shape.size());
  for (std::size_t d = shape.size(); d-- > 0; global /= shape[d]) tuple[d] = global % shape[d];
  return tuple;
}

inline std::string describe(const Layout& layout) {
  std::string text = std::string(layout.kind()) + " on " + std::to_string(layout.ranks()) + " ranks of";
  for (const Index extent : layout.shape()) text += " " + std::to_string(extent);
  return text;
}

}  // namespace tailrace::layout::test
