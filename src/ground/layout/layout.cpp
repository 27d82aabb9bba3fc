// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/layout/layout.hpp"

#include "ground/base/bytes.hpp"
#include "ground/layout/rule.hpp"

namespace tailrace::layout {
namespace {

Status broken_message() {
  return Status(Code::corrupt,
                "the definition of a layout ended early or is of an unknown kind: the ranks of this job "
                "run different versions of the library, or memory was overwritten");
}

Result<Layout> unpack_boxes(std::vector<Index> shape, Unpacker& in) {
  const auto corners = in.get_list<Index>();
  const auto dims = static_cast<std::ptrdiff_t>(shape.size());
  if (dims == 0 || std::ssize(corners) % (2 * dims) != 0) return broken_message();
  std::vector<Box> boxes;
  for (auto at = corners.begin(); at != corners.end(); at += 2 * dims)
    boxes.push_back({{at, at + dims}, {at + dims, at + 2 * dims}});
  return Layout::boxes(std::move(shape), std::move(boxes));
}

Result<Layout> unpack_tiles(std::vector<Index> shape, Unpacker& in) {
  const bool unowned = in.get<std::uint8_t>() != 0;  // a damaged message has any byte
  const auto counts = in.get_list<Index>();
  const auto corners = in.get_list<Index>();
  const auto dims = std::ssize(shape);
  std::vector<std::vector<Box>> tiles(counts.size());
  auto at = corners.begin();
  for (std::size_t r = 0; r < counts.size(); ++r) {
    if (dims == 0 || counts[r] < 0 || counts[r] > (corners.end() - at) / (2 * dims)) return broken_message();
    for (Index i = 0; i < counts[r]; ++i, at += 2 * dims)
      tiles[r].push_back({{at, at + dims}, {at + dims, at + 2 * dims}});
  }
  return Layout::tiles(std::move(shape), std::move(tiles), unowned);
}

template <typename T>
std::vector<std::vector<T>> get_lists(Index count, Unpacker& in) {
  std::vector<std::vector<T>> lists;
  for (Index i = 0; i < count && in.ok(); ++i) lists.push_back(in.get_list<T>());
  return lists;
}

/// Makes a layout even if the message ended early. The caller checks in.ok().
Result<Layout> unpack_kind(Kind kind, Unpacker& in) {
  if (kind == Kind::section) return unpack_section(in);
  auto shape = in.get_list<Index>();
  if (kind == Kind::boxes) return unpack_boxes(std::move(shape), in);
  if (kind == Kind::tiles) return unpack_tiles(std::move(shape), in);
  if (kind == Kind::weighted) {
    auto weights = get_lists<double>(std::ssize(shape), in);
    return Layout::weighted(std::move(shape), std::move(weights));
  }
  const auto me = kind == Kind::indexed_part ? in.get<std::int32_t>() : 0;
  const auto ranks = in.get<std::int32_t>();
  if (kind == Kind::replicated) return Layout::replicated(std::move(shape), ranks);
  if (kind == Kind::block) return Layout::block(std::move(shape), ranks, in.get_list<int>());
  if (kind == Kind::indexed) return Layout::indexed(std::move(shape), get_lists<Index>(ranks, in));
  auto list = in.get_list<Index>();
  if (kind == Kind::block_cyclic)
    return Layout::block_cyclic(std::move(shape), ranks, std::move(list), in.get_list<int>());
  if (kind == Kind::indexed_part)
    return Layout::indexed_part(std::move(shape), me, ranks, std::move(list), in.get_list<int>());
  return broken_message();
}

}  // namespace

Layout::Layout(std::shared_ptr<const Rule> rule) : rule_(std::move(rule)) {}

const std::vector<Index>& Layout::shape() const { return rule_->shape(); }
int Layout::ranks() const { return rule_->ranks(); }
Index Layout::elements() const { return rule_->elements(); }
std::string_view Layout::kind() const { return rule_->name(); }
bool Layout::is_box() const { return rule_->is_box(); }
Status Layout::validate() const {
  return guarded([&] { return rule_->validate(); });
}
void Layout::pack(Packer& out) const { rule_->pack(out); }

Index Layout::count(int rank) const { return rank >= 0 && rank < ranks() ? rule_->count(rank) : 0; }

bool Layout::has_share(int rank) const { return rank >= 0 && rank < ranks() && rule_->has_share(rank); }

std::vector<Rows> Layout::rows(int rank) const {
  return rank >= 0 && rank < ranks() ? rule_->rows(rank) : std::vector<Rows>();
}

int Layout::owner(Index global) const {
  return global >= 0 && global < elements() ? rule_->owner(global) : -1;
}

Box Layout::box(int rank) const {
  return rank >= 0 && rank < ranks() ? rule_->box(rank) : rule_->empty_box();
}

bool Layout::is_tiled() const { return rule_->is_tiled(); }

std::vector<Box> Layout::tiles(int rank) const {
  return rank >= 0 && rank < ranks() ? rule_->tiles(rank) : std::vector<Box>();
}

std::vector<Rows> Layout::unowned() const {
  std::vector<Rows> all;
  for (const Box& box : rule_->unowned()) {
    const std::vector<Rows> rows = box_rows(shape(), box);
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

bool Layout::has_unowned() const { return rule_->has_unowned(); }

Result<Layout> Layout::unpack(Unpacker& in) {
  Result<Layout> layout = unpack_kind(in.get<Kind>(), in);
  return in.ok() ? layout : broken_message();
}

}  // namespace tailrace::layout
