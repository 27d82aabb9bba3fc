// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/input/field.hpp"

#include "ground/base/text.hpp"

namespace tailrace::input {

Result<layout::Box> Field::agree_on_box(files::Group& group, const std::string& call) const {
  Packer told;
  const Status mine = guarded([&]() -> Status {
    const layout::Box box = box_of(layout, group.rank(), halo);
    told.put_list(std::span<const Index>(box.lower)).put_list(std::span<const Index>(box.upper));
    return {};
  });
  const comm::Verdict verdict = group.node().agree({mine, cat(call, ": the node's box"), told.take()});
  TR_TRY(verdict.status);
  layout::Box all{std::vector<Index>(layout.shape().size()), std::vector<Index>(layout.shape().size())};
  for (const ByteVector& each : verdict.contributions) {
    Unpacker in(each);
    layout::Box box{in.get_list<Index>(), {}};
    box.upper = in.get_list<Index>();
    all = joined(all, box);
  }
  return all;
}

Result<const Share*> Field::share_of(const streams::ArrayShape* array, int rank) {
  if (array == nullptr) return &share;
  const int counted_as = layout.kind() == "replicated" ? 0 : rank;
  return shaped.find(
      is_scalar ? array->of_scalar() : *array, request.type, layout, counted_as, request.allocation,
      [&](const layout::Allocation& given) { return make_share(layout, rank, request.type, given, cut); });
}

}  // namespace tailrace::input
