// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/outofcore/tiling.hpp"

#include <algorithm>

#include "ground/base/text.hpp"
#include "ground/layout/shape.hpp"

namespace tailrace::outofcore {

Result<Tiling> Tiling::make(std::vector<Index> shape, std::vector<Index> portion, std::vector<Index> halo) {
  TR_TRY(layout::check_shape(shape));
  halo.resize(shape.size(), 0);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (portion[d] < 1) return Status(Code::argument, cat("portion[", d, "] is ", portion[d], ", below 1"));
    if (halo[d] < 0) return Status(Code::argument, cat("halo[", d, "] is ", halo[d], ", below 0"));
    portion[d] = std::min(portion[d], std::max(shape[d], Index{1}));
    halo[d] = std::min(halo[d], shape[d]);
  }
  return Tiling(std::move(shape), std::move(portion), std::move(halo));
}

std::vector<Index> Tiling::counts() const {
  std::vector<Index> counts(shape_.size());
  // Extents may be near the largest number: they must be divided before anything is added to them.
  for (std::size_t d = 0; d < counts.size(); ++d)
    counts[d] = shape_[d] / portion_[d] + (shape_[d] % portion_[d] != 0);
  return counts;
}

Index Tiling::count() const { return layout::product(counts()); }

layout::Box Tiling::own(Index number) const {
  layout::Box box{layout::indices_of(number, counts()), {}};
  for (std::size_t d = 0; d < shape_.size(); ++d) {
    box.lower[d] *= portion_[d];
    box.upper.push_back(box.lower[d] + std::min(portion_[d], shape_[d] - box.lower[d]));
  }
  return box;
}

layout::Box Tiling::held(Index number) const {
  layout::Box box = own(number);
  for (std::size_t d = 0; d < shape_.size(); ++d) {
    box.lower[d] -= std::min(halo_[d], box.lower[d]);
    box.upper[d] += std::min(halo_[d], shape_[d] - box.upper[d]);
  }
  return box;
}

Index Tiling::most_held() const {
  if (count() == 0) return 0;
  Index most = 1;
  for (std::size_t d = 0; d < shape_.size(); ++d) {
    const Index room = shape_[d] - portion_[d];
    most *= portion_[d] + (halo_[d] > room / 2 ? room : 2 * halo_[d]);
  }
  return most;
}

std::string Tiling::text(Index number) const {
  const layout::Box box = own(number);
  return cat("portion ", number, " of ", count(), ", from ", layout::tuple(box.lower), " to below ",
             layout::tuple(box.upper));
}

}  // namespace tailrace::outofcore
