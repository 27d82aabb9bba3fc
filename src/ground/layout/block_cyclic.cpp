// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include <algorithm>

#include "ground/base/text.hpp"
#include "ground/layout/grid.hpp"
#include "ground/layout/rule.hpp"

namespace tailrace::layout {
namespace {

/// The elements that one coordinate of the processor grid owns along one dimension: `blocks` blocks of
/// `block` elements. The first block begins at `first`, each next one `period` elements later. The last may
/// be shorter.
struct Deal {
  Index first = 0, block = 1, period = 0, blocks = 0, count = 0;

  Deal(Index extent, Index block_size, int parts, int part) : block(block_size) {
    const Index all = extent == 0 ? 0 : (extent - 1) / block + 1;
    if (part >= all) return;
    first = part * block;
    blocks = (all - part - 1) / parts + 1;
    // `period` is needed only if there is a second block. It is then less than the extent and cannot
    // overflow.
    if (blocks > 1) period = parts * block;
    count = (blocks - 1) * block + length(blocks - 1, extent);
  }
  [[nodiscard]] Index begin(Index nth) const { return first + nth * period; }
  [[nodiscard]] Index length(Index nth, Index extent) const { return std::min(block, extent - begin(nth)); }
  [[nodiscard]] Index element(Index nth) const { return begin(nth / block) + nth % block; }
};

class BlockCyclicRule final : public Layout::Rule {
 public:
  BlockCyclicRule(std::vector<Index> shape, int ranks, std::vector<Index> block, std::vector<int> grid)
      : Rule(std::move(shape), ranks), block_(std::move(block)), grid_(std::move(grid)) {}

  [[nodiscard]] std::string_view name() const override { return "block_cyclic"; }
  [[nodiscard]] Index count(int rank) const override {
    Index count = 1;
    for (std::size_t d = 0; d < shape().size(); ++d) count *= deal(rank, d).count;
    return count;
  }
  [[nodiscard]] std::vector<Rows> rows(int rank) const override;
  [[nodiscard]] int owner(Index global) const override {
    return grid_.owner(global, shape(), [&](std::size_t d, Index index) {
      return static_cast<int>(index / block_[d] % grid_.extents()[d]);
    });
  }
  void pack(Packer& out) const override {
    out.put(Kind::block_cyclic).put_list<Index>(shape()).put<std::int32_t>(ranks());
    out.put_list<Index>(block_).put_list<int>(grid_.extents());
  }

 private:
  [[nodiscard]] Deal deal(int rank, std::size_t d) const {
    return {shape()[d], block_[d], grid_.extents()[d], grid_.coordinate(rank, d)};
  }

  std::vector<Index> block_;
  ProcessorGrid grid_;
};

std::vector<Rows> BlockCyclicRule::rows(int rank) const {
  if (count(rank) == 0) return {};
  const std::vector<Index> strides = strides_of(shape());
  // From the fastest dimension on, a dimension that the rank owns whole only makes the runs of the next
  // slower dimension longer: it needs no loop.
  std::size_t split = shape().size() - 1;
  while (split > 0 && deal(rank, split).count == shape()[split]) --split;
  const Deal inner = deal(rank, split);
  std::vector<Deal> outer;
  std::vector<Index> turns;
  for (std::size_t d = 0; d < split; ++d) {
    outer.push_back(deal(rank, d));
    turns.push_back(outer.back().count);
  }
  RowsBuilder rows;
  std::vector<Index> at(split, 0);
  do {
    Index base = 0;
    for (std::size_t d = 0; d < split; ++d) base += outer[d].element(at[d]) * strides[d];
    for (Index b = 0; b < inner.blocks; ++b)
      rows.add(base + inner.begin(b) * strides[split], inner.length(b, shape()[split]) * strides[split]);
  } while (advance(at, turns));
  return rows.take();
}

}  // namespace

Result<Layout> Layout::block_cyclic(std::vector<Index> shape, int ranks, std::vector<Index> block,
                                    std::vector<int> grid) {
  TR_TRY(check_shape(shape));
  auto chosen = choose_grid(shape, ranks, std::move(grid));
  if (!chosen.is_ok()) return chosen.status();
  if (block.size() != shape.size())
    return layout_error("a block-cyclic layout of ", counted(shape.size(), "dimension"),
                        " needs that many block sizes, but ", block.size(), " were given");
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (block[d] < 1)
      return layout_error("block size ", block[d], " of ", dimension_text(d, shape.size()),
                          " is not positive: a block has at least 1 element");
    block[d] = std::min(block[d], std::max<Index>(shape[d], 1));
  }
  return Rule::wrap(
      std::make_shared<BlockCyclicRule>(std::move(shape), ranks, std::move(block), *std::move(chosen)));
}

}  // namespace tailrace::layout
