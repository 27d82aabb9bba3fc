// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
#include "faces/input/field.hpp"

#include <utility>

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
  if (array->type != request.type) {
    return Status(Code::argument, cat("the array holds ", name_of(array->type), ", the field was defined as ",
                                      name_of(request.type)));
  }
  if (last_share && last_extents == array->extents && last_strides == array->strides) return &*last_share;
  layout::Allocation allocation = request.allocation;
  const int counted_as = layout.kind() == "replicated" ? 0 : rank;
  if (allocation.nproma == 0) {
    Result<layout::Allocation> matched =
        layout::match_extents(layout, counted_as, std::move(allocation), array->extents);
    TR_TRY(matched.status());
    allocation = std::move(*matched);
  }
  allocation.strides = array->strides;
  Result<Share> made = make_share(layout, rank, request.type, allocation, cut);
  TR_TRY(made.status());
  last_extents = array->extents;
  last_strides = array->strides;
  last_share = std::move(*made);
  return &*last_share;
}

}  // namespace tailrace::input
