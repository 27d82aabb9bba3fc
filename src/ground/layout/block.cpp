// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/layout/grid.hpp"
#include "ground/layout/rule.hpp"

namespace tailrace::layout {
namespace {

/// Returns the index at which part `part` of `parts` begins.
Index cut(Index extent, int parts, int part) {
  return static_cast<Index>(static_cast<Wide>(extent) * part / parts);
}

/// Returns the part that holds `index`: the last part that begins at or before `index`.
int part_of(Index extent, int parts, Index index) {
  return static_cast<int>(((static_cast<Wide>(index) + 1) * parts - 1) / extent);
}

class BlockRule final : public BoxRule {
 public:
  BlockRule(std::vector<Index> shape, int ranks, std::vector<int> grid)
      : BoxRule(std::move(shape), ranks), grid_(std::move(grid)) {}

  [[nodiscard]] std::string_view name() const override { return "block"; }
  [[nodiscard]] Box box(int rank) const override {
    Box box;
    for (std::size_t d = 0; d < shape().size(); ++d) {
      const int at = grid_.coordinate(rank, d);
      box.lower.push_back(cut(shape()[d], grid_.extents()[d], at));
      box.upper.push_back(cut(shape()[d], grid_.extents()[d], at + 1));
    }
    return box;
  }
  [[nodiscard]] int owner(Index global) const override {
    return grid_.owner(global, shape(), [&](std::size_t d, Index index) {
      return part_of(shape()[d], grid_.extents()[d], index);
    });
  }
  void pack(Packer& out) const override {
    out.put(Kind::block).put_list<Index>(shape()).put<std::int32_t>(ranks()).put_list<int>(grid_.extents());
  }

 private:
  ProcessorGrid grid_;
};

}  // namespace

Result<Layout> Layout::block(std::vector<Index> shape, int ranks, std::vector<int> grid) {
  TR_TRY(check_shape(shape));
  auto chosen = choose_grid(shape, ranks, std::move(grid));
  if (!chosen.is_ok()) return chosen.status();
  return Rule::wrap(std::make_shared<BlockRule>(std::move(shape), ranks, *std::move(chosen)));
}

}  // namespace tailrace::layout
