// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/layout/grid.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "ground/base/text.hpp"
#include "ground/layout/shape.hpp"

namespace tailrace::layout {
namespace {

std::vector<int> divisors_descending(int number) {
  std::vector<int> divisors;
  for (std::int64_t d = 1; d * d <= number; ++d) {
    if (number % d != 0) continue;
    divisors.push_back(static_cast<int>(d));
    if (d * d != number) divisors.push_back(static_cast<int>(number / d));
  }
  std::sort(divisors.rbegin(), divisors.rend());
  return divisors;
}

/// Returns how much the surface of a block grows if an extent is cut into `parts`. More parts than elements
/// leave ranks without work, and therefore cost far more than any surface.
double cost_of(double parts, double extent) {
  const double ratio = parts / extent;
  return ratio > 1 ? 1e3 * ratio : ratio;
}

/// Searches the factorisations of `ranks` by branch and bound. Without the bound, 7 dimensions and a highly
/// composite number of ranks would give millions of candidates.
class GridSearch {
 public:
  GridSearch(std::vector<double> extents, int ranks)
      : extents_(std::move(extents)), divisors_(divisors_descending(ranks)), current_(extents_.size(), 1) {
    best_cost_ = greedy_cost(ranks) * 1.001;
    descend(0, ranks, 0.0);
  }
  [[nodiscard]] const std::vector<int>& best() const { return best_; }

 private:
  /// Returns the cost of a simple grid, as the first limit: each prime factor, largest first, divides the
  /// side of the block that is longest so far.
  double greedy_cost(int ranks) const {
    std::vector<int> primes;
    for (std::int64_t p = 2; p * p <= ranks; ++p)
      for (; ranks % p == 0; ranks /= static_cast<int>(p)) primes.push_back(static_cast<int>(p));
    if (ranks > 1) primes.push_back(ranks);
    std::vector<double> parts(extents_.size(), 1.0);
    for (auto prime = primes.rbegin(); prime != primes.rend(); ++prime) {
      std::size_t longest = 0;
      for (std::size_t d = 1; d < parts.size(); ++d)
        if (extents_[d] / parts[d] > extents_[longest] / parts[longest]) longest = d;
      parts[longest] *= *prime;
    }
    double cost = 0;
    for (std::size_t d = 0; d < parts.size(); ++d) cost += cost_of(parts[d], extents_[d]);
    return cost;
  }

  /// Returns a lower bound: no grid of `rest` ranks over the dimensions from `d` on costs less (the
  /// arithmetic mean is never below the geometric mean).
  double bound(std::size_t d, int rest) const {
    const auto left = static_cast<double>(extents_.size() - d);
    double volume = 1;
    for (std::size_t i = d; i < extents_.size(); ++i) volume *= extents_[i];
    return left * std::pow(rest / volume, 1 / left);
  }

  void descend(std::size_t d, int rest, double cost) {
    const bool last = d + 1 == extents_.size();
    for (const int parts : divisors_) {
      if (rest % parts != 0 || (last && parts != rest)) continue;
      const double total = cost + cost_of(parts, extents_[d]);
      const double least = last ? total : total + bound(d + 1, rest / parts);
      if (least > best_cost_ * (1 - 1e-9)) continue;  // an equal grid found later does not replace the first
      current_[d] = parts;
      if (last) {
        best_cost_ = total;
        best_ = current_;
      } else {
        descend(d + 1, rest / parts, total);
      }
    }
  }

  std::vector<double> extents_;
  std::vector<int> divisors_;
  std::vector<int> current_;
  std::vector<int> best_;
  double best_cost_ = 0;
};

std::string grid_text(const std::vector<int>& grid) {
  return extents(std::vector<Index>(grid.begin(), grid.end()));
}

}  // namespace

Result<std::vector<int>> choose_grid(const std::vector<Index>& shape, int ranks, std::vector<int> grid) {
  if (ranks < 1) return layout_error("a layout needs at least 1 rank, but got ", ranks);
  if (grid.empty()) grid.assign(shape.size(), 0);
  if (grid.size() != shape.size())
    return layout_error("a processor grid for ", counted(shape.size(), "dimension"),
                        " has that many entries, but ", grid.size(), " were given");
  int rest = ranks;
  std::vector<double> free_extents;
  for (std::size_t d = 0; d < grid.size(); ++d) {
    if (grid[d] < 0)
      return layout_error("entry ", grid[d], " of the processor grid, ", dimension_text(d, grid.size()),
                          ", is negative: give the number of processes, or 0 to have it chosen");
    if (grid[d] == 0) {
      free_extents.push_back(static_cast<double>(std::max<Index>(shape[d], 1)));
      continue;
    }
    if (rest % grid[d] != 0)
      return layout_error("the processor grid ", grid_text(grid), " does not fit ", counted(ranks, "rank"),
                          ": its entries must divide them (0 = chosen here)");
    rest /= grid[d];
  }
  if (free_extents.empty()) {
    if (rest == 1) return grid;
    return layout_error("the processor grid ", grid_text(grid), " has ",
                        counted(ranks / rest, "process", "processes"), ", expected ", ranks,
                        ", one for each rank");
  }
  const std::vector<int> chosen = GridSearch(free_extents, rest).best();
  for (std::size_t d = 0, next = 0; d < grid.size(); ++d)
    if (grid[d] == 0) grid[d] = chosen[next++];
  return grid;
}

ProcessorGrid::ProcessorGrid(std::vector<int> extents)
    : extents_(std::move(extents)), strides_(extents_.size()) {
  int stride = 1;
  for (std::size_t d = extents_.size(); d-- > 0;) {
    strides_[d] = stride;
    stride *= extents_[d];
  }
}

}  // namespace tailrace::layout
