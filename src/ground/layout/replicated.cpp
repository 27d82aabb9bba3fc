// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "ground/layout/rule.hpp"

namespace tailrace::layout {
namespace {

class ReplicatedRule final : public BoxRule {
 public:
  using BoxRule::BoxRule;
  [[nodiscard]] std::string_view name() const override { return "replicated"; }
  [[nodiscard]] Box box(int rank) const override {
    return rank == 0 ? Box{std::vector<Index>(shape().size()), shape()} : empty_box();
  }
  [[nodiscard]] int owner(Index /*global*/) const override { return 0; }
  void pack(Packer& out) const override {
    out.put(Kind::replicated).put_list<Index>(shape()).put<std::int32_t>(ranks());
  }
};

}  // namespace

Result<Layout> Layout::replicated(std::vector<Index> shape, int ranks) {
  TR_TRY(check_shape(shape));
  if (ranks < 1) return layout_error("a layout needs at least 1 rank, but got ", ranks);
  return Rule::wrap(std::make_shared<ReplicatedRule>(std::move(shape), ranks));
}

}  // namespace tailrace::layout
