// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <limits>

#include "ground/base/text.hpp"
#include "ground/layout/grid.hpp"
#include "ground/layout/rule.hpp"

namespace tailrace::layout {
namespace {

class WeightedRule final : public BoxRule {
 public:
  WeightedRule(std::vector<Index> shape, int ranks, std::vector<std::vector<double>> weights,
               std::vector<std::vector<Index>> cuts, std::vector<int> grid)
      : BoxRule(std::move(shape), ranks),
        weights_(std::move(weights)),
        cuts_(std::move(cuts)),
        grid_(std::move(grid)) {}

  [[nodiscard]] std::string_view name() const override { return "weighted"; }
  [[nodiscard]] Box box(int rank) const override {
    Box box;
    for (std::size_t d = 0; d < shape().size(); ++d) {
      const auto at = static_cast<std::size_t>(grid_.coordinate(rank, d));
      box.lower.push_back(cuts_[d][at]);
      box.upper.push_back(cuts_[d][at + 1]);
    }
    return box;
  }
  [[nodiscard]] int owner(Index global) const override {
    return grid_.owner(global, shape(), [&](std::size_t d, Index index) {
      // The owner is the last part that begins at or before the index. Earlier parts with the same beginning
      // are empty.
      const auto after = std::upper_bound(cuts_[d].begin(), cuts_[d].end(), index);
      return static_cast<int>(after - cuts_[d].begin() - 1);
    });
  }
  void pack(Packer& out) const override {
    out.put(Kind::weighted).put_list<Index>(shape());
    for (const auto& weights : weights_) out.put_list<double>(weights);
  }

 private:
  std::vector<std::vector<double>> weights_;
  std::vector<std::vector<Index>> cuts_;  // for each dimension: parts + 1 cuts, from 0 to the extent
  ProcessorGrid grid_;
};

Status check_weights(const std::vector<double>& weights, const std::string& dimension) {
  if (weights.empty()) return layout_error(dimension, " has no weights: give one for each process along it");
  double largest = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!std::isfinite(weights[i]) || weights[i] < 0)
      return layout_error("weight ", told_index(static_cast<Index>(i)), " of ", dimension, " is ", weights[i],
                          ": weights are finite and >= 0");
    largest = std::max(largest, weights[i]);
  }
  if (largest == 0 && weights.size() == 1)
    return layout_error("the only weight of ", dimension, " is 0: it must be positive");
  if (largest == 0)
    return layout_error("all ", weights.size(), " weights of ", dimension,
                        " are 0: at least one must be positive");
  return {};
}

/// Returns cuts[i] = extent * (w[0] + .. + w[i-1]) / (w[0] + .. + w[parts-1]), rounded down. Equal sums give
/// equal cuts, so that a weight of 0 gives an empty part. The sum after the last positive weight is the
/// total, so that the last cut is the extent, however the division rounds.
std::vector<Index> cut_by(const std::vector<double>& weights, Index extent) {
  const double largest = *std::max_element(weights.begin(), weights.end());
  std::vector<long double> sums{0.0L};
  for (const double weight : weights)
    sums.push_back(sums.back() + static_cast<long double>(weight / largest));
  std::vector<Index> cuts{0};
  for (std::size_t i = 1; i < sums.size(); ++i) {
    const long double exact = static_cast<long double>(extent) * (sums[i] / sums.back());
    const Index cut = sums[i] == sums.back() ? extent : static_cast<Index>(exact + 1e-9L);
    cuts.push_back(std::clamp(cut, cuts.back(), extent));
  }
  return cuts;
}

}  // namespace

Result<Layout> Layout::weighted(std::vector<Index> shape, std::vector<std::vector<double>> weights) {
  TR_TRY(check_shape(shape));
  if (weights.size() != shape.size())
    return layout_error("a weighted layout of ", counted(shape.size(), "dimension"),
                        " needs that many lists of weights, but ", weights.size(), " were given");
  std::vector<std::vector<Index>> cuts;
  std::vector<int> grid;
  Index ranks = 1;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    TR_TRY(check_weights(weights[d], dimension_text(d, shape.size())));
    cuts.push_back(cut_by(weights[d], shape[d]));
    // Both factors are below 2^31, or the function has returned already: the product cannot overflow.
    if (weights[d].size() > std::numeric_limits<int>::max() ||
        (ranks *= static_cast<Index>(weights[d].size())) > std::numeric_limits<int>::max())
      return layout_error("the weights are for more than 2^31 - 1 ranks");
    grid.push_back(static_cast<int>(weights[d].size()));
  }
  return Rule::wrap(std::make_shared<WeightedRule>(std::move(shape), static_cast<int>(ranks),
                                                   std::move(weights), std::move(cuts), std::move(grid)));
}

}  // namespace tailrace::layout
