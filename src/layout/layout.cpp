// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "layout/layout.hpp"

#include "base/bytes.hpp"
#include "base/text.hpp"
#include "layout/rule.hpp"

namespace tailrace::layout {
namespace {

Status broken_message() {
  return Status(Code::corrupt,
                "the definition of a layout ended early or is of an unknown kind: the ranks of this job "
                "run different versions of the library, or memory was overwritten");
}

Result<Layout> unpack_weighted(std::vector<Index> shape, Unpacker& in) {
  std::vector<std::vector<double>> weights;
  for (std::size_t d = 0; d < shape.size(); ++d) weights.push_back(in.get_list<double>());
  if (!in.ok()) return broken_message();
  return Layout::weighted(std::move(shape), std::move(weights));
}

Result<Layout> unpack_boxes(std::vector<Index> shape, Unpacker& in) {
  const auto corners = in.get_list<Index>();
  const std::size_t dims = shape.size();
  if (!in.ok() || dims == 0 || corners.size() % (2 * dims) != 0) return broken_message();
  std::vector<Box> boxes;
  for (auto at = corners.begin(); at != corners.end(); at += static_cast<std::ptrdiff_t>(2 * dims)) {
    const auto middle = at + static_cast<std::ptrdiff_t>(dims);
    boxes.push_back({{at, middle}, {middle, middle + static_cast<std::ptrdiff_t>(dims)}});
  }
  return Layout::boxes(std::move(shape), std::move(boxes));
}

Result<Layout> unpack_indexed(std::vector<Index> shape, Unpacker& in) {
  const auto ranks = in.get<std::int32_t>();
  std::vector<std::vector<Index>> indices;
  for (std::int32_t r = 0; r < ranks && in.ok(); ++r) indices.push_back(in.get_list<Index>());
  if (!in.ok()) return broken_message();
  return Layout::indexed(std::move(shape), std::move(indices));
}

Result<Layout> unpack_indexed_part(std::vector<Index> shape, Unpacker& in) {
  const auto me = in.get<std::int32_t>();
  const auto ranks = in.get<std::int32_t>();
  auto indices = in.get_list<Index>();
  auto idle = in.get_list<int>();
  if (!in.ok()) return broken_message();
  return Layout::indexed_part(std::move(shape), me, ranks, std::move(indices), std::move(idle));
}

Result<Layout> unpack_regular(Kind kind, std::vector<Index> shape, Unpacker& in) {
  const auto ranks = in.get<std::int32_t>();
  const auto block = kind == Kind::block_cyclic ? in.get_list<Index>() : std::vector<Index>();
  const auto grid = kind == Kind::replicated ? std::vector<int>() : in.get_list<int>();
  if (!in.ok()) return broken_message();
  if (kind == Kind::replicated) return Layout::replicated(std::move(shape), ranks);
  if (kind == Kind::block) return Layout::block(std::move(shape), ranks, grid);
  return Layout::block_cyclic(std::move(shape), ranks, block, grid);
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

Result<Layout> Layout::unpack(Unpacker& in) {
  const auto kind = in.get<Kind>();
  if (in.ok() && kind == Kind::section) return unpack_section(in);
  auto shape = in.get_list<Index>();
  if (!in.ok()) return broken_message();
  switch (kind) {
    case Kind::block:
    case Kind::block_cyclic:
    case Kind::replicated:
      return unpack_regular(kind, std::move(shape), in);
    case Kind::weighted:
      return unpack_weighted(std::move(shape), in);
    case Kind::boxes:
      return unpack_boxes(std::move(shape), in);
    case Kind::indexed:
      return unpack_indexed(std::move(shape), in);
    case Kind::indexed_part:
      return unpack_indexed_part(std::move(shape), in);
    case Kind::section:
      break;
  }
  return broken_message();
}

}  // namespace tailrace::layout
