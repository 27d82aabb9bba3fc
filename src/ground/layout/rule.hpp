// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "ground/base/bytes.hpp"
#include "ground/layout/layout.hpp"
#include "ground/layout/rows.hpp"
#include "ground/layout/shape.hpp"

namespace tailrace::layout {

/// The numbers that stand for the kinds in messages. Append only.
enum class Kind : std::int32_t {
  block = 1,
  block_cyclic = 2,
  weighted = 3,
  boxes = 4,
  indexed = 5,
  indexed_part = 6,
  replicated = 7,
  section = 8,
  tiles = 9,
};

/// The interface that each kind of layout implements. Layout checks that ranks and indices are in range
/// before it asks.
class Layout::Rule {
 public:
  Rule(std::vector<Index> shape, int ranks)
      : shape_(std::move(shape)), ranks_(ranks), elements_(product(shape_)) {}
  virtual ~Rule() = default;
  Rule(const Rule&) = delete;
  Rule& operator=(const Rule&) = delete;

  [[nodiscard]] const std::vector<Index>& shape() const { return shape_; }
  [[nodiscard]] int ranks() const { return ranks_; }
  [[nodiscard]] Index elements() const { return elements_; }

  [[nodiscard]] virtual std::string_view name() const = 0;
  [[nodiscard]] virtual Index count(int rank) const = 0;
  [[nodiscard]] virtual bool has_share(int rank) const { return count(rank) > 0; }
  [[nodiscard]] virtual std::vector<Rows> rows(int rank) const = 0;
  [[nodiscard]] virtual int owner(Index global) const = 0;
  [[nodiscard]] virtual bool is_box() const { return false; }
  [[nodiscard]] virtual Box box(int /*rank*/) const { return empty_box(); }
  [[nodiscard]] virtual bool is_tiled() const { return false; }
  [[nodiscard]] virtual std::vector<Box> tiles(int rank) const { return {box(rank)}; }
  /// Returns the boxes, which do not overlap, of the elements that no rank owns.
  [[nodiscard]] virtual std::vector<Box> unowned() const { return {}; }
  [[nodiscard]] virtual bool has_unowned() const { return false; }
  [[nodiscard]] Box empty_box() const {
    return {std::vector<Index>(shape_.size()), std::vector<Index>(shape_.size())};
  }
  /// Returns OK unless overridden: layouts that are computed give each element one owner by construction.
  [[nodiscard]] virtual Status validate() const { return {}; }
  /// Packs the kind first, then what `Layout::unpack` needs to build the same rule again.
  virtual void pack(Packer& out) const = 0;

  [[nodiscard]] static std::vector<Box> unowned_of(const Layout& layout) { return layout.rule_->unowned(); }
  [[nodiscard]] static Layout wrap(std::shared_ptr<const Rule> rule) { return Layout(std::move(rule)); }

 private:
  std::vector<Index> shape_;
  int ranks_;
  Index elements_;
};

/// The base of all kinds in which each rank owns one box.
class BoxRule : public Layout::Rule {
 public:
  using Rule::Rule;
  [[nodiscard]] bool is_box() const override { return true; }
  [[nodiscard]] Index count(int rank) const override { return box_count(box(rank)); }
  [[nodiscard]] std::vector<Rows> rows(int rank) const override { return box_rows(shape(), box(rank)); }
};

/// Reads what SectionRule::pack wrote, except the kind, which the caller has read.
Result<Layout> unpack_section(Unpacker& in);

}  // namespace tailrace::layout
